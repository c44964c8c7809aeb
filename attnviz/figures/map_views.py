"""Maps of something else than one head's weights: sizes that don't sum to 1, and other words for what is drawn."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import MAX_SIDE
from attnviz.figures.cells import FIRST_IS_ELSEWHERE, Cells, MapLook, MapOptions, map_figure, where_allowed
from attnviz.figures.look import Words
from attnviz.figures.scales import scaled
from attnviz.figures.theme import Bools, Floats, escape, number

_READING = (
    "Each row is a token that looks, each column a token it looks at: the stronger the colour, the more is written for "
    "it; rows don't sum to 1; flat grey cells are forbidden by the mask."
)


def size_map(
    sizes: ArrayLike, query_labels: Sequence[str], key_labels: Sequence[str], **options: Unpack[MapOptions]
) -> go.Figure:
    """Draw sizes for each query and key, such as a weight times the length of what is written, from 0 to the largest.

    Args:
        sizes: (queries, keys) 0 or more; a row needn't sum to anything.
        query_labels: text of each query's token; may repeat.
        key_labels: text of each key's token; may repeat.
        **options: as `MapOptions` and `LookOptions` say; the height is 680.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, there are more than 256 rows or columns, or a size is below 0.
    """
    look = MapLook.of("size_map", options, bar_title="size of what is written")
    values = _checked(sizes, where_allowed(look.allowed, np.shape(sizes)), (len(query_labels), len(key_labels)))
    drawn = Cells(values, query_labels, key_labels, look)
    high = float(np.nan_to_num(drawn.coloured).max()) or 1.0
    scale, title = look.colours.weights(by_root=look.by_root), str(look.bar_title)
    colours = scaled(scale, (0, high), look, title, by_root=look.by_root)
    return map_figure(drawn, colours, ".3~g", Words(_alt(drawn, title), _READING, _notes(drawn, high)))


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
    texts = {name: told(meta[name]) for name in ("alt", "how_to_read")}
    layout.meta = meta | texts | {"notes": [told(note) for note in meta["notes"]]}
    for axis in (layout.xaxis, layout.yaxis):
        axis.title.text = told(axis.title.text)
    if layout.title.subtitle.text:
        layout.title.subtitle.text = told(layout.title.subtitle.text)
    return figure


def _checked(sizes: ArrayLike, visible: Bools, expected: tuple[int, int]) -> Floats:
    """Return a copy with NaN where nothing is drawn."""
    values = np.array(sizes, np.float32)
    if {values.shape, visible.shape} != {expected} or not 1 <= min(expected) <= max(expected) <= MAX_SIDE:
        raise ValueError(
            f"a map of sizes has 1 to {MAX_SIDE} rows and columns, here {expected} as the labels say; "
            f"got {values.shape} with allowed {visible.shape}"
        )
    values[~visible | ~np.isfinite(values)] = np.nan
    if np.any(values < 0):
        raise ValueError(f"sizes are 0 or more, got {np.nanmin(values):.3g}")
    return values


def _notes(drawn: Cells, high: float) -> list[str]:
    if drawn.first_is_aside:
        return [f"Hatched: the first token, left out of the colours. Colours run from 0 to {number(high)}."]
    if drawn.look.scale == "without_first":
        return [FIRST_IS_ELSEWHERE]
    return ["Colours follow the square root of the size, so that small sizes show."] if drawn.look.by_root else []


def _alt(drawn: Cells, what: str) -> str:
    n_queries, n_keys = drawn.values.shape
    sizes = np.nan_to_num(drawn.values)
    row, column = divmod(int(sizes.argmax()), n_keys)
    return (
        f"{what}, {n_queries} queries down, {n_keys} keys across. Largest: from {drawn.query_labels[row]} to "
        f"{drawn.key_labels[column]}, {number(sizes[row, column])}."
    )
