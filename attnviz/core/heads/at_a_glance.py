"""All heads of one text at a glance: thumbnails, measures, and what changed. NumPy only.

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
    mean_over_rows,
    previous_token_score,
)
from attnviz.core.trace.row_picks import as_slice, positions, row_blocks, spaced_rows
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.thumbnails import Grid, pool_tiles, thumbnail_grid
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
    n_heads = max(trace.heads(layer, part=part) for layer in layers)
    n_queries, n_keys = (len(tokens) for tokens in trace.tokens_of(part))
    grid = thumbnail_grid(n_queries, n_keys, size, max_rows)
    thumbnails = np.full((len(layers), n_heads, *grid.shape), np.nan, np.float32)
    first_column = np.full(thumbnails.shape[:3], np.nan, np.float32)
    measures = {key: np.full((len(layers), n_heads), np.nan) for key in MEASURES}
    n_not_finite = 0
    for i, layer in enumerate(layers):
        heads = slice(0, trace.heads(layer, part=part))
        blocks = [_survey_block(trace, layer, part, switches, grid, bins) for bins in grid.blocks(heads.stop)]
        thumbnails[i, heads] = np.concatenate([block.thumbnails for block in blocks], axis=1)
        first_column[i, heads] = np.concatenate([block.first_column for block in blocks], axis=1)
        for key in MEASURES:
            measures[key][i, heads] = mean_over_rows(np.concatenate([block.rows[key] for block in blocks], axis=1))[0]
        n_not_finite += sum(block.n_not_finite for block in blocks)
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


def map_change(
    before: Trace,
    after: Trace,
    *,
    part: str | None = None,
    switches_before: Switches | None = None,
    switches_after: Switches | None = None,
    max_rows: int = 512,
) -> NDArray[np.float64]:
    """Return how much each head's map changed: the weight that went to other keys, in the mean over rows.

    For one row that is half the sum over the keys of |before - after|, the total variation of the two rows. Rows with
    one allowed key in both maps, and rows with NaN or infinity, don't count.

    Args:
        before: one trace.
        after: another one of the same model, with as many tokens; or the same one, with switches.
        part: which part of a model that has several.
        switches_before: on the picture of `before`, instead of those of the pass.
        switches_after: on the picture of `after`, instead of those of the pass.
        max_rows: above this many queries, evenly spaced rows are used.

    Returns:
        (n_layers, n_heads), from 0 (nothing moved) to 1 (all of it); NaN for heads that a layer lacks.

    Raises:
        ValueError: traces of different layers, heads or token counts, or a switch that can't act.
    """
    layers, n_queries, n_keys = _check_alike(before, after, part)
    change = np.full((len(layers), max(before.heads(layer, part=part) for layer in layers)), np.nan)
    for i, layer in enumerate(layers):
        n_heads = before.heads(layer, part=part)
        moved = [
            _moved(before, after, layer, part, switches_before, switches_after, rows)
            for rows in row_blocks(spaced_rows(n_queries, max_rows), n_heads, n_keys)
        ]
        change[i, :n_heads] = mean_over_rows(np.concatenate(moved, axis=1))[0]
    return change


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


@dataclass(frozen=True, eq=False)
class _Block:
    thumbnails: NDArray[np.float32]  # (heads, some tiles, s_keys)
    first_column: NDArray[np.float32]  # (heads, some tiles)
    rows: dict[str, NDArray[np.float64]]  # key of MEASURES -> (heads, some rows)
    n_not_finite: int


def _survey_block(
    trace: Trace, layer: int, part: str | None, switches: Switches | None, grid: Grid, bins: range
) -> _Block:
    rows, edges = grid.rows_of(bins)
    weights = trace.layer_weights(layer, part=part, queries=as_slice(rows), switches=switches)  # (heads, rows, keys)
    allowed = trace.layer_allowed(layer, part=part, queries=as_slice(rows), switches=switches)
    broken = ~np.isfinite(weights.sum(axis=-1))  # (heads, rows)
    if broken.any():
        weights = np.where(broken[..., None], np.float32(0), weights)
        allowed = allowed & ~broken[..., None]
    return _Block(
        *pool_tiles(weights, allowed, edges, grid.key_edges),
        _measured(weights, allowed, positions(rows, part)),
        int(broken.sum()),
    )


def _measured(
    weights: NDArray[np.float32], allowed: NDArray[np.bool_], rows: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Return every measure of every row, NaN for rows without a choice of keys."""
    found = {
        "entropy": attention_entropy(weights, allowed),
        "distance": mean_distance(weights, rows=rows),
        "first_token": first_token_weight(weights, rows=rows),
        "previous_token": previous_token_score(weights, rows=rows),
        "largest": largest_weight(weights),
    }
    free = allowed.sum(axis=-1) > 1  # (1 or heads, rows)
    return {key: np.where(free, values, np.nan) for key, values in found.items()}


def _check_alike(before: Trace, after: Trace, part: str | None) -> tuple[tuple[int, ...], int, int]:
    """Return layers, number of queries and number of keys that two traces have in common, or raise ValueError."""
    heads = [[(n, trace.heads(n, part=part)) for n in trace.layers_of(part)] for trace in (before, after)]
    sizes = [[len(tokens) for tokens in trace.tokens_of(part)] for trace in (before, after)]
    if heads[0] != heads[1]:
        raise ValueError("expected two traces of one model, got models with different layers or heads")
    if sizes[0] != sizes[1]:
        raise ValueError(f"expected two texts with as many tokens, got {sizes[0][-1]} and {sizes[1][-1]}")
    return before.layers_of(part), sizes[0][0], sizes[0][1]


def _moved(
    before: Trace,
    after: Trace,
    layer: int,
    part: str | None,
    switches_before: Switches | None,
    switches_after: Switches | None,
    rows: range,
) -> NDArray[np.float64]:
    """Return (heads, rows) half the L1 distance of two maps, NaN for rows that don't count."""
    maps, free = [], np.zeros(1, bool)
    for trace, switches in ((before, switches_before), (after, switches_after)):
        maps.append(trace.layer_weights(layer, part=part, queries=as_slice(rows), switches=switches))
        allowed = trace.layer_allowed(layer, part=part, queries=as_slice(rows), switches=switches)
        free = free | (allowed.sum(axis=-1) > 1)
    moved = np.abs(maps[0] - maps[1]).sum(axis=-1).astype(np.float64) / 2  # (heads, rows)
    return np.where(free & np.isfinite(moved), moved, np.nan)
