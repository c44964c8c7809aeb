"""Long texts a few rows at a time: which rows to use, and how many at once. NumPy only."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK_CELLS = 1 << 20  # weights in work at a time, 4 MB: more doesn't fit a processor's cache


def positions(rows: range, part: str | None = None) -> NDArray[np.int64]:
    """Return the position of each of these queries among the keys; -1 in cross-attention, where they aren't keys."""
    return np.full(len(rows), -1) if part == "cross" else np.asarray(rows, np.int64)


def spaced_rows(n_queries: int, max_rows: int) -> range:
    """Return at most max_rows query positions, evenly spaced, the last query among them.

    Raises:
        ValueError: max_rows below 1.

    >>> spaced_rows(10, 4)
    range(0, 10, 3)
    """
    if max_rows < 1:
        raise ValueError(f"max_rows must be at least 1, got {max_rows}")
    step = max(1, -(-n_queries // max_rows))
    return range((n_queries - 1) % step, n_queries, step)


def row_blocks(rows: range, n_heads: int, n_keys: int) -> Iterator[range]:
    """Cut rows into blocks whose weights, all heads of a layer, are small enough for quick work."""
    size = rows_in_work(n_heads, n_keys)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def rows_in_work(n_heads: int, n_keys: int) -> int:
    """Return how many rows, all heads of a layer, to work on at a time; at least 1.

    >>> rows_in_work(9, 128), rows_in_work(9, 8192)
    (910, 14)
    """
    return max(1, BLOCK_CELLS // (n_heads * n_keys))


def as_slice(rows: range) -> slice:
    """Return the slice that cuts these rows.

    >>> as_slice(range(1, 9, 2))
    slice(1, 9, 2)
    """
    return slice(rows.start, rows.stop, rows.step)
