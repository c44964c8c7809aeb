"""How weights and gradients are spread: bars over counts that were made in core. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.theme import Settings, Theme, check_names, escape, finish, number, theme_of, wrap

NAMES = ("with 1/√d", "without 1/√d")
LOWEST_ON_LOG = 0.5  # a logarithmic axis of counts begins here, so that a single row is a visible bar

_FIXED: Settings = {"fixedrange": True, "ticks": "outside", "ticklen": 4}


def saturation_histogram(
    before: ArrayLike,
    after: ArrayLike | None,
    edges: ArrayLike,
    *,
    unit: str = "rows",
    value_name: str = "largest weight of the row",
    names: Sequence[str] = NAMES,
    left_out: str = "",
    n_not_finite: int = 0,
    log_counts: bool = False,
    count_range: tuple[float, float] | None = None,
    title: str = "How sharp the softmax is",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw how many rows (or cells) have which weight, with the factor 1/√d and without it.

    Rows at the right end look at one token alone. That is not always a dying softmax: a head at rest on the text's
    first token stands there too, so count rows that rest on it and all others apart, and draw both.

    Args:
        before: (bins,) counts with the factor.
        after: (bins,) counts without it; None: only `before` is drawn.
        edges: (bins + 1,) rising; bin i holds the values from edges[i] to edges[i + 1].
        unit: what was counted, in the plural, as "rows" or "allowed cells".
        value_name: what lies along the axis.
        names: what the legend calls before and after.
        left_out: a sentence on what was not counted, as "The first row, always 1, is left out."
        n_not_finite: how many values were no finite numbers and lie in no bin; named under the title.
        log_counts: counts on a logarithmic axis; empty bins stay empty.
        count_range: lowest and highest count on the axis, so that two figures compare; None: as needed.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, edges don't rise, or a count is negative.
    """
    return _histogram(
        before,
        after,
        edges,
        how_to_read=f"Each bar counts the {unit} whose {value_name} lies between the bar's two edges: the further "
        "right, the sharper the softmax.",
        unit=unit,
        value_name=value_name,
        names=names,
        left_out=left_out,
        n_not_finite=n_not_finite,
        log_values=False,
        log_counts=log_counts,
        count_range=count_range,
        title=title,
        theme=theme,
        label_size=label_size,
        height=height,
    )


