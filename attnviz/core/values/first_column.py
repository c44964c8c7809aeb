"""How much of a head's attention goes to the first key, where heads rest. NumPy only."""

import numpy as np
from numpy.typing import ArrayLike


def first_column_share(weights: ArrayLike, allowed: ArrayLike | None = None) -> float:
    """Return the share of attention that the first key gets, averaged over the queries that could look elsewhere.

    Args:
        weights: (queries, keys), each row a distribution.
        allowed: (queries, keys) bool; rows with a single allowed key, as the first one under a causal mask, don't
            count. None: all rows count.

    Returns:
        From 0 to 1; NaN if no row is left.

    >>> first_column_share([[1.0, 0.0], [0.75, 0.25]], allowed=[[True, False], [True, True]])
    0.75
    """
    rows = np.asarray(weights, dtype=np.float64)
    visible = np.ones(rows.shape, dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    shares = np.where(visible, rows, 0.0)[visible.sum(axis=1) > 1, 0]
    return float(shares.mean()) if shares.size else float("nan")
