"""How often something is right, with its interval, beside rules of thumb. Uses plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from attnviz.figures.axes import token_axis
from attnviz.figures.heatmap import MAX_SIDE
from attnviz.figures.theme import Settings, escape, finish, theme_of

Rated = tuple[str, float, float, float]  # name, share, and the ends of its interval


def rate_dots(
    rows: Sequence[Rated],
    *,
    highlighted: Sequence[int] = (),
    chance: float | None = None,
    value_name: str = "right, in %",
    how_to_read: str = "",
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw shares as dots with the intervals that they are known to, one under the other.

    Args:
        rows: (name, share, low, high), shares from 0 to 1; low and high may be NaN where no interval is known.
        highlighted: indices of the rows to draw in another colour and shape.
        chance: a share to mark by a dashed line; None for no line.
        value_name: what the axis says.
        how_to_read: one sentence; "" says what a dot is.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: as high as the rows need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: no row or too many, a share outside 0 to 1, or an index of no row.
    """
    numbers = np.array([row[1:] for row in rows], np.float32).reshape(-1, 3)  # (rows, 3)
    if not 1 <= len(rows) <= MAX_SIDE or not np.all((numbers[:, 0] >= 0) & (numbers[:, 0] <= 1)):
        raise ValueError(f"pass 1 to {MAX_SIDE} rows (name, share from 0 to 1, low, high), got {list(rows)}")
    if not all(0 <= index < len(rows) for index in highlighted):
        raise ValueError(f"rows to highlight are 0 to {len(rows) - 1}, got {list(highlighted)}")
    look = theme_of(theme)
    figure = go.Figure()
    chosen = np.isin(np.arange(len(rows)), list(highlighted))
    for drawn, colour, symbol in ((~chosen, look.first, "circle"), (chosen, look.second, "diamond")):
        if drawn.any():
            figure.add_trace(_dots(rows, numbers, np.flatnonzero(drawn), colour, symbol))
    shapes = [] if chance is None else [_line(chance, look.text)]
    down = token_axis([name for name, *_ in rows], title="")
    layout: Settings = {
        "showlegend": False,
        "shapes": shapes,
        "yaxis": down | {"range": [len(rows) - 0.5, -0.5], "fixedrange": True, "ticks": ""},
        "xaxis": {"range": [0, 105], "title": {"text": escape(value_name)}, "fixedrange": True, "showgrid": True},
    }
    spoken = "; ".join(f"{name} {100 * share:.0f} %{_interval(low, high)}" for name, share, low, high in rows)
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}{spoken}.",
        how_to_read=how_to_read or "Each dot is a share, the line through it the interval that it is known to.",
        label_size=label_size,
        height=height or round(90 + 2 * label_size * len(rows) + 2 * label_size),
    )


def _dots(rows: Sequence[Rated], numbers: np.ndarray, drawn: np.ndarray, colour: str, symbol: str) -> go.Scatter:
    share, low, high = numbers[drawn].T
    return go.Scatter(
        x=100 * share,
        y=drawn.astype(np.int16),
        mode="markers",
        marker={"color": colour, "size": 11, "symbol": symbol},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": np.nan_to_num(100 * (high - share)),
            "arrayminus": np.nan_to_num(100 * (share - low)),
            "color": colour,
            "thickness": 2,
        },
        customdata=[f"{escape(rows[i][0])}: {100 * rows[i][1]:.1f} %{_interval(*rows[i][2:])}" for i in drawn],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _interval(low: float, high: float) -> str:
    """Return an interval in per cent, nothing where none is known.

    >>> _interval(0.5, 0.75), _interval(float("nan"), 1.0)
    (' [50, 75]', '')
    """
    return "" if np.isnan(low) or np.isnan(high) else f" [{100 * low:.0f}, {100 * high:.0f}]"


def _line(share: float, colour: str) -> Settings:
    place = {"xref": "x", "yref": "paper", "x0": 100 * share, "x1": 100 * share, "y0": 0, "y1": 1}
    return {"type": "line", "line": {"color": colour, "width": 1, "dash": "dash"}, "layer": "below"} | place
