"""How weights, gradients and scores are spread: bars over counts that were made in core. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import TICKED, long_named_axis, named_axis
from attnviz.figures.fills import check_names, full, hatched
from attnviz.figures.look import CLEAR, Look, LookOptions, Words, finish
from attnviz.figures.theme import Settings, Theme, escape, number

NAMES = ("with 1/√d", "without 1/√d")
LOWEST_ON_LOG = 0.5  # a logarithmic axis of counts begins here, so that a single row is a visible bar
Curve = tuple[str, ArrayLike, ArrayLike]  # name, where, density there
DASHES = ("solid", "dash")
GRADIENT = "size of the softmax's gradient (Frobenius norm of its Jacobian)"


class HistogramOptions(LookOptions, total=False):
    """Keywords of both histograms.

    Attributes:
        unit: what was counted, in the plural, as "allowed cells"; "rows" if not given.
        value_name: what lies along the axis.
        names: what the legend calls before and after.
        left_out: a sentence on what was not counted, as "The first row, always 1, is left out."
        n_not_finite: how many values were no finite numbers and lie in no bin; named under the title.
        log_counts: counts on a logarithmic axis; empty bins stay empty. False if not given.
        count_range: lowest and highest count on the axis, so that two figures compare; None, the default: as needed.
    """

    unit: str
    value_name: str
    names: Sequence[str]
    left_out: str
    n_not_finite: int
    log_counts: bool
    count_range: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _HistogramLook(Look):
    """What `HistogramOptions` says, checked and whole."""

    unit: str = "rows"
    value_name: str
    names: Sequence[str] = NAMES
    left_out: str = ""
    n_not_finite: int = 0
    log_counts: bool = False
    count_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.names)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Counts (bins,) of each of one or two series, between edges (bins + 1,)."""

    edges: NDArray[np.float64]
    counts: Sequence[NDArray[np.int64]]


def saturation_histogram(
    before: ArrayLike, after: ArrayLike | None, edges: ArrayLike, **options: Unpack[HistogramOptions]
) -> go.Figure:
    """Draw how many rows (or cells) have which weight, with the factor 1/√d and without it.

    Rows at the right end look at one token alone. That is not always a dying softmax: a head at rest on the text's
    first token stands there too, so count rows that rest on it and all others apart, and draw both.

    Args:
        before: (bins,) counts with the factor.
        after: (bins,) counts without it; None: only `before` is drawn.
        edges: (bins + 1,) rising; bin i holds the values from edges[i] to edges[i + 1].
        **options: as `HistogramOptions` and `LookOptions` say; the title is "How sharp the softmax is".

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, edges don't rise, or a count is negative.
    """
    own = {"title": "How sharp the softmax is", "value_name": "largest weight of the row"}
    look = _HistogramLook.of("saturation_histogram", options, **own)
    reading = (
        f"Each bar counts the {look.unit} whose {look.value_name} lies between the bar's two edges: the further "
        "right, the sharper the softmax."
    )
    return _histogram(_checked(before, after, edges), look, reading)


def gradient_histogram(
    before: ArrayLike,
    after: ArrayLike | None,
    edges: ArrayLike,
    *,
    log_values: bool = False,
    **options: Unpack[HistogramOptions],
) -> go.Figure:
    """Draw how many rows have which size of gradient through the softmax, with the factor 1/√d and without it.

    The size of a row's gradient is the Frobenius norm of the softmax's Jacobian, diag(a) - a aᵀ: 0 when one key has all
    the weight a, 1/2 when two keys share it, and near 0 again when many keys share it evenly.

    Args:
        before: (bins,) counts with the factor.
        after: (bins,) counts without it; None: only `before` is drawn.
        edges: (bins + 1,) rising, of the norm.
        log_values: the norm on a logarithmic axis; the first edge must then be above 0.
        **options: as `HistogramOptions` and `LookOptions` say; the title is "How much the softmax answers to its
            scores".

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, edges don't rise, or `log_values` with an edge at or below 0.
    """
    title = "How much the softmax answers to its scores"
    look = _HistogramLook.of("gradient_histogram", options, title=title, value_name=GRADIENT)
    counted = _checked(before, after, edges)
    if log_values and counted.edges[0] <= 0:
        raise ValueError(f"on a logarithmic axis the first edge must be above 0, got {counted.edges[0]:g}")
    reading = (
        f"Each bar counts the {look.unit} whose gradient has a size between the bar's two edges: at the left "
        "end a small change of the scores changes next to nothing."
    )
    return _histogram(counted, look, reading, log_values=log_values)


