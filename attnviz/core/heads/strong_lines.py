"""Which weights get a line where all heads of a layer are drawn at once, and how much weight has none. NumPy only."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats

LEAST = 0.05  # a weight below it has no line: with many heads the faint ones would cover the rest


def worth_a_line(weights: ArrayLike) -> NDArray[np.bool_]:
    """Return True for each weight that is large enough to be drawn as a line, of the same shape.

    >>> worth_a_line([0.04, 0.05, 0.5]).tolist()
    [False, True, True]
    """
    return np.asarray(np.asarray(weights, np.float64) >= LEAST - 1e-6)  # 0.05 in float32 is a little less


def shares_left_out(weights: ArrayLike, *, first: int | None = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return how much of each head's weight has no line, and how much lies on the first token's lines.

    Both are shares of all weight that is given: the sums over the cells concerned, divided by the sum over all cells.

    Args:
        weights: (heads, queries, keys), from 0 to 1.
        first: the key whose lines can be hidden; None: it isn't among these keys.

    Returns:
        Two arrays (heads,), from 0 to 1; together at most 1, since a weight without a line is in the first alone.

    >>> thin, sink = shares_left_out([[[0.9, 0.06, 0.04], [0.02, 0.98, 0.0]]])
    >>> thin.round(3).tolist(), sink.round(3).tolist()
    ([0.03], [0.45])
    """
    rows = np.asarray(as_floats(weights, "weights", "(heads, queries, keys)"), np.float64)
    total = rows.sum(axis=(1, 2))
    drawn = np.where(worth_a_line(rows), rows, 0.0)
    sink = np.zeros(len(rows)) if first is None else drawn[:, :, first].sum(axis=1)
    whole = np.where(total > 0, total, 1.0)
    return (total - drawn.sum(axis=(1, 2))) / whole, sink / whole
