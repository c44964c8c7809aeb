"""How scores are spread: a histogram with the density that theory gives for it. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.theme import Settings, Theme, escape, finish, number, theme_of, wrap

Curve = tuple[str, ArrayLike, ArrayLike]  # name, where, density there
DASHES = ("solid", "dash")


def score_histogram(
    counts: ArrayLike,
    edges: ArrayLike,
    curves: Sequence[Curve] = (),
    *,
    unit: str = "scores",
    value_name: str = "q·k",
    value_range: tuple[float, float] | None = None,
    second: bool = False,
    title: str = "How large the scores are",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
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
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: counts and edges don't fit, nothing was counted, or there are more than two curves.
    """
    bins, numbers = _checked(counts, edges)
    if len(curves) > len(DASHES):
        raise ValueError(f"pass at most {len(DASHES)} curves, got {len(curves)}")
    look = theme_of(theme)
    heights = numbers / (numbers.sum() * np.diff(bins))  # (bins,)
    figure = go.Figure(_bars(heights, numbers, bins, unit, look, second))
    for (name, x, y), dash in zip(curves, DASHES, strict=False):
        figure.add_scatter(
            x=np.asarray(x, np.float32),
            y=np.asarray(y, np.float32),
            mode="lines",
            name=escape(name),
            line={"color": look.text, "width": 2, "dash": dash},
            hoverinfo="skip",
        )
    layout: Settings = {
        "bargap": 0,
        "showlegend": bool(curves),
        "xaxis": {"title": {"text": wrap(value_name, label_size, width=300)}, "showline": True, "fixedrange": True}
        | {"range": list(value_range or (float(bins[0]), float(bins[-1]))), "ticks": "outside", "ticklen": 4},
        "yaxis": {"title": {"text": "density"}, "showgrid": True, "rangemode": "tozero", "fixedrange": True}
        | {"range": [0, 1.15 * float(heights.max())]},
    }
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=_alt(title, numbers, bins, value_name, curves),
        how_to_read=f"Each bar is as high as the share of {unit} between its two edges, divided by its width, so that "
        "all bars together have the area 1, as the area under a density has.",
        label_size=label_size,
        height=height or 270 + 8 * label_size,
        top=2 * label_size if curves else 0,
        notes=[f"{int(numbers.sum()):,} {unit} counted."],
    )


def _checked(counts: ArrayLike, edges: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    bins, numbers = np.asarray(edges, np.float64), np.asarray(counts)
    if bins.ndim != 1 or len(bins) < 2 or not np.all(np.diff(bins) > 0):
        raise ValueError(f"edges must be at least two numbers, each above the one before, got {bins}")
    if numbers.shape != (len(bins) - 1,) or np.any(numbers < 0) or not numbers.sum() > 0:
        raise ValueError(f"expected {len(bins) - 1} counts from 0, one above 0 at least, got {numbers}")
    return bins, numbers.astype(np.int64)


def _bars(
    heights: NDArray[np.float64],
    counts: NDArray[np.int64],
    bins: NDArray[np.float64],
    unit: str,
    look: Theme,
    second: bool,
) -> go.Bar:
    marker: Settings = {"color": look.first, "opacity": 0.6, "line": {"width": 0}}
    if second:
        pattern = {"shape": "/", "fgcolor": look.second, "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.35}
        marker = {"color": "rgba(0,0,0,0)", "line": {"color": look.second, "width": 1}, "pattern": pattern}
    filled = counts > 0
    return go.Bar(
        x=((bins[:-1] + bins[1:]) / 2)[filled].astype(np.float32),
        width=np.diff(bins)[filled].astype(np.float32),
        y=heights[filled].astype(np.float32),
        customdata=np.stack([bins[:-1], bins[1:], counts], axis=1)[filled].astype(np.float32),
        marker=marker,
        name=escape(unit),
        hovertemplate=f"%{{customdata[0]:.3~g}} to %{{customdata[1]:.3~g}}: %{{customdata[2]:,d}} {escape(unit)}"
        "<extra></extra>",
    )


def _alt(title: str, counts: NDArray[np.int64], bins: NDArray[np.float64], value_name: str, curves: Sequence[Curve]):
    low, high = (number(bins[place]) for place in (np.flatnonzero(counts)[0], np.flatnonzero(counts)[-1] + 1))
    lines = f" Lines: {', '.join(name for name, _, _ in curves)}." if curves else ""
    return f"{title}: histogram of {value_name}, from {low} to {high}.{lines}"
