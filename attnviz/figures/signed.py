"""Bars above and below 0: the products that add up to a score, and what parts add to a sum. Uses NumPy and plotly."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, token_axis
from attnviz.figures.full_names import named_in_full
from attnviz.figures.heatmap import MAX_SIDE
from attnviz.figures.theme import Settings, Theme, escape, finish, number, theme_of, wrap

MOST_BARS = 1024

_FIXED: Settings = {"fixedrange": True, "ticks": "outside", "ticklen": 4}


def component_bars(
    values: ArrayLike,
    *,
    highlighted: Collection[int] = (),
    names: Sequence[str] = ("the largest", "the others"),
    value_name: str = "product",
    bar_name: str = "component",
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw one bar for each component, above or below 0, some of them in another colour.

    Args:
        values: (components,) finite.
        highlighted: indices of the components to tell from the others.
        names: what the legend calls the highlighted ones and the others.
        value_name: what the bars measure.
        bar_name: what a bar stands for, with its number: "component", "layer".
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there are no bars, more than 1,024, or one that is no finite number or doesn't exist.
    """
    numbers = _checked(values, MOST_BARS)
    if not all(0 <= index < len(numbers) for index in highlighted):
        raise ValueError(f"components to highlight are 0 to {len(numbers) - 1}, got {sorted(highlighted)}")
    look = theme_of(theme)
    chosen = np.isin(np.arange(len(numbers)), list(highlighted))
    figure = go.Figure()
    for drawn, name, marker in zip((chosen, ~chosen), names, _markers(look), strict=True):
        if drawn.any():
            hover = f"{escape(bar_name)} %{{x}}: %{{y:+.3~g}}, {escape(name)}<extra></extra>"
            place = positions(len(numbers))[drawn]
            figure.add_bar(x=place, y=numbers[drawn], name=escape(name), marker=marker, hovertemplate=hover, width=0.85)
    largest = int(np.abs(numbers).argmax())
    layout: Settings = {
        "barmode": "overlay",
        "bargap": 0.15,
        "showlegend": bool(chosen.any() and not chosen.all()),
        "xaxis": {"title": {"text": escape(bar_name)}, "range": [-0.6, len(numbers) - 0.4], "showline": True} | _FIXED,
        "yaxis": {"title": {"text": escape(value_name)}, "showgrid": True, "zeroline": True, "zerolinecolor": look.rule}
        | _FIXED,
    }
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{_named(title)}{value_name} of {len(numbers)} {bar_name}s, which sum to {number(numbers.sum())}. "
        f"Largest: {bar_name} {largest}, {number(numbers[largest])}.",
        how_to_read=f"Each bar is one {bar_name}'s {value_name}, up above 0 and down below it.",
        label_size=label_size,
        height=height or 230 + 8 * label_size,
        top=2 * label_size,
    )


def labelled_bars(
    values: ArrayLike,
    labels: Sequence[str],
    *,
    highlighted: Collection[int] = (),
    value_name: str = "value",
    how_to_read: str = "",
    start: int = 0,
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw one bar for each of some labels, one under the other, to the right above 0 and to the left below it.

    Args:
        values: (labels,) finite.
        labels: text beside each bar; may repeat.
        highlighted: indices of the bars to draw in another colour.
        value_name: what the bars measure.
        how_to_read: one sentence; "" says what a bar is.
        start: index in the text of the first label, if they are tokens.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: as high as the bars need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: lengths don't agree, there are no bars or more than 256, or one is no finite number.
    """
    numbers = _checked(values, MAX_SIDE)
    if len(labels) != len(numbers):
        raise ValueError(f"expected a label for each of {len(numbers)} bars, got {len(labels)}")
    look = theme_of(theme)
    chosen = np.isin(np.arange(len(numbers)), list(highlighted))
    figure = go.Figure()
    for drawn, marker in zip((chosen, ~chosen), _markers(look), strict=True):
        if drawn.any():
            figure.add_bar(
                orientation="h",
                x=numbers[drawn],
                y=positions(len(numbers), start)[drawn],
                marker=marker,
                text=[number(value) for value in numbers[drawn]],
                textposition="outside",
                textangle=0,
                cliponaxis=False,
                **named_in_full("%{y}: %{x:.4~g}<extra></extra>", [labels[i] for i in np.flatnonzero(drawn)], "y"),
            )
    down = token_axis(labels, start=start, title="")
    layout: Settings = {
        "barmode": "overlay",
        "bargap": 0.25,
        "showlegend": False,
        "xaxis": {"title": {"text": wrap(value_name, label_size, width=300)}, "range": _room(numbers)}
        | {"zeroline": True, "zerolinecolor": look.rule, "showgrid": True, "fixedrange": True, "nticks": 6},
        "yaxis": down
        | {"range": [len(numbers) - 0.5, -0.5], "fixedrange": True}
        | {"ticks": "", "ticklabelstandoff": 6},
    }
    listed = ", ".join(f"{label} {number(value)}" for label, value in zip(labels, numbers, strict=True))
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{_named(title)}{value_name}: {listed}.",
        how_to_read=how_to_read or f"Each bar is the {value_name} of what stands beside it; to the left is below 0.",
        label_size=label_size,
        height=height or 80 + 3 * label_size + round(1.9 * label_size) * len(numbers),
    )


def _checked(values: ArrayLike, most: int) -> NDArray[np.float32]:
    numbers = np.asarray(values, dtype=np.float32)
    if numbers.ndim != 1 or not 1 <= len(numbers) <= most or not np.isfinite(numbers).all():
        raise ValueError(f"expected 1 to {most} finite numbers, got shape {numbers.shape}: {numbers}")
    return numbers


def _markers(look: Theme) -> tuple[Settings, Settings]:
    """Hatched for what is highlighted, so that it is told apart without colour too, and one full colour."""
    hatch = {"shape": "/", "fgcolor": look.second, "bgcolor": look.page, "size": 5, "solidity": 0.5}
    return (
        {"color": look.second, "line": {"color": look.second, "width": 1}, "pattern": hatch},
        {"color": look.first, "line": {"width": 0}},
    )


def _room(numbers: NDArray[np.float32]) -> list[float]:
    """Return the ends of an axis with room for the numbers printed beside the bars."""
    low, high = min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))
    spread = (high - low) or 1.0
    return [low - 0.2 * spread if low < 0 else 0.0, high + 0.2 * spread if high > 0 or low == high else 0.0]


def _named(title: str) -> str:
    return f"{title}: " if title else ""
