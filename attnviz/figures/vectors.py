"""Vectors as maps: a row a token, or a column a token that is kept. Uses NumPy and plotly."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import LEANING, MAX_SIDE, named_axis, positions, token_axis, tokens_down
from attnviz.figures.full_names import unseen_names
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import row_outline
from attnviz.figures.scales import beyond_colours, scaled
from attnviz.figures.theme import Floats, Settings, escape, number

COMPONENTS = (
    "Each row is a token's vector, each cell one of its numbers: purple above 0, orange below, and the colour between "
    "them is 0."
)


def component_map(
    vectors: ArrayLike,
    labels: Sequence[str],
    *,
    value_range: float | None = None,
    bar_title: str = "component",
    row_title: str = "token",
    start: int = 0,
    marked: Sequence[int] = (),
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw one vector a row, or the difference of two, a cell for each component.

    Args:
        vectors: (tokens, components), finite.
        labels: text of each token; may repeat.
        value_range: the largest coloured size, on both sides of 0; None: the largest there is. The colour bar marks an
            end with values beyond it, and `how_to_read` counts them.
        bar_title: what the colours measure.
        row_title: what the rows are.
        start: index in the text of the first token.
        marked: indices in the text of tokens whose rows get a thin outline.
        **options: as `LookOptions` says; the height follows from the number of rows.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the shapes don't fit, there are more than 256 rows or columns, or a number is not finite.
    """
    look = Look.of("component_map", options)
    values = _checked_vectors(vectors, len(labels))
    largest = value_range or float(np.abs(values).max()) or 1.0
    ends = (-largest, largest)
    colours = scaled(look.colours.signed, ends, look, bar_title, beyond=values)
    down = tokens_down(labels, start=start, title=row_title)
    outlines = [row_outline(token - start, values.shape[1], look.colours.accent) for token in marked]
    layout = _row_axes(values.shape[1], down) | {"shapes": outlines}
    words = _component_words(values, labels, look.opening + bar_title, beyond_colours(values, ends))
    height = 90 + 8 * look.label_size + max(14, min(30, 360 // len(labels))) * len(labels)
    traces = _rows(values, labels, start, colours)
    return finish(traces, layout, look, words, height=height, top=4 * look.label_size)


def cache_bands(
    sizes: ArrayLike,
    bands: Sequence[str],
    labels: Sequence[str],
    *,
    value_range: tuple[float, float] | None = None,
    new: int = 0,
    start: int = 0,
    bar_title: str = "size",
    **options: Unpack[LookOptions],
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
        **options: as `LookOptions` says; the height follows from the number of bands.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the shapes don't fit, there are more than 256 tokens, or a size is negative or not finite.
    """
    look = Look.of("cache_bands", options)
    values = _checked_sizes(sizes, (len(bands), len(labels)), new)
    colours = scaled(look.colours.measures, value_range or (0.0, float(values.max()) or 1.0), look, bar_title)
    across = token_axis(labels, start=start, title="token") | LEANING | {"fixedrange": True}
    frame = [_frame(len(labels) - new, len(labels), len(bands), look.colours.accent)] if new else []
    layout = {"xaxis": across, "yaxis": tokens_down(bands), "shapes": frame}
    words = _band_words(values, new, look.opening + bar_title)
    height = 110 + 8 * look.label_size + 30 * len(bands)
    traces = _bands(values, labels, start, bar_title, colours)
    return finish(traces, layout, look, words, height=height, top=4 * look.label_size)


def _checked_vectors(vectors: ArrayLike, n_tokens: int) -> Floats:
    values = np.asarray(vectors, np.float32)
    if values.ndim != 2 or len(values) != n_tokens or 0 in values.shape:
        raise ValueError(f"expected vectors ({n_tokens} tokens, components) as the labels say, got {values.shape}")
    if max(values.shape) > MAX_SIDE:
        raise ValueError(f"a map has at most {MAX_SIDE} rows and columns, got {values.shape}: pass a part of it")
    if not np.isfinite(values).all():
        raise ValueError("expected finite components, got NaN or infinity")
    return values


def _rows(values: Floats, labels: Sequence[str], start: int, colours: Settings) -> list[go.Heatmap]:
    place = {"x": positions(values.shape[1]), "y": positions(len(labels), start)}
    hover = "%{y} (%{y:d}), component %{x}: %{z:+.3~g}<extra></extra>"
    drawn = go.Heatmap(z=values, hovertemplate=hover, **place, **colours)
    return [drawn, *unseen_names(drawn, values, rows=labels)]


def _row_axes(n_components: int, down: Settings) -> Settings:
    frame = {"showline": True, "mirror": True, "ticks": "outside"}
    across = named_axis("component") | {"range": [-0.5, n_components - 0.5]}
    return {"xaxis": across | frame, "yaxis": down | frame}


def _component_words(values: Floats, labels: Sequence[str], what: str, asides: Sequence[str]) -> Words:
    row, column = divmod(int(np.abs(values).argmax()), values.shape[1])
    largest = f" Largest: component {column} of {labels[row]}, {number(values[row, column])}."
    zero = int((values == 0).all(axis=1).sum())
    still = f" Rows that are 0 throughout: {zero}." if zero else ""
    alt = f"{what}, {len(values)} rows, {values.shape[1]} columns.{largest}{still}"
    return Words(alt, COMPONENTS, asides=asides)


def _checked_sizes(sizes: ArrayLike, expected: tuple[int, int], new: int) -> Floats:
    n_bands, n_tokens = expected
    values = np.asarray(sizes, np.float32)
    if values.shape != expected or 0 in values.shape or n_tokens > MAX_SIDE:
        raise ValueError(
            f"expected sizes ({n_bands} bands, {n_tokens} tokens), at most {MAX_SIDE} tokens, got {values.shape}"
        )
    if not np.all(np.isfinite(values) & (values >= 0)) or not 0 <= new <= n_tokens:
        raise ValueError("expected finite sizes from 0 up, and no more new tokens than there are")
    return values


def _bands(values: Floats, labels: Sequence[str], start: int, bar_title: str, colours: Settings) -> list[go.Heatmap]:
    place: Settings = {"x": positions(len(labels), start), "y": positions(len(values)), "xgap": 1, "ygap": 3}
    hover = f"%{{y}}, %{{x}} (%{{x:d}}): {escape(bar_title)} %{{z:.3~g}}<extra></extra>"
    drawn = go.Heatmap(z=values, hovertemplate=hover, **place, **colours)
    return [drawn, *unseen_names(drawn, values, columns=labels)]


def _frame(first: int, end: int, n_bands: int, colour: str) -> Settings:
    place = {"x0": first - 0.5, "x1": end - 0.5, "y0": -0.5, "y1": n_bands - 0.5}
    return {"type": "rect", "xref": "x", "yref": "y", "line": {"color": colour, "width": 3}} | place


def _band_words(values: Floats, new: int, what: str) -> Words:
    n_bands, n_tokens = values.shape
    return Words(
        alt=f"{what} of {n_tokens} kept vectors in each of {n_bands} bands, "
        f"from {number(values.min())} to {number(values.max())}; {new} new at the right end.",
        how_to_read="Each cell is the vector kept for one token, coloured by its size; the framed ones at the right "
        "are new, all others are what they were before.",
    )
