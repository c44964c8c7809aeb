"""The colours of a heat map's values, and the bar that says which colour means what. Uses plotly's settings."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnviz.figures.look import Look
from attnviz.figures.theme import Bools, Settings, escape, number

Ends = tuple[float, float]  # lowest and highest coloured value

_OVER_THE_DRAWING: Settings = {  # where the bar takes no width from the cells and fits a narrow page
    "orientation": "h",
    "tickmode": "array",
    "ticklabeloverflow": "allow",  # else a wide number at an end is left out
    "lenmode": "pixels",
    "thickness": 12,
    "outlinewidth": 0,
    "ypad": 6,
    "xpad": 0,
    "x": 0,
    "xanchor": "left",
    "y": 0.9995,  # just below 1: at 1 plotly.js 4.1 pushes the figure's title up and out of the picture
    "yanchor": "bottom",
}


def scaled(
    colours: list[list[object]],
    ends: Ends,
    look: Look,
    title: str,
    *,
    by_root: bool = False,
    beyond: NDArray[np.floating] | None = None,
) -> Settings:
    """Return the colours of a heat map with a colour bar over the drawing, whose ends state the range.

    Args:
        colours: plotly's colour scale.
        ends: lowest and highest coloured value.
        look: of the figure.
        title: what the colours measure; escaped here.
        by_root: the colours follow the square root of the value; prints more of the small values.
        beyond: values that may lie below or above the ends, which then get "≤" and "≥"; None: nothing does.
    """
    low, high = ends
    font = {"size": look.label_size}
    parts = (0, 0.1, 0.25, 0.5, 1) if by_root else (0, 0.5, 1)
    ticks = [float(low + (high - low) * part) for part in parts]
    below, above = (False, False) if beyond is None else (bool(cells.any()) for cells in _outside(beyond, ends))
    signs = ["≤ " * below, *[""] * (len(ticks) - 2), "≥ " * above]
    texts = [f"{sign}{number(tick)}" for sign, tick in zip(signs, ticks, strict=True)]
    bar: Settings = {"title": {"text": escape(title), "side": "top", "font": font}, "tickfont": font}
    bar |= _OVER_THE_DRAWING | {"tickvals": ticks, "ticktext": texts, "len": 15 * look.label_size}
    return {"zmin": low, "zmax": high, "colorscale": colours, "colorbar": bar}


def beyond_colours(values: NDArray[np.floating], ends: Ends) -> list[str]:
    """Return a sentence that says how many cells lie beyond the colour bar, and how far; none if no cell does.

    >>> beyond_colours(np.array([[-3.0, 1.0]]), (-2, 2))
    ['1 cell lies beyond the ends of the colour bar, at −3.']
    """
    below, above = _outside(values, ends)
    outside = values[below | above]
    if not outside.size:
        return []
    farthest = number(outside[np.argmax(np.abs(outside))])
    if outside.size == 1:
        return [f"1 cell lies beyond the ends of the colour bar, at {farthest}."]
    return [f"{outside.size} cells lie beyond the ends of the colour bar, the farthest at {farthest}."]


def _outside(values: NDArray[np.floating], ends: Ends) -> Sequence[Bools]:
    low, high = ends
    room = 1e-5 * (high - low)  # float32 and float64 may round an end of the bar apart
    return values < low - room, values > high + room
