"""Vectors that are kept, one for each token, as bands that grow to the right: colour is their size. Uses plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import positions, token_axis
from attnviz.figures.colour import sequential
from attnviz.figures.full_names import unseen_names
from attnviz.figures.heatmap import MAX_SIDE
from attnviz.figures.theme import Settings, colour_bar, escape, finish, number, theme_of


def cache_bands(
    sizes: ArrayLike,
    bands: Sequence[str],
    labels: Sequence[str],
    *,
    value_range: tuple[float, float] | None = None,
    new: int = 0,
    start: int = 0,
    bar_title: str = "size",
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw a band for each key/value head, a cell for each token whose vector is kept, new ones framed at the end.

    Args:
        sizes: (bands, tokens) from 0 up, the norm of each kept vector.
        bands: what each band is called.
        labels: text of each token; may repeat.
        value_range: lowest and highest coloured size; None: 0 to the largest.
        new: how many tokens at the right end are new.
        start: index in the text of the first token.
        bar_title: what the colours measure.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the number of bands.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the shapes don't fit, there are more than 256 tokens, or a size is negative or not finite.
    """
    values = np.asarray(sizes, np.float32)
    if values.shape != (len(bands), len(labels)) or 0 in values.shape or values.shape[1] > MAX_SIDE:
        raise ValueError(
            f"expected sizes ({len(bands)} bands, {len(labels)} tokens), at most {MAX_SIDE} tokens, got {values.shape}"
        )
    if not np.all(np.isfinite(values) & (values >= 0)) or not 0 <= new <= len(labels):
        raise ValueError("expected finite sizes from 0 up, and no more new tokens than there are")
    look = theme_of(theme)
    low, high = value_range or (0.0, float(values.max()) or 1.0)
    figure = go.Figure(
        go.Heatmap(
            x=positions(len(labels), start),
            y=positions(len(bands)),
            z=values,
            zmin=low,
            zmax=high,
            xgap=1,
            ygap=3,
            colorscale=sequential(look.measure),
            colorbar=colour_bar(bar_title, label_size, low, high),
            hovertemplate=f"%{{y}}, %{{x}} (%{{x:d}}): {escape(bar_title)} %{{z:.3~g}}<extra></extra>",
        )
    )
    figure.add_traces(unseen_names(figure.data[0], values, columns=labels))
    layout: Settings = {
        "xaxis": token_axis(labels, start=start, title="token") | {"autotickangles": [0, -60], "fixedrange": True},
        "yaxis": token_axis(bands, title="") | {"range": [len(bands) - 0.5, -0.5], "fixedrange": True, "ticks": ""},
        "shapes": [_frame(len(labels) - new, len(labels), len(bands), look.accent)] if new else [],
    }
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}{bar_title} of {len(labels)} kept vectors in each of {len(bands)} bands, "
        f"from {number(values.min())} to {number(values.max())}; {new} new at the right end.",
        how_to_read="Each cell is the vector kept for one token, coloured by its size; the framed ones at the right "
        "are new, all others are what they were before.",
        label_size=label_size,
        height=height or 110 + 8 * label_size + 30 * len(bands),
        top=4 * label_size,
    )


def _frame(first: int, end: int, n_bands: int, colour: str) -> Settings:
    place = {"x0": first - 0.5, "x1": end - 0.5, "y0": -0.5, "y1": n_bands - 0.5}
    return {"type": "rect", "xref": "x", "yref": "y", "line": {"color": colour, "width": 3}} | place
