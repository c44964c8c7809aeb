"""Colour scales of weights to choose from, and a finished figure in another one of them. Uses NumPy and plotly.

Every scale is perceptually even and safe for colour-blind eyes. Its lightness falls or rises all the way, so it also
prints in grey. None contains the grey of masked cells or the page's colour. Other meanings (scores, differences, other
numbers) have one scale each, in `theme`.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import plotly.graph_objects as go

from attnviz.figures.colour import even_ramp, sequential
from attnviz.figures.overview import PNG, image_palette, png_chunk
from attnviz.figures.theme import OKABE_ITO, THEMES, theme_of

DEFAULT = "indigo"  # what the figures draw in by themselves
_ORANGE = OKABE_ITO[5]
_POWERS = (1, 2)  # colours by the weight, or by its square root


@dataclass(frozen=True)
class Palette:
    """How weights look on one kind of page.

    Attributes:
        weight: hex colours from weight 0 to 1.
        mark: colour of frames on it: none of the ramp's.
    """

    weight: tuple[str, ...]
    mark: str


_ANCHORS: dict[str, dict[str, tuple[str, ...]]] = {
    "viridis": {
        "light": ("#FBF9D9", "#FDE725", "#7AD151", "#22A884", "#2A788E", "#414487", "#440154"),
        "dark": ("#2A0A38", "#440154", "#414487", "#2A788E", "#22A884", "#7AD151", "#FDE725"),
    },
    "cividis": {
        "light": ("#FFF6CF", "#FEE838", "#BCAF6F", "#7C7B78", "#414D6B", "#00224E"),
        "dark": ("#0A2A55", "#414D6B", "#7C7B78", "#BCAF6F", "#FEE838"),
    },
    # Masked cells lie between the page and weight 0, so that grey alone tells all three apart.
    "grey": {"light": ("#C8C8C8", "#0A0A0A"), "dark": ("#454545", "#FFFFFF")},
}
_MARKS = {"viridis": {"dark": _ORANGE}, "cividis": {"dark": _ORANGE}}  # yellow would drown in their yellow end
PALETTES = (DEFAULT, *_ANCHORS)


@cache
def palette_of(name: str, theme: str) -> Palette:
    """Return a colour scale of weights for a "light" or a "dark" page.

    Args:
        name: one of PALETTES.
        theme: "light" or "dark".

    Raises:
        ValueError: there is no scale or no theme of that name.

    Source: viridis is van der Walt's and Smith's (2015), cividis Nuñez, Anderton and Renslow's (2018), both evened in
    lightness here and given an end of its own for weight 0.

    >>> palette_of("grey", "light").weight[0]
    '#C8C8C8'
    """
    look = theme_of(theme)
    if name not in PALETTES:
        raise ValueError(f"a colour scale is one of {', '.join(PALETTES)}, got {name!r}")
    if name == DEFAULT:
        return Palette(look.weight, look.accent)
    return Palette(tuple(even_ramp(_ANCHORS[name][theme])), _MARKS.get(name, {}).get(theme, look.accent))


def in_palette(figure: go.Figure, name: str) -> go.Figure:
    """Return a figure with its weights in another colour scale; all other colours stay.

    Args:
        figure: as attnviz.figures makes it; left as it is.
        name: one of PALETTES.

    Returns:
        The figure itself where nothing changes, else a copy.

    Raises:
        ValueError: there is no scale of that name.
    """
    look = theme_of(figure.layout.meta["theme"])
    wanted = palette_of(name, look.name)
    scales = {_as_key(sequential(look.weight, power=power)): power for power in _POWERS}
    powers = [scales.get(_as_key(trace.colorscale)) if trace.type == "heatmap" else None for trace in figure.data]
    if name == DEFAULT or not any(powers):
        return figure
    copy = go.Figure(figure)
    for trace, power in zip(copy.data, powers, strict=True):
        if power:
            trace.colorscale = sequential(wanted.weight, power=power)
    for shape in copy.layout.shapes:
        if shape.line.color == look.accent:
            shape.line.color = wanted.mark
    for image in copy.layout.images:
        image.source = _repainted(image.source, look.name, wanted)
    return copy


def _as_key(scale: Iterable[Any] | None) -> tuple[tuple[float, str], ...]:
    return tuple((float(position), str(colour)) for position, colour in scale or ())


def _repainted(source: str, theme: str, wanted: Palette) -> str:
    """Return the picture of all heads with another palette: its pixels are numbers of palette entries."""
    look = THEMES[theme]
    png = base64.b64decode(source.removeprefix(PNG))
    palettes = (image_palette(each).tobytes() for each in (look, replace(look, weight=wanted.weight)))
    old, new = (png_chunk(b"PLTE", palette) for palette in palettes)
    return PNG + base64.b64encode(png.replace(old, new)).decode()
