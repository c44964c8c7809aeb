"""What one query fetches: weights times values, as a stack that adds up to its output. NumPy only."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats

Float = NDArray[np.floating[Any]]


def contributions(weights: ArrayLike, values: ArrayLike) -> Float:
    """Return each key's part of a query's output, weight times value; all parts together are the output.

    Args:
        weights: (keys,) the query's row.
        values: (keys, d_value).

    Returns:
        (keys, d_value).

    >>> parts = contributions([0.5, 0.5], [[2.0, 0.0], [0.0, 4.0]])
    >>> parts.tolist(), parts.sum(axis=0).tolist()
    ([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0])
    """
    row, rows = as_floats(weights, "weights", "(keys)"), as_floats(values, "values", "(keys, d_value)")
    if row.shape != rows.shape[:1]:
        raise ValueError(f"expected one weight for each of {len(rows)} values, got {row.shape}")
    return row[:, None] * rows  # (keys, 1) * (keys, d_value)


def size_shares(parts: ArrayLike) -> Float:
    """Return (keys,) the length of each part as a share of the lengths of all: 0 to 1, in all 1 (0 if all are 0).

    >>> size_shares([[3.0, 4.0], [0.0, 15.0]]).tolist()
    [0.25, 0.75]
    """
    sizes = np.linalg.norm(as_floats(parts, "parts", "(keys, d_value)"), axis=1)  # (keys,)
    return np.asarray(sizes / (sizes.sum() or 1.0))


def cosine(one: ArrayLike, other: ArrayLike) -> Float:
    """Return the cosine of the angle between vectors along the last axis, from -1 to 1; 0 if one of them is 0.

    >>> cosine([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], [0.0, 2.0]).round(3).tolist()
    [0.0, 0.707, 0.0]
    """
    a, b = as_floats(one, "one", "(d)"), as_floats(other, "other", "(d)")
    sizes = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray((a * b).sum(axis=-1) / np.where(sizes > 0, sizes, 1.0))


def looks_elsewhere(rows: ArrayLike, head: int) -> tuple[int, int]:
    """Return the head whose row has the largest weight on another key than one head's favourite, and that key.

    The first key, where many heads rest, counts for neither, unless it is the only one.

    Args:
        rows: (heads, keys) one query's weights in each head of a layer, at least two heads.
        head: the one that the others are compared with.

    Returns:
        (head, key).

    >>> looks_elsewhere([[0.1, 0.8, 0.1], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]], 0)
    (2, 2)
    """
    weights = np.array(as_floats(rows, "rows", "(heads, keys)"))  # a copy: what doesn't count becomes -1 below
    if len(weights) < 2:
        raise ValueError(f"expected at least two heads, got {len(weights)}")
    first = 1 if weights.shape[1] > 1 else 0
    favourite = first + int(weights[head, first:].argmax())
    weights[:, :first] = -1
    if weights.shape[1] > first + 1:
        weights[:, favourite] = -1
    weights[head] = -1
    other, key = divmod(int(weights.argmax()), weights.shape[1])
    return other, key
