"""Maps of heads in small: how rows and keys are dealt out to tiles, and the largest weight of each tile. NumPy only."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from attnviz.core.trace.blocks import Block, read_block
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.row_picks import rows_in_work, spaced_rows
from attnviz.core.trace.switches import Switches


@dataclass(frozen=True, eq=False)
class Grid:
    """Which rows are used, and how rows and keys are dealt out to the tiles of a thumbnail.

    Attributes:
        rows: positions of the queries used.
        row_edges: (s_queries + 1,) tile t has the used rows row_edges[t] to row_edges[t + 1], exclusive.
        key_edges: (s_keys + 1,) the same for keys.
    """

    rows: range
    row_edges: NDArray[np.int64]
    key_edges: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """(s_queries, s_keys), the tiles of a thumbnail."""
        return len(self.row_edges) - 1, len(self.key_edges) - 1

    def rows_of(self, bins: range) -> tuple[range, NDArray[np.int64]]:
        """Return the used rows of some rows of tiles, and where each of these begins among them, and the last ends."""
        edges = self.row_edges[bins.start : bins.stop + 1]
        return self.rows[int(edges[0]) : int(edges[-1])], edges - edges[0]

    def blocks(self, n_heads: int) -> Iterator[range]:
        """Cut the rows of tiles into blocks of whole tiles."""
        tallest = int(np.diff(self.row_edges).max())
        size = max(1, rows_in_work(n_heads, int(self.key_edges[-1])) // tallest)
        for start in range(0, self.shape[0], size):
            yield range(start, min(start + size, self.shape[0]))


def thumbnail_grid(n_queries: int, n_keys: int, size: int, max_rows: int) -> Grid:
    """Return how a map becomes at most size x size tiles, from at most max_rows of its rows.

    Raises:
        ValueError: `size` or `max_rows` below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    rows = spaced_rows(n_queries, max_rows)
    n_tiles = max(1, min(size, n_queries // rows.step))  # so that no tile is without a used row
    edges = np.linspace(0, n_queries, n_tiles + 1).astype(np.int64)
    key_edges = np.linspace(0, n_keys, min(size, n_keys) + 1).astype(np.int64)
    return Grid(rows, np.searchsorted(np.asarray(rows), edges), key_edges)


def layer_tiles(
    trace: Maps, layer: int, grid: Grid, *, part: str | None = None, switches: Switches | None = None
) -> Iterator[tuple[Block, NDArray[np.float32], NDArray[np.float32]]]:
    """Yield a layer's rows block by block, each with the tiles of `pool_tiles` that it makes."""
    for bins in grid.blocks(trace.heads(layer, part=part)):
        rows, edges = grid.rows_of(bins)
        block = read_block(trace, layer, rows, part=part, switches=switches)
        yield block, *pool_tiles(block.weights, block.allowed, edges, grid.key_edges)


def pool_tiles(
    weights: NDArray[np.float32], allowed: NDArray[np.bool_], row_edges: NDArray[np.int64], key_edges: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the largest weight of each tile, and the first column again without its first key; NaN where masked.

    Args:
        weights: (heads, rows, keys).
        allowed: (heads or 1, rows, keys).
        row_edges: (s_rows + 1,) tile t has rows row_edges[t] to row_edges[t + 1], exclusive; `key_edges` likewise.
        key_edges: see `row_edges`.

    Returns:
        (heads, s_rows, s_keys) and (heads, s_rows).
    """
    tiles_of_rows = [slice(top, end) for top, end in pairwise(row_edges)]
    high = np.stack([weights[:, tile].max(axis=1) for tile in tiles_of_rows], axis=1)  # reduceat takes 20 times as long
    seen = np.stack([allowed[:, tile].any(axis=1) for tile in tiles_of_rows], axis=1)  # (1 or heads, tiles, keys)
    tiles = np.maximum.reduceat(high, key_edges[:-1], axis=2)  # (heads, tiles, keys) -> (heads, tiles, s_keys)
    tiles = np.where(np.logical_or.reduceat(seen, key_edges[:-1], axis=2), tiles, np.float32(np.nan))
    rest = slice(1, int(key_edges[1]))
    column = np.where(seen[..., rest].any(axis=-1), high[..., rest].max(axis=-1, initial=0), np.float32(np.nan))
    return tiles, column.astype(np.float32, copy=False)
