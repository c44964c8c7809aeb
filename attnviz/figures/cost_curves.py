"""Costs that grow with the length of a text, as lines. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.curves import _upright
from attnviz.figures.theme import Settings, Theme, candidate_colours, escape, finish, theme_of, wrap
from attnviz.figures.units import quantity

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")
MOST_LINES = 7
PHONE = 360  # px that the drawing has there
TICKS = 6  # at most, on an axis


@dataclass(frozen=True)
class Curve:
    """One line of costs.

    Attributes:
        name: in the legend.
        x: (points,) lengths above 0, rising; `y`: (points,) costs above 0.
        guide: a thin grey line without markers, for a slope to compare with.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    guide: bool = False


@dataclass(frozen=True)
class Mark:
    """A place that has a name, such as where two lines meet; its text stands above it to the left, or below."""

    x: float
    y: float
    text: str
    above: bool = True


def cost_curves(
    curves: Sequence[Curve],
    *,
    unit: str = "",
    x_name: str = "tokens s",
    y_name: str = "multiply-adds",
    log: bool = True,
    marks: Sequence[Mark] = (),
    marked: float | None = None,
    markers: bool = False,
    how_to_read: str = "",
    notes: Sequence[str] = (),
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw costs over the length of a text; where both axes are logarithmic, growth as s^e is a line of slope e.

    Args:
        curves: one to seven of them, guides aside.
        unit: of the costs: "bytes", "seconds", or "" for a count.
        x_name: what lies along the axis.
        y_name: what the height measures.
        log: both axes logarithmic, else both from 0 on.
        marks: places to draw as rings with their text.
        marked: where to draw a thin line from top to bottom, as at the chosen length; None: nowhere.
        markers: draw a marker at each point, for numbers that were measured.
        how_to_read: one sentence; "" says what a slope is.
        notes: sentences under the title.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels and the legend.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: no line or too many, lengths that don't fit, a number that is not above 0, or an unknown unit.
    """
    lines = [(curve, *_checked(curve)) for curve in curves]
    n_lines = sum(not curve.guide for curve in curves)
    if not 1 <= n_lines <= MOST_LINES:
        raise ValueError(f"pass 1 to {MOST_LINES} lines beside guides, got {n_lines}")
    look = theme_of(theme)
    figure = go.Figure(_traces(lines, unit, x_name, markers, look))
    if marks:
        figure.add_trace(_rings(marks, look))
    low = [min(row.min() for _, *rows in lines for row in rows[axis : axis + 1]) for axis in (0, 1)]
    high = [max(row.max() for _, *rows in lines for row in rows[axis : axis + 1]) for axis in (0, 1)]
    axes = {"xaxis": _axis(low[0], high[0], "", log), "yaxis": _axis(low[1], high[1], unit, log)}
    axes["xaxis"] |= {"title": {"text": escape(x_name)}, "showline": True, "autotickangles": [0, -60]}
    axes["yaxis"] |= {"title": {"text": wrap(y_name, label_size, width=300)}}
    layout: Settings = axes | {
        "shapes": [] if marked is None else [_upright(marked, look)],
        "annotations": [_name(mark, high[0], log, label_size, look) for mark in marks],
    }
    ends = "; ".join(f"{c.name}: {quantity(y[0], unit)} to {quantity(y[-1], unit)}" for c, _, y in lines if not c.guide)
    named = "".join(f" {mark.text}: at {mark.x:,.0f}." for mark in marks)
    legend = _legend_height([curve.name for curve in curves], label_size)
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}{y_name} over {x_name}, {low[0]:,.0f} to {high[0]:,.0f}. {ends}.{named}",
        how_to_read=how_to_read
        or (
            "Each step along these axes is a factor: growth with s² is a line twice as steep as growth with s."
            if log
            else "Both axes start at 0: what grows with s is a straight line, what grows with its square bends upward."
        ),
        notes=notes,
        label_size=label_size,
        height=height or 300 + 8 * label_size + legend,
        top=legend,
    )


def _checked(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x) or not np.all(np.diff(x) > 0):
        raise ValueError(f"{curve.name}: expected as many costs as lengths, rising, got {x} and {y}")
    if not (np.all((x > 0) & np.isfinite(x)) and np.all((y > 0) & np.isfinite(y))):
        raise ValueError(f"{curve.name}: expected lengths and costs above 0, got {x} and {y}")
    return x, y


def _traces(lines: Sequence, unit: str, x_name: str, markers: bool, look: Theme) -> list[go.Scatter]:
    looks = zip(cycle(candidate_colours(look.name)), cycle(DASHES), cycle(SYMBOLS), strict=False)
    traces = []
    for curve, x, y in lines:
        if curve.guide:
            style: Settings = {"mode": "lines", "line": {"color": look.hatch, "width": 1.5, "dash": "dot"}}
        else:
            colour, dash, symbol = next(looks)
            line = {"color": colour, "width": 2.5, "dash": "solid" if markers else dash}
            style = {
                "mode": "lines+markers" if markers else "lines",
                "line": line,
                "marker": {"symbol": symbol, "size": 9},
            }
        traces.append(
            go.Scatter(
                x=x.astype(np.float32),
                y=y.astype(np.float32),
                name=escape(curve.name),
                text=[
                    f"{escape(curve.name)}, {escape(x_name)} {a:,.0f}: {quantity(b, unit)}"
                    for a, b in zip(x, y, strict=True)
                ],
                hovertemplate="%{text}<extra></extra>",
                hoverinfo="skip" if curve.guide else None,
                cliponaxis=False,
                **style,
            )
        )
    return traces


def _legend_height(names: Sequence[str], label_size: int) -> int:
    """Return the px that a legend of these names takes on a phone, in columns as wide as the longest name."""
    n_columns = max(1, int(PHONE / (45 + 0.55 * label_size * max(map(len, names)))))
    return round(1.75 * label_size * -(-len(names) // n_columns))


def _rings(marks: Sequence[Mark], look: Theme) -> go.Scatter:
    return go.Scatter(
        x=np.array([mark.x for mark in marks], np.float32),
        y=np.array([mark.y for mark in marks], np.float32),
        mode="markers",
        showlegend=False,
        marker={"size": 15, "symbol": "circle-open", "color": look.accent, "line": {"width": 3}},
        text=[escape(mark.text) for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )


def _name(mark: Mark, high: float, log: bool, label_size: int, look: Theme) -> Settings:
    """Return a mark's text, clear of the axis on its left."""
    place = (np.log10(mark.x), np.log10(mark.y)) if log else (mark.x, mark.y)
    left = mark.above and mark.x > high / (1000 if log else 2)
    return {
        "x": float(place[0]),
        "y": float(place[1]),
        "text": wrap(mark.text, label_size, width=190),
        "showarrow": False,
        "xanchor": "right" if left else "left",
        "yanchor": "bottom" if mark.above else "top",
        "xshift": -12 if left else 12,
        "align": "left",
        "font": {"size": label_size, "weight": 600},
        "bgcolor": look.page,
        "opacity": 0.95,
    }


def _axis(low: float, high: float, unit: str, log: bool) -> Settings:
    """Return an axis with a few named ticks."""
    places = _log_ticks(low, high, by=2 if unit == "" and high < 1e7 else 10) if log else _linear_ticks(high)
    ends = [np.log10(low) - 0.1, np.log10(high) + 0.1] if log else [0, 1.04 * high]
    return {
        "type": "log" if log else "linear",
        "tickmode": "array",
        "tickvals": places.astype(np.float32),
        "ticktext": [quantity(place, unit) for place in places],
        "range": [float(end) for end in ends],
        "showgrid": True,
        "fixedrange": True,
        "ticks": "outside",
    }


def _log_ticks(low: float, high: float, by: int) -> NDArray[np.float64]:
    """Return at most six powers of a number between two ends, evenly apart."""
    powers = np.arange(np.ceil(np.log(low) / np.log(by) - 1e-9), np.floor(np.log(high) / np.log(by) + 1e-9) + 1)
    if not len(powers):
        return np.array([low, high])
    return float(by) ** powers[:: -(-len(powers) // TICKS)]


def _linear_ticks(high: float) -> NDArray[np.float64]:
    """Return 0 and a few round numbers up to the largest."""
    step = 10 ** np.floor(np.log10(high / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (factor * step) <= TICKS - 1)
    return np.arange(0, high * 1.0001, step)
