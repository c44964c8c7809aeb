"""Maps of something else than one head's weights: sizes that don't sum to 1, and other words for what is drawn."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, square_cells, token_axis
from attnviz.figures.colour import sequential
from attnviz.figures.full_names import unseen_names
from attnviz.figures.heatmap import KEY_AXIS, MAX_SIDE, QUERY_AXIS, Scale
from attnviz.figures.marks import Cell, crosses, frames, hatching
from attnviz.figures.theme import Settings, Theme, colour_bar, escape, finish, number, theme_of

_READING = (
    "Each row is a token that looks, each column a token it looks at: the stronger the colour, the more is written for "
    "it; rows don't sum to 1; flat grey cells are forbidden by the mask."
)


def size_map(
    sizes: ArrayLike,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    allowed: ArrayLike | None = None,
    scale: Scale = "linear",
    query_start: int = 0,
    key_start: int = 0,
    marked: Iterable[Cell] = (),
    forbidden: Iterable[Cell] = (),
    bar_title: str = "size of what is written",
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw sizes for each query and key, such as a weight times the length of what is written, from 0 to the largest.

    Args:
        sizes: (queries, keys) 0 or more; a row needn't sum to anything.
        query_labels: text of each query's token; may repeat.
        key_labels: text of each key's token; may repeat.
        allowed: (queries, keys) bool, False where the mask forbids: flat grey. None: all cells are drawn.
        scale: how sizes become colours, as in `head_map`.
        query_start: index in the text of the first row; `key_start`: of the first column.
        key_start: index in the text of the first column.
        marked: (query, key) indices in the text of cells to frame; `forbidden`: of cells that get a cross.
        forbidden: likewise.
        bar_title: what the colours measure.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: 680.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, there are more than 256 rows or columns, or a size is below 0.
    """
    look = theme_of(theme)
    drawn = _checked(sizes, query_labels, key_labels, allowed)
    aside = scale == "without_first" and key_start == 0 and len(key_labels) > 1
    coloured = drawn.copy()
    if aside:
        coloured[:, 0] = np.nan
    high = float(np.nan_to_num(coloured).max()) or 1.0
    bar = colour_bar(bar_title, label_size, 0.0, high, by_root=scale == "sqrt")
    rows, columns = positions(len(query_labels), query_start), positions(len(key_labels), key_start)
    cells = {
        "y": rows,
        "hoverongaps": False,
        "hovertemplate": "%{y} (%{y:d}) → %{x} (%{x:d}): %{z:.3~g}<extra></extra>",
    }
    colours = sequential(look.weight, power=2 if scale == "sqrt" else 1)
    traces = [go.Heatmap(x=columns, z=coloured, zmin=0, zmax=high, colorscale=colours, colorbar=bar, **cells)]
    if aside:  # its own trace, so that hover still tells its sizes
        flat = [[0, look.set_aside], [1, look.set_aside]]
        traces.append(go.Heatmap(x=columns[:1], z=drawn[:, :1], colorscale=flat, showscale=False, **cells))
    traces += unseen_names(traces[0], drawn, query_labels, key_labels)
    places = [[(query - query_start, key - key_start) for query, key in cells] for cells in (marked, forbidden)]
    layout = square_cells(
        token_axis(key_labels, start=key_start, title=KEY_AXIS),
        token_axis(query_labels, start=query_start, title=QUERY_AXIS),
    )
    layout |= {"shapes": _shapes(drawn, look, aside, *places), "plot_bgcolor": look.masked, "dragmode": "zoom"}
    return finish(
        go.Figure(traces),
        layout,
        theme=look,
        title=title,
        alt=_alt(drawn, bar_title, query_labels, key_labels),
        how_to_read=_READING,
        notes=_notes(scale, aside, high),
        label_size=label_size,
        height=height or 680,
        top=4 * label_size,
    )


def retell(figure: go.Figure, words: Mapping[str, str]) -> go.Figure:
    """Replace words in all that a map says about itself, as "token" by "word" where its rows are words; return it.

    Args:
        figure: of `head_map` or `size_map`, changed in place.
        words: what is said -> what to say instead.
    """

    def told(text: str) -> str:
        for old, new in words.items():
            text = text.replace(escape(old), escape(new))
        return text

    layout = figure.layout
    meta = layout.meta
    layout.meta = meta | {
        "alt": told(meta["alt"]),
        "how_to_read": told(meta["how_to_read"]),
        "notes": [told(note) for note in meta["notes"]],
    }
    for axis in (layout.xaxis, layout.yaxis):
        axis.title.text = told(axis.title.text)
    if layout.title.subtitle.text:
        layout.title.subtitle.text = told(layout.title.subtitle.text)
    return figure


def _checked(
    sizes: ArrayLike, query_labels: Sequence[str], key_labels: Sequence[str], allowed: ArrayLike | None
) -> NDArray[np.float32]:
    """Return a copy with NaN where nothing is drawn."""
    values = np.array(sizes, np.float32)
    visible = np.ones(values.shape, bool) if allowed is None else np.asarray(allowed, bool)
    expected = (len(query_labels), len(key_labels))
    if values.shape != expected or visible.shape != expected or 0 in expected or max(expected) > MAX_SIDE:
        raise ValueError(
            f"a map of sizes has 1 to {MAX_SIDE} rows and columns, here {expected} as the labels say; "
            f"got {values.shape} with allowed {visible.shape}"
        )
    values[~visible | ~np.isfinite(values)] = np.nan
    if np.any(values < 0):
        raise ValueError(f"sizes are 0 or more, got {np.nanmin(values):.3g}")
    return values


def _shapes(
    drawn: NDArray[np.float32], look: Theme, aside: bool, marked: Sequence[Cell], forbidden: Sequence[Cell]
) -> list[Settings]:
    shapes = []
    if aside:
        shapes.append(hatching(((int(row), 0) for row in np.flatnonzero(np.isfinite(drawn[:, 0]))), look.hatch))
    if marked:
        shapes.append(frames(marked, look.accent))
    if forbidden:
        shapes.append(crosses(forbidden, look.text))
    return shapes


def _notes(scale: Scale, aside: bool, high: float) -> list[str]:
    if aside:
        return [f"Hatched: the first token, left out of the colours. Colours run from 0 to {number(high)}."]
    if scale == "without_first":
        return ["The text's first token is not in this part of the map."]
    return ["Colours follow the square root of the size, so that small sizes show."] if scale == "sqrt" else []


def _alt(drawn: NDArray[np.float32], what: str, query_labels: Sequence[str], key_labels: Sequence[str]) -> str:
    n_queries, n_keys = drawn.shape
    row, column = divmod(int(np.nan_to_num(drawn).argmax()), n_keys)
    return (
        f"{what}, {n_queries} queries down, {n_keys} keys across. Largest: from {query_labels[row]} to "
        f"{key_labels[column]}, {number(np.nan_to_num(drawn[row, column]))}."
    )
