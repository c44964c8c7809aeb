"""Random queries, keys and values of many shapes, and how close two ways of attention come."""

import numpy as np
from hypothesis import strategies as st

DTYPES = st.sampled_from([np.float32, np.float64])


SIZES = st.integers(1, 20)


SEEDS = st.integers(0, 2**32 - 1)


def close(dtype, scores):
    """1e-6 (1 + largest |score|) in float32; 1e-12 in float64, more only where large scores are coarser."""
    largest = np.abs(scores[np.isfinite(scores)]).max()
    return {"rtol": 0, "atol": 1e-6 * (1 + largest) if dtype == np.float32 else max(1e-12, 1e-14 * largest)}


def heads(rng, *batch, queries, keys, d_head=8, d_value=5, dtype=np.float64):
    shapes = ((*batch, queries, d_head), (*batch, keys, d_head), (*batch, keys, d_value))
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def random_mask(rng, kind, queries, keys):
    """None, booleans or an additive bias with -inf; key 0 is open to all, so that causal leaves no row empty."""
    if kind == "none":
        return None
    allowed = (rng.random((queries, keys)) < 0.4) | (np.arange(keys) == 0)
    return allowed if kind == "boolean" else np.where(allowed, rng.normal(size=allowed.shape), -np.inf)


ONES = np.ones((4, 3))


ROW_2 = np.arange(4)[:, None] != 2  # query 2 may see nothing
