"""How often something is right, with its interval, beside rules of thumb. Uses plotly."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from attnviz.figures.axes import MAX_SIDE, named_axis, tokens_down
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import upright
from attnviz.figures.theme import Floats, Theme, escape

Rated = tuple[str, float, float, float]  # name, share, and the ends of its interval


def rate_dots(
    rows: Sequence[Rated],
    *,
    highlighted: Sequence[int] = (),
    chance: float | None = None,
    value_name: str = "right, in %",
    how_to_read: str = "",
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw shares as dots with the intervals that they are known to, one under the other.

    Args:
        rows: (name, share, low, high), shares from 0 to 1; low and high may be NaN where no interval is known.
        highlighted: indices of the rows to draw in another colour and shape.
        chance: a share to mark by a dashed line; None for no line.
        value_name: what the axis says.
        how_to_read: one sentence; "" says what a dot is.
        **options: as `LookOptions` says; the figure is as high as the rows need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: no row or too many, a share outside 0 to 1, or an index of no row.
    """
    look = Look.of("rate_dots", options)
    numbers = _checked(rows, highlighted)
    line = [] if chance is None else [upright(100 * chance, look.colours.text, "dash")]
    across = named_axis(value_name) | {"range": [0, 105], "showgrid": True}
    layout = {"xaxis": across, "yaxis": tokens_down([name for name, *_ in rows]), "shapes": line}
    spoken = "; ".join(f"{name} {100 * share:.0f} %{_interval(low, high)}" for name, share, low, high in rows)
    reading = how_to_read or "Each dot is a share, the line through it the interval that it is known to."
    words = Words(f"{look.opening}{spoken}.", reading)
    height = 90 + 2 * look.label_size * (len(rows) + 1)
    said = [f"{escape(name)}: {100 * share:.1f} %{_interval(low, high)}" for name, share, low, high in rows]
    traces = _traces(numbers, said, highlighted, look.colours)
    return finish(traces, layout | {"showlegend": False}, look, words, height=height)


def _checked(rows: Sequence[Rated], highlighted: Sequence[int]) -> Floats:
    """Return (rows, 3): share, low, high."""
    numbers = np.array([row[1:] for row in rows], np.float32).reshape(-1, 3)
    if not 1 <= len(rows) <= MAX_SIDE or not np.all((numbers[:, 0] >= 0) & (numbers[:, 0] <= 1)):
        raise ValueError(f"pass 1 to {MAX_SIDE} rows (name, share from 0 to 1, low, high), got {list(rows)}")
    if not all(0 <= index < len(rows) for index in highlighted):
        raise ValueError(f"rows to highlight are 0 to {len(rows) - 1}, got {list(highlighted)}")
    return numbers


def _traces(numbers: Floats, said: Sequence[str], highlighted: Sequence[int], theme: Theme) -> list[go.Scatter]:
    chosen = np.isin(np.arange(len(numbers)), list(highlighted))
    looks = ((~chosen, theme.first, "circle"), (chosen, theme.second, "diamond"))
    return [_dots(numbers, said, np.flatnonzero(drawn), *look) for drawn, *look in looks if drawn.any()]


def _dots(numbers: Floats, said: Sequence[str], drawn: NDArray[np.intp], colour: str, symbol: str) -> go.Scatter:
    share, low, high = numbers[drawn].T
    ends = {"array": np.nan_to_num(100 * (high - share)), "arrayminus": np.nan_to_num(100 * (share - low))}
    line = ends | {"type": "data", "symmetric": False, "color": colour, "thickness": 2}
    place = {"x": 100 * share, "y": drawn.astype(np.int16), "error_x": line}
    marker = {"color": colour, "size": 11, "symbol": symbol}
    hover = {"customdata": [said[row] for row in drawn.tolist()], "hovertemplate": "%{customdata}<extra></extra>"}
    return go.Scatter(mode="markers", marker=marker, **place, **hover)


def _interval(low: float, high: float) -> str:
    """Return an interval in per cent, nothing where none is known.

    >>> _interval(0.5, 0.75), _interval(float("nan"), 1.0)
    (' [50, 75]', '')
    """
    return "" if np.isnan(low) or np.isnan(high) else f" [{100 * low:.0f}, {100 * high:.0f}]"
