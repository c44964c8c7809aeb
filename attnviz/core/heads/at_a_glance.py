"""All heads of one text at a glance: thumbnails and measures. NumPy only.

The measures of single rows are in `measures`, one head in plain words in `in_words`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.heads.measures import (
    attention_entropy,
    first_token_weight,
    largest_weight,
    mean_distance,
    previous_token_score,
)
from attnviz.core.trace.blocks import Block, mean_over_rows, table_of_heads
from attnviz.core.trace.row_picks import positions
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.thumbnails import Grid, layer_tiles, thumbnail_grid
from attnviz.core.trace.trace import Trace


class Measure(NamedTuple):
    """What a measure of a head is called, what it says in one sentence, and its unit with its range."""

    title: str
    explanation: str
    unit: str


MEASURES = {
    "entropy": Measure(
        "Evenness",
        "How evenly a row spreads its weight over the tokens it may see: its entropy over the largest possible one.",
        "0 (all on one token) to 1 (equal shares)",
    ),
    "distance": Measure(
        "Distance", "How far away the tokens are that a row looks at, on average.", "tokens, from 0 (itself)"
    ),
    "first_token": Measure(
        "On the first token", "The weight on the first token of the text, where most heads rest.", "weight, 0 to 1"
    ),
    "previous_token": Measure(
        "On the previous token",
        "The weight on the token right before; rows 0 and 1 are left out, they have none or the first there.",
        "weight, 0 to 1",
    ),
    "largest": Measure("Largest weight", "The largest weight of a row, whichever token has it.", "weight, 0 to 1"),
}


@dataclass(frozen=True, eq=False)
class Survey:
    """All heads of one text in small.

    Attributes:
        layers: numbers of the layers, in the order of the arrays' first axis.
        thumbnails: (n_layers, n_heads, s_queries, s_keys) float32, the largest weight in each tile of the map; NaN
            where all of a tile is masked, and for heads that a layer lacks.
        first_column: (n_layers, n_heads, s_queries) float32, the first column of the thumbnails once more, without the
            weight on the first token; NaN where nothing else is in it. See `without_first_token`.
        measures: key of MEASURES -> (n_layers, n_heads) float64, the mean over rows with a choice of keys; NaN for
            heads that a layer lacks, or where no row counts.
        n_rows: queries of the text; `n_rows_used`: how many, evenly spaced, went into thumbnails and measures.
        n_not_finite: rows, over all heads, that hold NaN or infinity; they are left out.
    """

    layers: tuple[int, ...]
    thumbnails: NDArray[np.float32]
    first_column: NDArray[np.float32]
    measures: dict[str, NDArray[np.float64]]
    n_rows: int
    n_rows_used: int
    n_not_finite: int


def survey(
    trace: Trace,
    *,
    part: str | None = None,
    switches: Switches | None = None,
    size: int = 32,
    max_rows: int = 512,
    on_layer: Callable[[int, int], None] | None = None,
) -> Survey:
    """Go once over all heads and make a thumbnail and the MEASURES of each.

    Rows with one allowed key (the first row of a causal map) have no choice and count in no measure.

    Args:
        trace: a text as a model saw it.
        part: which part of a model that has several.
        switches: instead of those of the pass, on the same q and k.
        size: the most tiles along a side of a thumbnail; one token a tile where the text is short enough.
        max_rows: above this many queries, evenly spaced rows are used, the last one among them.
        on_layer: called with (finished layers, all layers); what it raises ends the survey.

    Returns:
        A Survey. Memory stays at a few megabytes beside it, however long the text.

    Raises:
        ValueError: `size` or `max_rows` below 1, no such part, or a switch that can't act.
    """
    layers = trace.layers_of(part)
    n_queries, n_keys = (len(tokens) for tokens in trace.tokens_of(part))
    grid = thumbnail_grid(n_queries, n_keys, size, max_rows)
    thumbnails = table_of_heads(trace, part, *grid.shape, dtype=np.float32)
    first_column = np.full(thumbnails.shape[:3], np.nan, np.float32)
    measures = {key: table_of_heads(trace, part) for key in MEASURES}
    n_not_finite = 0
    for i, layer in enumerate(layers):
        heads = slice(0, trace.heads(layer, part=part))
        found = _survey_layer(trace, layer, grid, part, switches)
        thumbnails[i, heads], first_column[i, heads] = found.tiles, found.columns
        for key in MEASURES:
            measures[key][i, heads] = found.measures[key]
        n_not_finite += found.n_broken
        if on_layer is not None:
            on_layer(i + 1, len(layers))
    return Survey(layers, thumbnails, first_column, measures, n_queries, len(grid.rows), n_not_finite)


def without_first_token(found: Survey) -> NDArray[np.float32]:
    """Return the thumbnails with the weight on the first token set aside, so that the rest can set the tint.

    Otherwise most heads look the same: a bright first column. Where tiles are one token wide, the column is NaN.

    Returns:
        (n_layers, n_heads, s_queries, s_keys).
    """
    rest = found.thumbnails.copy()
    rest[..., 0] = found.first_column
    return rest


def strongest(values: ArrayLike, layers: Sequence[int], n: int = 10) -> list[tuple[int, int, float]]:
    """Return the n heads with the largest values, as (layer, head, value), largest first; NaN is left out.

    Args:
        values: (n_layers, n_heads), such as one of a Survey's measures.
        layers: the number of each layer.
        n: at most so many.

    Raises:
        ValueError: not one row of values for each layer.

    >>> strongest([[0.1, 0.9], [0.5, np.nan]], (3, 7), 2)
    [(3, 1, 0.9), (7, 0, 0.5)]
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 2 or len(values) != len(layers):
        raise ValueError(f"expected values of shape ({len(layers)} layers, heads), got {values.shape}")
    order = np.argsort(-values, axis=None, kind="stable")  # NaN comes last
    places = [divmod(int(place), values.shape[1]) for place in order]
    return [(layers[i], head, float(values[i, head])) for i, head in places if not np.isnan(values[i, head])][
        : max(n, 0)
    ]