def score_histogram(
    counts: ArrayLike,
    edges: ArrayLike,
    curves: Sequence[Curve] = (),
    *,
    unit: str = "scores",
    value_name: str = "q·k",
    value_range: tuple[float, float] | None = None,
    second: bool = False,
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw how scores are spread, so that the area of all bars is 1, and densities over it as lines.

    Args:
        counts: (bins,) how many scores each bin has.
        edges: (bins + 1,) rising.
        curves: at most two densities, (name, where, density there); the second one is dashed.
        unit: what was counted, in the plural.
        value_name: what lies along the axis.
        value_range: ends of that axis, so that two figures compare; None: the outer edges.
        second: draw the bars in the look of what is compared with, hatched, as the other histograms do.
        **options: as `LookOptions` says; the title is "How large the scores are".

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, nothing was counted, or there are more than two curves.
    """
    look = Look.of("score_histogram", options, title="How large the scores are")
    counted = _checked_one(counts, edges)
    if len(curves) > len(DASHES):
        raise ValueError(f"pass at most {len(DASHES)} curves, got {len(curves)}")
    ends = value_range or (float(counted.edges[0]), float(counted.edges[-1]))
    bars = _density_bars(counted, unit, _density_marker(look.colours, second))
    traces = [bars, *(_density_line(*each, look.colours.text) for each in zip(curves, DASHES, strict=False))]
    layout = {"bargap": 0, "showlegend": bool(curves)} | _density_axes(counted, value_name, ends, look)
    words = _density_words(counted, curves, unit, value_name, look.title)
    return finish(
        traces, layout, look, words, height=270 + 8 * look.label_size, top=2 * look.label_size if curves else 0
    )


def _histogram(counted: _Counted, look: _HistogramLook, reading: str, *, log_values: bool = False) -> go.Figure:
    axes = {"xaxis": _value_axis(counted.edges, log_values, look), "yaxis": _count_axis(look)}
    layout = {"barmode": "overlay", "bargap": 0} | axes
    words = Words(_alt(counted, look), reading, _notes(counted.counts, look))
    return finish(
        _overlaid_bars(counted, look), layout, look, words, height=290 + 8 * look.label_size, top=2 * look.label_size
    )


def _checked(before: ArrayLike, after: ArrayLike | None, edges: ArrayLike) -> _Counted:
    bins = _checked_edges(edges)
    counts = [np.asarray(given) for given in ((before,) if after is None else (before, after))]
    for count in counts:
        if count.shape != (len(bins) - 1,):
            raise ValueError(f"{len(bins)} edges make {len(bins) - 1} bins, got counts of shape {count.shape}")
        if np.any(count < 0) or np.any(count != np.rint(count)):
            raise ValueError(f"counts are whole numbers from 0, got {count}")
    return _Counted(bins, [count.astype(np.int64) for count in counts])


def _overlaid_bars(counted: _Counted, look: _HistogramLook) -> list[go.Bar]:
    """Full bars for the first counts, hatched and outlined ones over them for the second."""
    theme, bins = look.colours, counted.edges
    outlined = {"color": CLEAR, "line": {"color": theme.second, "width": 2}}
    markers = (full(theme.first) | {"opacity": 0.75}, hatched(theme.second, CLEAR, size=7, solidity=0.25) | outlined)
    between = f"%{{customdata[0]:.3~g}} to %{{customdata[1]:.3~g}}: %{{y}} {escape(look.unit)}"
    bars = []
    for count, name, marker in zip(counted.counts, look.names, markers, strict=False):
        hover = f"{between}, {escape(name)}<extra></extra>"
        place = _on_bins(bins, count, bins[:-1], bins[1:]) | {"y": count[count > 0].astype(np.int32)}
        bars.append(go.Bar(name=escape(name), marker=marker, showlegend=True, hovertemplate=hover, **place))
    return bars


def _value_axis(bins: NDArray[np.float64], log_values: bool, look: _HistogramLook) -> Settings:
    axis = long_named_axis(look.value_name, look) | TICKED | {"showline": True}
    if log_values:
        decades = {"type": "log", "dtick": 1, "exponentformat": "none"}
        return axis | decades | {"range": np.log10(bins[[0, -1]]).tolist()}
    return axis | {"range": bins[[0, -1]].tolist()}


def _count_axis(look: _HistogramLook) -> Settings:
    axis = named_axis(f"number of {look.unit}") | TICKED | {"showgrid": True}
    if look.log_counts:
        axis |= {"type": "log", "dtick": 1, "autorangeoptions": {"include": LOWEST_ON_LOG}}
    else:
        axis |= {"rangemode": "tozero"}
    if look.count_range is not None:
        ends = np.array(look.count_range)
        axis["range"] = (np.log10(np.maximum(ends, LOWEST_ON_LOG)) if look.log_counts else ends).tolist()
    return axis


def _notes(counts: Sequence[NDArray[np.int64]], look: _HistogramLook) -> list[str]:
    totals = [f"{int(count.sum()):,} {look.unit}" for count in counts]
    if len(set(totals)) == 1:
        counted = totals[0]
    else:
        counted = ", ".join(f"{total} {name}" for total, name in zip(totals, look.names, strict=False))
    notes = [f"{counted} counted. {look.left_out}".strip()]
    if look.n_not_finite:
        notes.append(f"Not drawn: values that are not finite numbers, {look.n_not_finite:,} of them.")
    return notes


def _alt(counted: _Counted, look: _HistogramLook) -> str:
    parts = [f"{look.title}: histogram of the {look.value_name}."]
    for count, name in zip(counted.counts, look.names, strict=False):
        fullest = int(count.argmax())
        low, high = number(counted.edges[fullest]), number(counted.edges[fullest + 1])
        parts.append(f"{name}: the fullest bin, {low} to {high}, has {count[fullest]:,} {look.unit}.")
    return " ".join(parts)


def _checked_one(counts: ArrayLike, edges: ArrayLike) -> _Counted:
    numbers = np.asarray(counts)
    bins = _checked_edges(edges)
    if numbers.shape != (len(bins) - 1,) or np.any(numbers < 0) or not numbers.sum() > 0:
        raise ValueError(f"expected {len(bins) - 1} counts from 0, one above 0 at least, got {numbers}")
    return _Counted(bins, [numbers.astype(np.int64)])


def _heights(counted: _Counted) -> NDArray[np.float64]:
    """Return (bins,) so that the area of all bars is 1."""
    counts = counted.counts[0]
    return np.asarray(counts / (counts.sum() * np.diff(counted.edges)))


def _density_marker(theme: Theme, second: bool) -> Settings:
    return hatched(theme.second, CLEAR) | {"color": CLEAR} if second else full(theme.first) | {"opacity": 0.6}


def _density_bars(counted: _Counted, unit: str, marker: Settings) -> go.Bar:
    bins, (counts,) = counted.edges, counted.counts
    between = "%{customdata[0]:.3~g} to %{customdata[1]:.3~g}"
    hover = f"{between}: %{{customdata[2]:,d}} {escape(unit)}<extra></extra>"
    place = _on_bins(bins, counts, bins[:-1], bins[1:], counts)
    heights = _heights(counted)[counts > 0].astype(np.float32)
    return go.Bar(y=heights, marker=marker, name=escape(unit), hovertemplate=hover, **place)


def _density_line(curve: Curve, dash: str, colour: str) -> go.Scatter:
    name, x, y = curve
    place = {"x": np.asarray(x, np.float32), "y": np.asarray(y, np.float32)}
    line = {"color": colour, "width": 2, "dash": dash}
    return go.Scatter(mode="lines", name=escape(name), line=line, hoverinfo="skip", **place)


def _density_axes(counted: _Counted, value_name: str, ends: tuple[float, float], look: Look) -> Settings:
    across = long_named_axis(value_name, look) | TICKED | {"range": list(ends), "showline": True}
    up = {"range": [0, 1.15 * float(_heights(counted).max())], "showgrid": True, "rangemode": "tozero"}
    return {"xaxis": across, "yaxis": named_axis("density") | up}


def _density_words(counted: _Counted, curves: Sequence[Curve], unit: str, value_name: str, title: str) -> Words:
    filled = np.flatnonzero(counted.counts[0])
    low, high = number(counted.edges[filled[0]]), number(counted.edges[filled[-1] + 1])
    lines = f" Lines: {', '.join(name for name, _, _ in curves)}." if curves else ""
    return Words(
        alt=f"{title}: histogram of {value_name}, from {low} to {high}.{lines}",
        how_to_read=f"Each bar is as high as the share of {unit} between its two edges, divided by its width, so that "
        "all bars together have the area 1, as the area under a density has.",
        notes=[f"{int(counted.counts[0].sum()):,} {unit} counted."],
    )


def _checked_edges(edges: ArrayLike) -> NDArray[np.float64]:
    """Return the edges of bins.

    Raises:
        ValueError: they don't rise, or make no bin.
    """
    bins = np.asarray(edges, dtype=np.float64)
    if bins.ndim != 1 or len(bins) < 2 or not np.all(np.diff(bins) > 0):
        raise ValueError(f"edges must be at least two numbers, each above the one before, got {bins}")
    return bins


def _on_bins(
    bins: NDArray[np.float64], counts: NDArray[np.int64], *said: NDArray[np.floating | np.integer]
) -> Settings:
    """Return where bars stand and what their hover texts may say, for the bins that hold something.

    A bar of height 0 is left out: outlined, it would be a line along the axis.

    Args:
        bins: (bins + 1,) edges.
        counts: (bins,) how many numbers each bin holds.
        *said: (bins,) numbers for hover texts.
    """
    filled = counts > 0
    return {
        "x": ((bins[:-1] + bins[1:]) / 2)[filled].astype(np.float32),
        "width": np.diff(bins)[filled].astype(np.float32),
        "customdata": np.stack(said, axis=1)[filled].astype(np.float32),  # (filled bins, numbers)
    }
