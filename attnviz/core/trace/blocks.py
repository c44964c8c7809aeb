"""All heads of a layer, some rows at a time, means over rows, and tables with a place for every head. NumPy only."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import Float
from attnviz.core.trace.row_picks import as_slice, row_blocks
from attnviz.core.trace.switches import Switches


class Block(NamedTuple):
    """Some rows of all heads of a layer.

    Attributes:
        rows: positions of the queries.
        weights: (heads, rows, keys), 0 in broken rows.
        allowed: (1 or heads, rows, keys), False in broken rows.
        broken: (heads, rows) True where a row holds NaN or infinity, as half precision can give them.
    """

    rows: range
    weights: Float
    allowed: NDArray[np.bool_]
    broken: NDArray[np.bool_]


def read_block(
    trace: Maps, layer: int, rows: range, *, part: str | None = None, switches: Switches | None = None
) -> Block:
    """Return these rows of all heads of a layer, with broken rows set aside."""
    weights = trace.layer_weights(layer, part=part, queries=as_slice(rows), switches=switches)
    allowed = trace.layer_allowed(layer, part=part, queries=as_slice(rows), switches=switches)
    broken = ~np.isfinite(weights.sum(axis=-1))
    if broken.any():
        weights = np.where(broken[..., None], np.float32(0), weights)
        allowed = allowed & ~broken[..., None]
    return Block(rows, weights, allowed, broken)


def layer_blocks(
    trace: Maps, layer: int, rows: range, *, part: str | None = None, switches: Switches | None = None
) -> Iterator[Block]:
    """Yield these rows of all heads of a layer, few enough at a time for quick work."""
    n_keys = len(trace.tokens_of(part)[1])
    for some in row_blocks(rows, trace.heads(layer, part=part), n_keys):
        yield read_block(trace, layer, some, part=part, switches=switches)


def table_of_heads(trace: Maps, part: str | None, *more: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return NaN for every head, (layers, heads, *more), to be filled in; a layer may have fewer heads than others."""
    layers = trace.layers_of(part)
    return np.full((len(layers), max(trace.heads(layer, part=part) for layer in layers), *more), np.nan, dtype)


def mean_over_rows(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean of a measure over the rows that count, and how many they are.

    Args:
        values: (..., queries), NaN for a row that doesn't count.

    Returns:
        Means (...), NaN where no row counts, and numbers of rows (...).

    >>> mean, n = mean_over_rows([[np.nan, 0.2, 0.4]])
    >>> mean.round(3).tolist(), n.tolist()
    ([0.3], [2])
    """
    values = np.asarray(values, np.float64)
    counts = ~np.isnan(values)  # (..., queries)
    n = np.asarray(counts.sum(axis=-1))
    total = np.where(counts, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(n > 0, total / np.maximum(n, 1), np.nan)), n
