"""Bars over counted numbers, as wide as their bins. Uses NumPy and plotly's settings."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.theme import Settings


def checked_edges(edges: ArrayLike) -> NDArray[np.float64]:
    """Return the edges of bins.

    Raises:
        ValueError: they don't rise, or make no bin.
    """
    bins = np.asarray(edges, dtype=np.float64)
    if bins.ndim != 1 or len(bins) < 2 or not np.all(np.diff(bins) > 0):
        raise ValueError(f"edges must be at least two numbers, each above the one before, got {bins}")
    return bins


def on_bins(bins: NDArray[np.float64], counts: NDArray[np.int64], *said: NDArray[np.floating | np.integer]) -> Settings:
    """Return where bars stand and what their hover texts may say, for the bins that hold something.

    A bar of height 0 is left out: outlined, it would be a line along the axis.

    Args:
        bins: (bins + 1,) edges.
        counts: (bins,) how many numbers each bin holds.
        *said: (bins,) numbers for hover texts.
    """
    filled = counts > 0
    return {
        "x": ((bins[:-1] + bins[1:]) / 2)[filled].astype(np.float32),
        "width": np.diff(bins)[filled].astype(np.float32),
        "customdata": np.stack(said, axis=1)[filled].astype(np.float32),  # (filled bins, numbers)
    }
