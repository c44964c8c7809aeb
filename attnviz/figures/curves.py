"""Shares that change with a number, as lines over it. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.theme import Settings, Theme, escape, finish, theme_of, wrap


@dataclass(frozen=True)
class Line:
    """One line: its name in the legend, its shares from 0 to 1, and how it looks beside the others.

    Attributes:
        second: in the colour of what is compared with, and with open markers.
        dashed: for the second of two lines of one colour.
    """

    name: str
    shares: ArrayLike
    second: bool = False
    dashed: bool = False


def share_curves(
    x: ArrayLike,
    lines: Sequence[Line],
    *,
    x_name: str = "d",
    y_name: str = "share of rows in %",
    marked: float | None = None,
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw shares over a number that grows by doubling, as lines on a logarithmic axis from left to right.

    Args:
        x: (points,) rising numbers above 0.
        lines: each with one share a point.
        x_name: what lies along the axis.
        y_name: what the shares are shares of, with "in %".
        marked: where to draw a thin line from top to bottom, as at the chosen number; None: nowhere.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels and the legend.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there is no line, a length doesn't fit, or a share is not from 0 to 1.
    """
    places = np.asarray(x, np.float64)
    _check(places, lines)
    look = theme_of(theme)
    figure = go.Figure([_line(line, places, x_name, look) for line in lines])
    layout: Settings = {
        "xaxis": {"type": "log", "tickmode": "array", "tickvals": places.astype(np.float32), "showline": True}
        | {"ticktext": [f"{place:,g}" for place in places], "title": {"text": wrap(x_name, label_size, width=300)}}
        | {"range": [np.log10(places[0] * 0.85), np.log10(places[-1] * 1.2)], "fixedrange": True, "ticks": "outside"}
        | {"autotickangles": [0, -60]},
        "yaxis": {"title": {"text": escape(y_name)}, "range": [-3, 103], "showgrid": True, "fixedrange": True},
        "shapes": [] if marked is None else [_upright(marked, look)],
    }
    best = "; ".join(f"{line.name}: {_percent(line, 0)} to {_percent(line, -1)}" for line in lines)
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}lines over {x_name}, from {places[0]:,g} to {places[-1]:,g}. {best}.",
        how_to_read=f"Each point is one share, of what the legend names, at one {x_name}; each step to the right is a "
        "doubling.",
        label_size=label_size,
        height=height or 260 + 8 * label_size + 2 * label_size * len(lines),
        top=round(1.75 * label_size * len(lines)),
    )


def _check(places: np.ndarray, lines: Sequence[Line]) -> None:
    if places.ndim != 1 or not len(places) or places[0] <= 0 or not np.all(np.diff(places) > 0):
        raise ValueError(f"x must be numbers above 0, each above the one before, got {places}")
    if not lines:
        raise ValueError("pass at least one line")
    for line in lines:
        shares = np.asarray(line.shares, np.float64)
        if shares.shape != places.shape or not np.all((shares >= 0) & (shares <= 1)):
            raise ValueError(f"{line.name}: expected {len(places)} shares from 0 to 1, got {shares}")


def _line(line: Line, places: np.ndarray, x_name: str, look: Theme) -> go.Scatter:
    colour = look.second if line.second else look.first
    return go.Scatter(
        x=places.astype(np.float32),
        y=(100 * np.asarray(line.shares, np.float64)).astype(np.float32),
        mode="lines+markers",
        name=escape(line.name),
        line={"color": colour, "width": 2, "dash": "dash" if line.dashed else "solid"},
        marker={"symbol": "circle-open" if line.second else "circle", "size": 7},
        cliponaxis=False,
        hovertemplate=f"{escape(line.name)}, {escape(x_name)} %{{x:,d}}: %{{y:.3~g}} %<extra></extra>",
    )


def _upright(place: float, look: Theme) -> Settings:
    line = {"color": look.hatch, "width": 1, "dash": "dot"}
    return {"type": "line", "layer": "below", "line": line} | {
        "xref": "x",
        "yref": "paper",
        "x0": float(place),
        "x1": float(place),
        "y0": 0,
        "y1": 1,
    }


def _percent(line: Line, point: int) -> str:
    return f"{float(np.asarray(line.shares)[point]):.1%}".replace("%", " %")
