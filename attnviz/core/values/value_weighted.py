"""How much a head writes for each key: its weight times the size of what it writes. NumPy only."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats

Float = NDArray[np.floating[Any]]


def value_weighted(weights: ArrayLike, written: ArrayLike) -> Float:
    """Return the length of what each query gets from each key: |a_qk v_k W_O| = a_qk |v_k W_O|.

    A key with much weight and a short vector counts for little, as the first token of many heads. The bias of W_O
    belongs to no key and is left out.

    Args:
        weights: (queries, keys) of one head, none below 0.
        written: (keys, d_model) each key's value times the head's rows of W_O, or (keys,) the lengths of these.

    Returns:
        (queries, keys) lengths, 0 or more; rows don't sum to 1.

    Raises:
        ValueError: not one vector or length for each key, or a weight below 0.

    Source: Kobayashi, Kuribayashi, Yokoi and Inui 2020, "Attention is Not Only a Weight", section 3.

    >>> value_weighted([[0.5, 0.5]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [[2.5, 0.5]]
    """
    rows = as_floats(weights, "weights", "(queries, keys)")
    sizes = np.asarray(written)
    if sizes.ndim == 2:
        sizes = np.linalg.norm(as_floats(sizes, "written", "(keys, d_model)"), axis=1)  # (keys,)
    if rows.ndim != 2 or sizes.shape != rows.shape[1:]:
        raise ValueError(f"expected one vector or length for each of the keys of {rows.shape}, got {np.shape(written)}")
    if np.any(rows < 0) or np.any(sizes < 0):
        raise ValueError("weights and lengths are 0 or more, got some below 0")
    return np.asarray(rows * sizes)  # (queries, keys) * (keys,)


def row_shares(sizes: ArrayLike) -> Float:
    """Return (queries, keys) sizes as shares of their row, each row summing to 1; a row of zeros stays one.

    >>> row_shares([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [[0.75, 0.25], [0.0, 0.0]]
    """
    rows = as_floats(sizes, "sizes", "(queries, keys)")
    sums = rows.sum(axis=1, keepdims=True)
    return np.asarray(rows / np.where(sums > 0, sums, 1.0))
