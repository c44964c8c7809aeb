"""Bars above and below 0: the products that add up to a score, and what parts add to a sum. Uses NumPy and plotly."""

from collections.abc import Collection, Sequence
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import MAX_SIDE, TICKED, long_named_axis, named_axis, positions, tokens_down
from attnviz.figures.fills import BESIDE, full, hatched
from attnviz.figures.full_names import named_in_full
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.theme import Bools, Floats, Settings, Theme, escape, number

MOST_BARS = 1024


def component_bars(
    values: ArrayLike,
    *,
    highlighted: Collection[int] = (),
    names: Sequence[str] = ("the largest", "the others"),
    value_name: str = "product",
    bar_name: str = "component",
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw one bar for each component, above or below 0, some of them in another colour.

    Args:
        values: (components,) finite.
        highlighted: indices of the components to tell from the others.
        names: what the legend calls the highlighted ones and the others.
        value_name: what the bars measure.
        bar_name: what a bar stands for, with its number: "component", "layer".
        **options: as `LookOptions` says.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there are no bars, more than 1,024, or one that is no finite number or doesn't exist.
    """
    look = Look.of("component_bars", options)
    numbers = _checked(values, MOST_BARS)
    if not all(0 <= index < len(numbers) for index in highlighted):
        raise ValueError(f"components to highlight are 0 to {len(numbers) - 1}, got {sorted(highlighted)}")
    groups = _groups(len(numbers), highlighted, look.colours)
    across = named_axis(bar_name) | TICKED | {"range": [-0.6, len(numbers) - 0.4], "showline": True}
    layout: Settings = {"xaxis": across, "yaxis": named_axis(value_name) | TICKED | _zero_line(look.colours)}
    layout |= {"barmode": "overlay", "bargap": 0.15, "showlegend": len(groups) > 1}
    traces = [_standing(numbers, drawn, bar_name, names[other], marker) for other, drawn, marker in groups]
    words = _component_words(numbers, value_name, bar_name, look.opening)
    return finish(traces, layout, look, words, height=230 + 8 * look.label_size, top=2 * look.label_size)


def labelled_bars(
    values: ArrayLike,
    labels: Sequence[str],
    *,
    highlighted: Collection[int] = (),
    value_name: str = "value",
    how_to_read: str = "",
    start: int = 0,
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw one bar for each of some labels, one under the other, to the right above 0 and to the left below it.

    Args:
        values: (labels,) finite.
        labels: text beside each bar; may repeat.
        highlighted: indices of the bars to draw in another colour.
        value_name: what the bars measure.
        how_to_read: one sentence; "" says what a bar is.
        start: index in the text of the first label, if they are tokens.
        **options: as `LookOptions` says; the figure is as high as the bars need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: lengths don't agree, there are no bars or more than 256, or one is no finite number.
    """
    look = Look.of("labelled_bars", options)
    numbers = _checked(values, MAX_SIDE)
    if len(labels) != len(numbers):
        raise ValueError(f"expected a label for each of {len(numbers)} bars, got {len(labels)}")
    groups = _groups(len(numbers), highlighted, look.colours)
    across = long_named_axis(value_name, look) | _zero_line(look.colours) | {"range": _room(numbers), "nticks": 6}
    down = tokens_down(labels, start=start) | {"ticklabelstandoff": 6}
    layout = {"barmode": "overlay", "bargap": 0.25, "showlegend": False, "xaxis": across, "yaxis": down}
    listed = ", ".join(f"{label} {number(value)}" for label, value in zip(labels, numbers, strict=True))
    reading = how_to_read or f"Each bar is the {value_name} of what stands beside it; to the left is below 0."
    words = Words(f"{look.opening}{value_name}: {listed}.", reading)
    traces = [_lying(numbers, drawn, labels, start, marker) for _, drawn, marker in groups]
    return finish(
        traces, layout, look, words, height=80 + 3 * look.label_size + round(1.9 * look.label_size) * len(numbers)
    )


def _checked(values: ArrayLike, most: int) -> Floats:
    numbers = np.asarray(values, dtype=np.float32)
    if numbers.ndim != 1 or not 1 <= len(numbers) <= most or not np.isfinite(numbers).all():
        raise ValueError(f"expected 1 to {most} finite numbers, got shape {numbers.shape}: {numbers}")
    return numbers


def _groups(n_bars: int, highlighted: Collection[int], theme: Theme) -> list[tuple[int, Bools, Settings]]:
    """Return highlighted bars and the others, as (0 or 1, which bars, how they are filled), without empty groups.

    Highlighted ones are hatched, so that they are told from the others without colour too.
    """
    chosen = np.isin(np.arange(n_bars), list(highlighted))
    hatch = hatched(theme.second, theme.page, size=5, solidity=0.5)
    drawn = ((0, chosen, hatch), (1, ~chosen, full(theme.first)))
    return [group for group in drawn if group[1].any()]


def _zero_line(theme: Theme) -> Settings:
    return {"showgrid": True, "zeroline": True, "zerolinecolor": theme.rule}


def _standing(numbers: Floats, drawn: Bools, bar_name: str, name: str, marker: Settings) -> go.Bar:
    hover = f"{escape(bar_name)} %{{x}}: %{{y:+.3~g}}, {escape(name)}<extra></extra>"
    place = {"x": positions(len(numbers))[drawn], "y": numbers[drawn], "width": 0.85}
    return go.Bar(name=escape(name), marker=marker, hovertemplate=hover, **place)


def _lying(numbers: Floats, drawn: Bools, labels: Sequence[str], start: int, marker: Settings) -> go.Bar:
    seen = [labels[i] for i in np.flatnonzero(drawn).tolist()]
    place = {"orientation": "h", "x": numbers[drawn], "y": positions(len(numbers), start)[drawn]}
    texts = {"text": [number(value) for value in numbers[drawn]]}
    return go.Bar(
        marker=marker, **place, **texts, **BESIDE, **named_in_full("%{y}: %{x:.4~g}<extra></extra>", seen, "y")
    )


def _component_words(numbers: Floats, value_name: str, bar_name: str, opening: str) -> Words:
    largest = int(np.abs(numbers).argmax())
    return Words(
        alt=f"{opening}{value_name} of {len(numbers)} {bar_name}s, which sum to {number(numbers.sum())}. "
        f"Largest: {bar_name} {largest}, {number(numbers[largest])}.",
        how_to_read=f"Each bar is one {bar_name}'s {value_name}, up above 0 and down below it.",
    )


def _room(numbers: Floats) -> list[float]:
    """Return the ends of an axis with room for the numbers printed beside the bars."""
    low, high = min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))
    spread = (high - low) or 1.0
    return [low - 0.2 * spread if low < 0 else 0.0, high + 0.2 * spread if high > 0 or low == high else 0.0]