class _Layer(NamedTuple):
    tiles: NDArray[np.float32]  # (heads, s_queries, s_keys)
    columns: NDArray[np.float32]  # (heads, s_queries)
    measures: dict[str, NDArray[np.float64]]  # key of MEASURES -> (heads,)
    n_broken: int


def _survey_layer(trace: Trace, layer: int, grid: Grid, part: str | None, switches: Switches | None) -> _Layer:
    tiles, columns, rows, n_broken = [], [], [], 0
    for block, some_tiles, some_columns in layer_tiles(trace, layer, grid, part=part, switches=switches):
        tiles.append(some_tiles)
        columns.append(some_columns)
        rows.append(_measured(block, part))
        n_broken += int(block.broken.sum())
    means = {key: mean_over_rows(np.concatenate([found[key] for found in rows], axis=1))[0] for key in MEASURES}
    return _Layer(np.concatenate(tiles, axis=1), np.concatenate(columns, axis=1), means, n_broken)


def _measured(block: Block, part: str | None) -> dict[str, NDArray[np.float64]]:
    """Return every measure of every row, (heads, rows), NaN for rows without a choice of keys."""
    weights, rows = block.weights, positions(block.rows, part)
    found = {
        "entropy": attention_entropy(weights, block.allowed),
        "distance": mean_distance(weights, rows=rows),
        "first_token": first_token_weight(weights, rows=rows),
        "previous_token": previous_token_score(weights, rows=rows),
        "largest": largest_weight(weights),
    }
    free = block.allowed.sum(axis=-1) > 1  # (1 or heads, rows)
    return {key: np.where(free, values, np.nan) for key, values in found.items()}
