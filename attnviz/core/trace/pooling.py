"""A large map in small: the largest weight of each block of tokens. NumPy only."""

import numpy as np
from numpy.typing import NDArray


def pool_largest(
    weights: NDArray[np.float32], allowed: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
    """Return a map of at most size x size blocks, each with the largest weight in it.

    Args:
        weights: (queries, keys).
        allowed: (queries, keys), True where the query may see the key.
        size: most blocks along a side, at least 1.

    Returns:
        The largest weights (rows, columns), where at least one cell of the block is allowed (rows, columns), and the
        tokens along a side of a block; the last block of a side may be smaller.

    Raises:
        ValueError: size below 1, or shapes that differ.

    >>> pooled, seen, block = pool_largest(np.array([[1.0, 0], [0.25, 0.75]]), np.tri(2, dtype=bool), 1)
    >>> pooled.tolist(), seen.tolist(), block
    ([[1.0]], [[True]], 2)
    """
    if size < 1 or weights.shape != allowed.shape:
        raise ValueError(f"expected size 1 or more and equal shapes, got {size}, {weights.shape} and {allowed.shape}")
    block = -(-max(weights.shape) // size)
    rows, columns = (range(0, length, block) for length in weights.shape)
    pooled = np.maximum.reduceat(np.maximum.reduceat(weights, rows, axis=0), columns, axis=1)
    seen = np.logical_or.reduceat(np.logical_or.reduceat(allowed, rows, axis=0), columns, axis=1)
    return pooled, seen, block
