"""What the rows and the columns of a map of weights add up to. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, token_axis
from attnviz.figures.full_names import named_in_full
from attnviz.figures.heatmap import MAX_SIDE
from attnviz.figures.theme import Settings, escape, finish, number, theme_of


def sum_bars(
    rows: ArrayLike,
    columns: ArrayLike,
    labels: Sequence[str],
    *,
    names: Sequence[str] = ("its row", "its column"),
    start: int = 0,
    title: str = "What rows and columns sum to",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw two bars a token: the sum of the weights it gives, its row, and of those it gets, its column.

    Args:
        rows: (tokens,) sums over keys, 1 without a learned sink.
        columns: (tokens,) sums over queries, from 0 to the number of queries.
        labels: text of each token; may repeat.
        names: what the legend calls rows and columns.
        start: index in the text of the first token.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the lengths don't agree, there are more than 256 tokens, or a sum is negative or not finite.
    """
    sums = [_checked(values, len(labels)) for values in (rows, columns)]
    look = theme_of(theme)
    pattern = {"shape": "/", "fgcolor": look.second, "bgcolor": look.page, "size": 6, "solidity": 0.35}
    markers: list[Settings] = [
        {"color": look.first, "line": {"width": 0}},
        {"color": look.second, "line": {"color": look.second, "width": 1}, "pattern": pattern},
    ]
    figure = go.Figure()
    for values, name, marker in zip(sums, names, markers, strict=True):
        hover = f"%{{x}} (%{{x:d}}): {escape(name)} sums to %{{y:.4~g}}<extra></extra>"
        place = positions(len(labels), start)
        figure.add_bar(x=place, y=values, name=escape(name), marker=marker, **named_in_full(hover, labels, "x"))
    layout: Settings = {
        "barmode": "group",
        "bargap": 0.2,
        "xaxis": token_axis(labels, start=start, title="token") | {"autotickangles": [0, -60], "showline": True},
        "yaxis": {"title": {"text": "sum of weights"}, "showgrid": True, "rangemode": "tozero", "fixedrange": True},
    }
    best = int(sums[1].argmax())
    low, high = (number(value) for value in (sums[0].min(), sums[0].max()))
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title}: rows sum to {low if low == high else f'{low} to {high}'}; the largest column is that of "
        f"{labels[best]}, {number(sums[1][best])}.",
        how_to_read="Over each token stand two sums: of the weights it gives to others, and of the weights that others "
        "give to it.",
        label_size=label_size,
        height=height or 250 + 8 * label_size,
        top=2 * label_size,
    )


def _checked(values: ArrayLike, n_tokens: int) -> NDArray[np.float32]:
    sums = np.asarray(values, np.float32)
    if sums.shape != (n_tokens,) or not 1 <= n_tokens <= MAX_SIDE:
        raise ValueError(f"expected one sum for each of 1 to {MAX_SIDE} tokens, got {sums.shape} for {n_tokens}")
    if not np.all(np.isfinite(sums) & (sums >= -1e-4)):
        raise ValueError(f"sums of weights are finite and from 0, got {sums}")
    return sums
