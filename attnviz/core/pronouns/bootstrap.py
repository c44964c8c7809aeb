"""How far a mean could be off by chance, where what is measured comes in groups of similar items. NumPy only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.threads import one_thread

DRAWS = 1000
LEVEL = 0.95


def bootstrap_means(
    values: ArrayLike, groups: Sequence[Any], *, draws: int = DRAWS, seed: int = 0
) -> NDArray[np.float64]:
    """Return means of `values` as they would be with other groups: G groups drawn with replacement from G.

    Group g, with n_g items that sum to s_g, is drawn c_g times; the mean is sum_g c_g s_g / sum_g c_g n_g. Items of a
    group come or stay away together, because they are alike: drawn one by one they would promise too much.

    Args:
        values: (items, ...), means are over the first axis.
        groups: (items,) the group of each item.
        draws: how often to draw.
        seed: of the draws.

    Returns:
        (draws, ...).

    Raises:
        ValueError: no items, or not one group for each.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 6; of groups, Field and Welsh 2007,
    Bootstrapping clustered data.

    >>> bootstrap_means([1.0, 1.0, 3.0], ["a", "a", "b"], draws=4).round(2).tolist()
    [1.67, 1.67, 3.0, 3.0]
    """
    values = _checked(values, groups)
    names, group_of = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(len(names)))
    sums = np.add.reduceat(values[order].reshape(len(values), -1), starts, axis=0)  # (groups, rest)
    sizes = np.bincount(group_of)  # (groups,)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws).astype(np.float64)
    with one_thread():
        means = (counts @ sums) / (counts @ sizes)[:, None]  # (draws, rest)
    return np.asarray(means.reshape(draws, *values.shape[1:]))


def group_interval(
    values: ArrayLike, groups: Sequence[Any], *, draws: int = DRAWS, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the interval that holds the middle 95 % of the bootstrapped means.

    Args:
        values: (items, ...), means are over the first axis.
        groups: (items,) the group of each item. One group alone tells nothing about others: both ends are NaN.
        draws: how often to draw.
        seed: of the draws.

    Returns:
        Two arrays in the shape of one item's values.

    Raises:
        ValueError: no items, or not one group for each.
    """
    values = _checked(values, groups)
    if len(set(groups)) < 2:
        return np.full(values.shape[1:], np.nan), np.full(values.shape[1:], np.nan)
    means = bootstrap_means(values, groups, draws=draws, seed=seed)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def _checked(values: ArrayLike, groups: Sequence[Any]) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    if len(values) == 0 or len(values) != len(groups):
        raise ValueError(f"expected one group for each of at least one item, got {len(groups)} for {len(values)}")
    return values
