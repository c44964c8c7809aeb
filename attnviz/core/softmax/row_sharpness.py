"""Rows of weights: how many are saturated, how much of softmax's gradient is left, and counts in bins. NumPy only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats

SATURATED = 0.99
BINS = 50
LARGEST_NORM = 0.5  # of softmax's Jacobian: two keys with one half each


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts in equal bins.

    Attributes:
        edges: (bins + 1,); a value on an edge goes to the bin above, the largest edge to the last bin.
        counts: (bins,).
        n_not_finite: NaN or infinite values, in no bin.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    n_not_finite: int

    @property
    def n(self) -> int:
        """Number of values in the bins."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class SaturatedShare:
    """How many rows have nearly all their weight on one key.

    Attributes:
        at_rest: share of rows whose largest weight is above the limit and on the first token or a special one.
        elsewhere: share of rows whose largest weight is above the limit and on another token.
        n: rows in all.
    """

    at_rest: float
    elsewhere: float
    n: int

    @property
    def share(self) -> float:
        """Share of rows above the limit, wherever."""
        return self.at_rest + self.elsewhere


def saturated_share(maxima: ArrayLike, at_rest: ArrayLike, *, limit: float = SATURATED) -> SaturatedShare:
    """Return the share of rows whose largest weight is above a limit, those at rest and the others apart.

    Args:
        maxima: (rows,) the largest weight of each row; NaN for a row that doesn't count.
        at_rest: (rows,) True where that weight is on the first token or a special one.
        limit: from 0 to 1.

    Raises:
        ValueError: arrays of different shapes.

    >>> saturated_share([0.999, 0.995, 0.5, np.nan], [True, False, True, True])
    SaturatedShare(at_rest=0.3333333333333333, elsewhere=0.3333333333333333, n=3)
    """
    maxima, at_rest = np.asarray(maxima, np.float64), np.asarray(at_rest, bool)
    if maxima.shape != at_rest.shape:
        raise ValueError(f"expected one mark for each row, got {maxima.shape} maxima and {at_rest.shape} marks")
    n = int((~np.isnan(maxima)).sum())
    above = maxima > limit  # False for NaN
    return SaturatedShare(float((above & at_rest).sum()) / max(n, 1), float((above & ~at_rest).sum()) / max(n, 1), n)


def jacobian_norm(weights: ArrayLike) -> NDArray[np.float64]:
    """Return the size of softmax's gradient in each row: the Frobenius norm of its Jacobian diag(a) - a a^T.

    Squared, that is sum_i a_i^2 (1 - a_i)^2 + sum_{i != j} a_i^2 a_j^2 = sum a^2 - 2 sum a^3 + (sum a^2)^2, so the
    matrix needn't be built. It is 0 where one key has all the weight, and falls like 1 / sqrt(keys) for equal shares: a
    small norm alone doesn't say that a row is saturated.

    Args:
        weights: (..., queries, keys).

    Returns:
        (..., queries), from 0 to 0.5, the latter for two keys with one half each.

    >>> jacobian_norm([[1.0, 0.0], [0.5, 0.5]]).tolist()
    [0.0, 0.5]
    """
    a = as_floats(weights, "weights", "(queries, keys)").astype(np.float64)  # near one-hot the terms cancel
    squares = a * a
    second = squares.sum(axis=-1)
    third = np.einsum("...k,...k->...", squares, a)
    return np.sqrt(np.maximum(second - 2 * third + second * second, 0.0))


def histogram(values: ArrayLike, *, high: float = 1.0, bins: int = BINS) -> Histogram:
    """Count values in equal bins from 0 to high; NaN and infinite ones are counted apart.

    Raises:
        ValueError: bins below 1, high not above 0, or a value outside.

    >>> found = histogram([0.1, 0.6, 1.0, np.nan], bins=2)
    >>> found.counts.tolist(), found.n, found.n_not_finite
    ([1, 2], 3, 1)
    """
    values = np.asarray(values, np.float64).ravel()
    finite = values[np.isfinite(values)]
    if bins < 1 or not high > 0:
        raise ValueError(f"expected at least 1 bin and high above 0, got {bins} bins from 0 to {high}")
    if len(finite) and not (finite.min() >= 0 and finite.max() <= high):
        raise ValueError(f"expected values from 0 to {high}, got {finite.min():.3g} to {finite.max():.3g}")
    counts, edges = np.histogram(finite, bins=bins, range=(0, high))
    return Histogram(edges, counts, len(values) - len(finite))
