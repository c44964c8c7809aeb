"""Lines over a number: shares over one that doubles, scores over a distance. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import LEANING, TICKED, long_named_axis, named_axis
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import upright
from attnviz.figures.theme import Floats, Settings, Theme, escape, number


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
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw shares over a number that grows by doubling, as lines on a logarithmic axis from left to right.

    Args:
        x: (points,) rising numbers above 0.
        lines: each with one share a point.
        x_name: what lies along the axis.
        y_name: what the shares are shares of, with "in %".
        marked: where to draw a thin line from top to bottom, as at the chosen number; None: nowhere.
        **options: as `LookOptions` says.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there is no line, a length doesn't fit, or a share is not from 0 to 1.
    """
    look = Look.of("share_curves", options)
    places = np.asarray(x, np.float64)
    _check_shares(places, lines)
    up = named_axis(y_name) | {"range": [-3, 103], "showgrid": True}
    line = [] if marked is None else [upright(float(marked), look.colours.hatch, "dot")]
    layout = {"xaxis": long_named_axis(x_name, look) | _doublings(places), "yaxis": up, "shapes": line}
    traces = [_share_line(line, places, x_name, look.colours) for line in lines]
    words = _share_words(lines, places, x_name, look.opening)
    height = 260 + 8 * look.label_size + 2 * look.label_size * len(lines)
    legend = round(1.75 * look.label_size * len(lines))
    return finish(traces, layout, look, words, height=height, top=legend)


