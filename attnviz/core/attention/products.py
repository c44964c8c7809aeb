"""One cell of the score matrix under the glass: the products that add up to q . k, and its way to a weight. NumPy."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats
from attnviz.core.attention.textbook import softmax


class Row(NamedTuple):
    """One query's row on its way from scores to weights, each (keys,).

    Attributes:
        scores: as they enter the softmax, -inf where masked.
        exps: exp(score - largest score): 1 for the largest, 0 where masked.
        total: their sum.
        weights: exps / total.
    """

    scores: NDArray[np.floating[Any]]
    exps: NDArray[np.floating[Any]]
    total: float
    weights: NDArray[np.floating[Any]]


def fewest_products(products: ArrayLike, share: float = 0.9) -> NDArray[np.int64]:
    """Return the fewest components whose products reach a share of the sum of all.

    They are those that push furthest to the side of the sum. Others may push further to the other side, so that the
    fewest can overshoot what they and the rest add up to.

    Args:
        products: (d_head,) q times k, component by component.
        share: of the sum, from 0 to 1.

    Returns:
        Indices of the components, the largest product first; none if the sum is 0.

    >>> fewest_products([1.0, 6.0, -1.0, 3.0], share=0.9).tolist()  # 6 + 3 of 9
    [1, 3]
    """
    values = as_floats(products, "products", "(d_head)")
    total = float(values.sum())
    towards = values * np.sign(total)
    order = np.argsort(-towards, kind="stable")
    if total == 0:
        return order[:0]
    reached = np.cumsum(towards[order].astype(np.float64)) >= share * abs(total) * (1 - 1e-6)
    return order[: int(np.argmax(reached)) + 1]


def row_in_steps(scores: ArrayLike) -> Row:
    """Return one row of scores and what the softmax makes of it, step by step.

    Args:
        scores: (keys,), -inf where masked.

    >>> row = row_in_steps([0.0, 0.0, -np.inf])
    >>> row.exps.tolist(), row.total, row.weights.tolist()
    ([1.0, 1.0, 0.0], 2.0, [0.5, 0.5, 0.0])
    """
    row = as_floats(scores, "scores", "(keys)")
    exps = np.exp(row - row.max())  # (keys,)
    return Row(row, exps, float(exps.sum()), softmax(row))
