"""Vectors as a map: a row a token, a column a component, orange below 0 and purple above. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, token_axis
from attnviz.figures.full_names import unseen_names
from attnviz.figures.heatmap import MAX_SIDE, beyond, beyond_colours
from attnviz.figures.marks import row_outline
from attnviz.figures.theme import Settings, colour_bar, finish, number, theme_of


def component_map(
    vectors: ArrayLike,
    labels: Sequence[str],
    *,
    value_range: float | None = None,
    bar_title: str = "component",
    row_title: str = "token",
    start: int = 0,
    marked: Sequence[int] = (),
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
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
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the number of rows.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the shapes don't fit, there are more than 256 rows or columns, or a number is not finite.
    """
    values = _checked(vectors, len(labels))
    look = theme_of(theme)
    largest = value_range or float(np.abs(values).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            x=positions(values.shape[1]),
            y=positions(len(labels), start),
            z=values,
            zmin=-largest,
            zmax=largest,
            colorscale=look.signed,
            colorbar=colour_bar(bar_title, label_size, -largest, largest, beyond=beyond(values, -largest, largest)),
            hovertemplate="%{y} (%{y:d}), component %{x}: %{z:+.3~g}<extra></extra>",
        )
    )
    figure.add_traces(unseen_names(figure.data[0], values, rows=labels))
    down = token_axis(labels, start=start, title=row_title)
    layout: Settings = {
        "xaxis": {"title": {"text": "component"}, "range": [-0.5, values.shape[1] - 0.5], "ticks": "outside"}
        | {"showline": True, "mirror": True, "fixedrange": True},
        "yaxis": down | {"range": [len(labels) - 0.5, -0.5], "showline": True, "mirror": True, "fixedrange": True},
    }
    layout |= {"shapes": [row_outline(token - start, values.shape[1], look.accent) for token in marked]}
    needed = 90 + 8 * label_size + max(14, min(30, 360 // len(labels))) * len(labels)
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=_alt(values, labels, title, bar_title),
        how_to_read="Each row is a token's vector, each cell one of its numbers: purple above 0, orange below, and the "
        "colour between them is 0.",
        label_size=label_size,
        height=height or needed,
        asides=beyond_colours(values, -largest, largest),
        top=4 * label_size,
    )


def _checked(vectors: ArrayLike, n_tokens: int) -> NDArray[np.float32]:
    values = np.asarray(vectors, np.float32)
    if values.ndim != 2 or len(values) != n_tokens or 0 in values.shape:
        raise ValueError(f"expected vectors ({n_tokens} tokens, components) as the labels say, got {values.shape}")
    if max(values.shape) > MAX_SIDE:
        raise ValueError(f"a map has at most {MAX_SIDE} rows and columns, got {values.shape}: pass a part of it")
    if not np.isfinite(values).all():
        raise ValueError("expected finite components, got NaN or infinity")
    return values


def _alt(values: NDArray[np.float32], labels: Sequence[str], title: str, bar_title: str) -> str:
    row, column = divmod(int(np.abs(values).argmax()), values.shape[1])
    largest = f" Largest: component {column} of {labels[row]}, {number(values[row, column])}."
    zero = int((values == 0).all(axis=1).sum())
    still = f" Rows that are 0 throughout: {zero}." if zero else ""
    return f"{title + ': ' if title else ''}{bar_title}, {len(values)} rows, {values.shape[1]} columns.{largest}{still}"