def distance_curve(
    scores: ArrayLike,
    *,
    average: ArrayLike | None = None,
    band: tuple[ArrayLike, ArrayLike] | None = None,
    names: Sequence[str] = ("this pair", "mean of all pairs"),
    marked: int | None = None,
    value_name: str = "score",
    value_range: tuple[float, float] | None = None,
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw the score of one query with one key as a line over the distance between them.

    Args:
        scores: (distances,) from distance 0 up, the query later than the key.
        average: (distances,) the same averaged over other pairs, a second line; None: not drawn.
        band: two times (distances,), lower and upper end of a band around `average`; None: not drawn.
        names: what the legend calls `scores` and `average`.
        marked: the distance at which the two stand in the text, drawn as a ring; None: nowhere.
        value_name: what the height measures.
        value_range: lowest and highest value that the axis has room for, so that two figures compare; None: by what
            is drawn.
        **options: as `LookOptions` says.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: lengths don't agree, a number is not finite, or `marked` is no distance that is drawn.
    """
    look = Look.of("distance_curve", options)
    row, *others = [
        _checked_row(each, np.shape(scores)) for each in (scores, average, *(band or ())) if each is not None
    ]
    if marked is not None and not 0 <= marked < len(row):
        raise ValueError(f"distances here are 0 to {len(row) - 1}, got {marked} to mark")
    theme = look.colours
    traces = [] if band is None else _band(others[-2], others[-1], theme.second)
    traces.append(_score_line(row, names[0], {"color": theme.first, "width": 2.5}))
    if average is not None:  # over the pair's line, which would hide it
        traces.append(_score_line(others[0], names[1], {"color": theme.second, "width": 2, "dash": "dash"}))
    if marked is not None:
        traces.append(_ring(row, marked, theme.accent))
    n_more = (average is not None) + (marked is not None)
    layout = {"showlegend": n_more > 0} | _distance_axes(len(row), value_name, value_range)
    words = _distance_words(row, names[0], marked, look.opening + value_name)
    return finish(
        traces, layout, look, words, height=260 + 8 * look.label_size, top=round(1.75 * look.label_size * (1 + n_more))
    )


def _check_shares(places: NDArray[np.float64], lines: Sequence[Line]) -> None:
    if places.ndim != 1 or not len(places) or places[0] <= 0 or not np.all(np.diff(places) > 0):
        raise ValueError(f"x must be numbers above 0, each above the one before, got {places}")
    if not lines:
        raise ValueError("pass at least one line")
    for line in lines:
        shares = np.asarray(line.shares, np.float64)
        if shares.shape != places.shape or not np.all((shares >= 0) & (shares <= 1)):
            raise ValueError(f"{line.name}: expected {len(places)} shares from 0 to 1, got {shares}")


def _share_line(line: Line, places: NDArray[np.float64], x_name: str, theme: Theme) -> go.Scatter:
    colour = theme.second if line.second else theme.first
    y = (100 * np.asarray(line.shares, np.float64)).astype(np.float32)
    hover = f"{escape(line.name)}, {escape(x_name)} %{{x:,d}}: %{{y:.3~g}} %<extra></extra>"
    lined = {"color": colour, "width": 2, "dash": "dash" if line.dashed else "solid"}
    marker = {"symbol": "circle-open" if line.second else "circle", "size": 7}
    place = {"x": places.astype(np.float32), "y": y, "name": escape(line.name), "cliponaxis": False}
    return go.Scatter(mode="lines+markers", line=lined, marker=marker, hovertemplate=hover, **place)


def _doublings(places: NDArray[np.float64]) -> Settings:
    """Return a logarithmic axis with a tick at each of some places."""
    ends = [np.log10(places[0] * 0.85), np.log10(places[-1] * 1.2)]
    ticks = {"tickvals": places.astype(np.float32), "ticktext": [f"{place:,g}" for place in places]}
    frame = LEANING | {"tickmode": "array", "ticks": "outside", "showline": True}
    return ticks | frame | {"type": "log", "range": ends}


def _share_words(lines: Sequence[Line], places: NDArray[np.float64], x_name: str, opening: str) -> Words:
    ends = "; ".join(f"{line.name}: {_percent(line, 0)} to {_percent(line, -1)}" for line in lines)
    return Words(
        alt=f"{opening}lines over {x_name}, from {places[0]:,g} to {places[-1]:,g}. {ends}.",
        how_to_read=f"Each point is one share, of what the legend names, at one {x_name}; each step to the right is a "
        "doubling.",
    )


def _percent(line: Line, point: int) -> str:
    return f"{float(np.asarray(line.shares)[point]):.1%}".replace("%", " %")


def _checked_row(row: ArrayLike, shape: tuple[int, ...]) -> Floats:
    values = np.asarray(row, np.float32)
    if values.ndim != 1 or values.shape != shape or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"expected finite numbers of one length, a number for each distance, got {values.shape}")
    return values


def _distance_axes(n_distances: int, value_name: str, value_range: tuple[float, float] | None) -> Settings:
    across = named_axis("distance in tokens, if they stood so far apart") | TICKED
    up = named_axis(value_name) | TICKED | {"showgrid": True}
    if value_range is not None:
        up["range"] = _with_room(*value_range)
    return {"xaxis": across | {"range": [-0.5, n_distances - 0.5], "showline": True}, "yaxis": up}


def _with_room(low: float, high: float) -> list[float]:
    room = 0.06 * (high - low) or 1.0
    return [low - room, high + room]


def _score_line(values: Floats, name: str, line: Settings) -> go.Scatter:
    hover = f"%{{x:d}} tokens apart: %{{y:.3~g}}, {escape(name)}<extra></extra>"
    x = np.arange(len(values), dtype=np.int16)
    return go.Scatter(x=x, y=values, mode="lines", name=escape(name), line=line, hovertemplate=hover)


def _ring(values: Floats, marked: int, colour: str) -> go.Scatter:
    marker = {"size": 13, "symbol": "circle-open", "color": colour, "line": {"width": 3}}
    hover = "here: %{x:d} tokens apart, %{y:.3~g}<extra></extra>"
    place = {"x": np.array([marked], np.int16), "y": values[[marked]], "name": "where they stand in the text"}
    return go.Scatter(mode="markers", marker=marker, hovertemplate=hover, **place)


def _band(low: Floats, high: Floats, colour: str) -> list[go.Scatter]:
    x = np.arange(len(low), dtype=np.int16)
    common: Settings = {"x": x, "mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    return [go.Scatter(y=low, **common), go.Scatter(y=high, fill="tonexty", fillcolor=_faint(colour), **common)]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def _distance_words(row: Floats, name: str, marked: int | None, what: str) -> Words:
    best = int(row.argmax())
    here = "" if marked is None else f"; where they stand, at distance {marked}, {number(row[marked])}"
    return Words(
        alt=f"{what} over distances 0 to {len(row) - 1}. {name}: highest "
        f"at distance {best}, {number(row[best])}{here}.",
        how_to_read="Each point of the line is the score that the same two vectors would have if they stood so many "
        "tokens apart.",
    )