def gradient_histogram(
    before: ArrayLike,
    after: ArrayLike | None,
    edges: ArrayLike,
    *,
    unit: str = "rows",
    value_name: str = "size of the softmax's gradient (Frobenius norm of its Jacobian)",
    names: Sequence[str] = NAMES,
    left_out: str = "",
    n_not_finite: int = 0,
    log_values: bool = False,
    log_counts: bool = False,
    count_range: tuple[float, float] | None = None,
    title: str = "How much the softmax answers to its scores",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw how many rows have which size of gradient through the softmax, with the factor 1/√d and without it.

    The size of a row's gradient is the Frobenius norm of the softmax's Jacobian, diag(a) - a aᵀ: 0 when one key has all
    the weight a, 1/2 when two keys share it, and near 0 again when many keys share it evenly.

    Args:
        before: (bins,) counts with the factor.
        after: (bins,) counts without it; None: only `before` is drawn.
        edges: (bins + 1,) rising, of the norm.
        unit: what was counted, in the plural.
        value_name: what lies along the axis, if it is another measure than the norm.
        names: what the legend calls before and after.
        left_out: a sentence on what was not counted.
        n_not_finite: how many values were no finite numbers and lie in no bin; named under the title.
        log_values: the norm on a logarithmic axis; the first edge must then be above 0.
        log_counts: counts on a logarithmic axis; empty bins stay empty.
        count_range: lowest and highest count on the axis, so that two figures compare; None: as needed.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, edges don't rise, or `log_values` with an edge at or below 0.
    """
    return _histogram(
        before,
        after,
        edges,
        how_to_read=f"Each bar counts the {unit} whose gradient has a size between the bar's two edges: at the left "
        "end a small change of the scores changes next to nothing.",
        unit=unit,
        value_name=value_name,
        names=names,
        left_out=left_out,
        n_not_finite=n_not_finite,
        log_values=log_values,
        log_counts=log_counts,
        count_range=count_range,
        title=title,
        theme=theme,
        label_size=label_size,
        height=height,
    )


def _histogram(
    before: ArrayLike,
    after: ArrayLike | None,
    edges: ArrayLike,
    *,
    how_to_read: str,
    unit: str,
    value_name: str,
    names: Sequence[str],
    left_out: str,
    n_not_finite: int,
    log_values: bool,
    log_counts: bool,
    count_range: tuple[float, float] | None,
    title: str,
    theme: str,
    label_size: int,
    height: int | None,
) -> go.Figure:
    check_names(names)
    bins, counts = _checked(before, after, edges)
    if log_values and bins[0] <= 0:
        raise ValueError(f"on a logarithmic axis the first edge must be above 0, got {bins[0]:g}")
    look = theme_of(theme)
    figure = _overlaid_bars(counts, bins, names, unit, look)
    layout = {
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": _value_axis(bins, value_name, label_size, log_values),
        "yaxis": _count_axis(unit, count_range, log_counts),
    }
    notes = _notes(counts, names, unit, left_out, n_not_finite)
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=_alt(title, counts, bins, names, unit, value_name),
        how_to_read=how_to_read,
        notes=notes,
        label_size=label_size,
        height=height or 290 + 8 * label_size,
        top=2 * label_size,
    )


def _checked(
    before: ArrayLike, after: ArrayLike | None, edges: ArrayLike
) -> tuple[NDArray[np.float64], list[NDArray[np.int64]]]:
    bins = np.asarray(edges, dtype=np.float64)
    if bins.ndim != 1 or len(bins) < 2 or not np.all(np.diff(bins) > 0):
        raise ValueError(f"edges must be at least two numbers, each above the one before, got {bins}")
    counts = [np.asarray(given) for given in ((before,) if after is None else (before, after))]
    for count in counts:
        if count.shape != (len(bins) - 1,):
            raise ValueError(f"{len(bins)} edges make {len(bins) - 1} bins, got counts of shape {count.shape}")
        if np.any(count < 0) or np.any(count != np.rint(count)):
            raise ValueError(f"counts are whole numbers from 0, got {count}")
    return bins, [count.astype(np.int64) for count in counts]


def _overlaid_bars(
    counts: Sequence[NDArray[np.int64]], bins: NDArray[np.float64], names: Sequence[str], unit: str, look: Theme
) -> go.Figure:
    """Full bars for the first counts, hatched and outlined ones over them for the second."""
    full = {"color": look.first, "opacity": 0.75, "line": {"width": 0}}
    hatched = {
        "color": "rgba(0,0,0,0)",
        "line": {"color": look.second, "width": 2},
        "pattern": {"shape": "/", "fgcolor": look.second, "bgcolor": "rgba(0,0,0,0)", "size": 7, "solidity": 0.25},
    }
    figure = go.Figure()
    for count, name, marker in zip(counts, names, (full, hatched), strict=False):
        filled = count > 0  # an outlined bar of height 0 would be a line along the axis
        hover = f"%{{customdata[0]:.3~g}} to %{{customdata[1]:.3~g}}: %{{y}} {escape(unit)}, {escape(name)}"
        figure.add_bar(
            x=((bins[:-1] + bins[1:]) / 2)[filled].astype(np.float32),
            width=np.diff(bins)[filled].astype(np.float32),
            y=count[filled].astype(np.int32),
            customdata=np.stack([bins[:-1], bins[1:]], axis=1)[filled].astype(np.float32),  # (filled bins, 2)
            name=escape(name),
            marker=marker,
            showlegend=True,
            hovertemplate=hover + "<extra></extra>",
        )
    return figure


def _value_axis(bins: NDArray[np.float64], value_name: str, label_size: int, log_values: bool) -> Settings:
    axis = {"title": {"text": wrap(value_name, label_size, width=300)}, "showline": True, **_FIXED}
    if log_values:
        decades = {"type": "log", "dtick": 1, "exponentformat": "none"}
        return axis | decades | {"range": np.log10(bins[[0, -1]]).tolist()}
    return axis | {"range": bins[[0, -1]].tolist()}


def _count_axis(unit: str, count_range: tuple[float, float] | None, log_counts: bool) -> Settings:
    axis = {"title": {"text": escape(f"number of {unit}")}, "showgrid": True, **_FIXED}
    if log_counts:
        axis |= {"type": "log", "dtick": 1, "autorangeoptions": {"include": LOWEST_ON_LOG}}
    else:
        axis |= {"rangemode": "tozero"}
    if count_range is not None:
        ends = np.log10(np.maximum(count_range, LOWEST_ON_LOG)) if log_counts else np.array(count_range)
        axis["range"] = ends.tolist()
    return axis


def _notes(
    counts: Sequence[NDArray[np.int64]], names: Sequence[str], unit: str, left_out: str, n_not_finite: int
) -> list[str]:
    totals = [int(count.sum()) for count in counts]
    if len(set(totals)) == 1:
        counted = f"{totals[0]:,} {unit} counted."
    else:
        counted = (
            ", ".join(f"{total:,} {unit} {name}" for total, name in zip(totals, names, strict=False)) + " counted."
        )
    notes = [f"{counted} {left_out}".strip()]
    if n_not_finite:
        notes.append(f"Not drawn: values that are not finite numbers, {n_not_finite:,} of them.")
    return notes


def _alt(
    title: str,
    counts: Sequence[NDArray[np.int64]],
    bins: NDArray[np.float64],
    names: Sequence[str],
    unit: str,
    value_name: str,
) -> str:
    parts = [f"{title}: histogram of the {value_name}."]
    for count, name in zip(counts, names, strict=False):
        fullest = int(count.argmax())
        low, high = number(bins[fullest]), number(bins[fullest + 1])
        parts.append(f"{name}: the fullest bin, {low} to {high}, has {count[fullest]:,} {unit}.")
    return " ".join(parts)
