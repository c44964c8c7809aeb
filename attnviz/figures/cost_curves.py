"""Costs that grow with the length of a text, as lines. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import LEANING, long_named_axis
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import upright
from attnviz.figures.scales import Ends
from attnviz.figures.theme import Settings, Theme, candidate_colours, escape, wrap
from attnviz.figures.units import quantity

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")
MOST_LINES = 7
PHONE = 360  # px that the drawing has there
TICKS = 6  # at most, on an axis

READING_LOG = "Each step along these axes is a factor: growth with s² is a line twice as steep as growth with s."
READING_LINEAR = "Both axes start at 0: what grows with s is a straight line, what grows with its square bends upward."


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


class CostOptions(LookOptions, total=False):
    """Keywords of `cost_curves`.

    Attributes:
        unit: of the costs: "bytes", "seconds", or "", the default, for a count.
        x_name: what lies along the axis.
        y_name: what the height measures.
        log: both axes logarithmic, the default, else both from 0 on.
        marks: places to draw as rings with their text.
        marked: where to draw a thin line from top to bottom, as at the chosen length; None, the default: nowhere.
        markers: draw a marker at each point, for numbers that were measured; False if not given.
        how_to_read: one sentence; "", the default, says what a slope is.
        notes: sentences under the title.
    """

    unit: str
    x_name: str
    y_name: str
    log: bool
    marks: Sequence[Mark]
    marked: float | None
    markers: bool
    how_to_read: str
    notes: Sequence[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class _CostLook(Look):
    """What `CostOptions` says, whole."""

    unit: str = ""
    x_name: str = "tokens s"
    y_name: str = "multiply-adds"
    log: bool = True
    marks: Sequence[Mark] = ()
    marked: float | None = None
    markers: bool = False
    how_to_read: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class _Checked:
    """A curve with its numbers as arrays."""

    curve: Curve
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def cost_curves(curves: Sequence[Curve], **options: Unpack[CostOptions]) -> go.Figure:
    """Draw costs over the length of a text; where both axes are logarithmic, growth as s^e is a line of slope e.

    Args:
        curves: one to seven of them, guides aside.
        **options: as `CostOptions` and `LookOptions` say.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: no line or too many, lengths that don't fit, a number that is not above 0, or an unknown unit.
    """
    look = _CostLook.of("cost_curves", options)
    lines = [_checked(curve) for curve in curves]
    n_lines = sum(not curve.guide for curve in curves)
    if not 1 <= n_lines <= MOST_LINES:
        raise ValueError(f"pass 1 to {MOST_LINES} lines beside guides, got {n_lines}")
    lengths = _ends([line.x for line in lines])
    line = [] if look.marked is None else [upright(float(look.marked), look.colours.hatch, "dot")]
    pieces = {"shapes": line, "annotations": [_name(mark, lengths[1], look) for mark in look.marks]}
    layout = _axes(lengths, _ends([line.y for line in lines]), look) | pieces
    legend = _legend_height([curve.name for curve in curves], look.label_size)
    height = 300 + 8 * look.label_size + legend
    return finish(_traces(lines, look), layout, look, _words(lines, lengths, look), height=height, top=legend)


def _checked(curve: Curve) -> _Checked:
    x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x) or not np.all(np.diff(x) > 0):
        raise ValueError(f"{curve.name}: expected as many costs as lengths, rising, got {x} and {y}")
    if not (np.all((x > 0) & np.isfinite(x)) and np.all((y > 0) & np.isfinite(y))):
        raise ValueError(f"{curve.name}: expected lengths and costs above 0, got {x} and {y}")
    return _Checked(curve, x, y)


def _ends(rows: Sequence[NDArray[np.float64]]) -> Ends:
    return min(float(row.min()) for row in rows), max(float(row.max()) for row in rows)


def _traces(lines: Sequence[_Checked], look: _CostLook) -> list[go.Scatter]:
    theme = look.colours
    styles = zip(cycle(candidate_colours(theme.name)), cycle(DASHES), cycle(SYMBOLS), strict=False)
    thin: Settings = {"mode": "lines", "line": {"color": theme.hatch, "width": 1.5, "dash": "dot"}, "hoverinfo": "skip"}
    traces = [_trace(line, look, thin if line.curve.guide else _style(*next(styles), look.markers)) for line in lines]
    return [*traces, _rings(look.marks, theme)] if look.marks else traces


def _style(colour: str, dash: str, symbol: str, markers: bool) -> Settings:
    mode = "lines+markers" if markers else "lines"
    line = {"color": colour, "width": 2.5, "dash": "solid" if markers else dash}
    return {"mode": mode, "line": line, "marker": {"symbol": symbol, "size": 9}}


def _trace(line: _Checked, look: _CostLook, style: Settings) -> go.Scatter:
    named = f"{escape(line.curve.name)}, {escape(look.x_name)}"
    texts = [f"{named} {x:,.0f}: {quantity(y, look.unit)}" for x, y in zip(line.x, line.y, strict=True)]
    place = {"x": line.x.astype(np.float32), "y": line.y.astype(np.float32), "name": escape(line.curve.name)}
    return go.Scatter(text=texts, hovertemplate="%{text}<extra></extra>", cliponaxis=False, **place, **style)


def _words(lines: Sequence[_Checked], lengths: Ends, look: _CostLook) -> Words:
    drawn = [line for line in lines if not line.curve.guide]
    costs = [f"{quantity(line.y[0], look.unit)} to {quantity(line.y[-1], look.unit)}" for line in drawn]
    ends = "; ".join(f"{line.curve.name}: {cost}" for line, cost in zip(drawn, costs, strict=True))
    named = "".join(f" {mark.text}: at {mark.x:,.0f}." for mark in look.marks)
    over = f"{look.y_name} over {look.x_name}, {lengths[0]:,.0f} to {lengths[1]:,.0f}"
    reading = READING_LOG if look.log else READING_LINEAR
    return Words(f"{look.opening}{over}. {ends}.{named}", look.how_to_read or reading, look.notes)


def _legend_height(names: Sequence[str], label_size: int) -> int:
    """Return the px that a legend of these names takes on a phone, in columns as wide as the longest name."""
    n_columns = max(1, int(PHONE / (45 + 0.55 * label_size * max(map(len, names)))))
    return round(1.75 * label_size * -(-len(names) // n_columns))


def _rings(marks: Sequence[Mark], theme: Theme) -> go.Scatter:
    x = np.array([mark.x for mark in marks], np.float32)
    y = np.array([mark.y for mark in marks], np.float32)
    ring = {"size": 15, "symbol": "circle-open", "color": theme.accent, "line": {"width": 3}}
    texts = {"text": [escape(mark.text) for mark in marks], "hovertemplate": "%{text}<extra></extra>"}
    return go.Scatter(x=x, y=y, mode="markers", showlegend=False, marker=ring, **texts)


def _name(mark: Mark, longest: float, look: _CostLook) -> Settings:
    """Return a mark's text, clear of the axis on its left."""
    place = (np.log10(mark.x), np.log10(mark.y)) if look.log else (mark.x, mark.y)
    left = mark.above and mark.x > longest / (1000 if look.log else 2)
    side = {"xanchor": "right", "xshift": -12} if left else {"xanchor": "left", "xshift": 12}
    text = {"text": wrap(mark.text, look.label_size, width=190), "font": {"size": look.label_size, "weight": 600}}
    ground = {"bgcolor": look.colours.page, "opacity": 0.95, "showarrow": False, "align": "left"}
    above = {"x": float(place[0]), "y": float(place[1]), "yanchor": "bottom" if mark.above else "top"}
    return side | text | ground | above


def _axes(lengths: Ends, costs: Ends, look: _CostLook) -> Settings:
    across = _axis(*lengths, "", look.log) | {"title": {"text": escape(look.x_name)}, "showline": True}
    return {"xaxis": across | LEANING, "yaxis": _axis(*costs, look.unit, look.log) | long_named_axis(look.y_name, look)}


def _axis(low: float, high: float, unit: str, log: bool) -> Settings:
    """Return an axis with a few named ticks."""
    places = _log_ticks(low, high, by=2 if unit == "" and high < 1e7 else 10) if log else _linear_ticks(high)
    ends = [np.log10(low) - 0.1, np.log10(high) + 0.1] if log else [0, 1.04 * high]
    ticks = {"tickvals": places.astype(np.float32), "ticktext": [quantity(place, unit) for place in places]}
    frame = {"showgrid": True, "fixedrange": True, "ticks": "outside", "tickmode": "array"}
    return ticks | frame | {"type": "log" if log else "linear", "range": [float(end) for end in ends]}


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
