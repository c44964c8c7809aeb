"""Attention of all layers multiplied into one map: attention rollout. NumPy only."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import as_floats
from attnviz.core.threads import one_thread


def rollout(layers: Iterable[ArrayLike], *, kept: float = 0.5) -> NDArray[np.float64]:
    """Return how much of each token is traced back to each token of the input, by the weights of all layers alone.

    A layer's map is the mean A of its heads, mixed with the token itself for the residual stream, (1 - kept) A +
    kept I, with rows made to sum to 1. The maps are multiplied, later layers on the left: R = M_L ... M_2 M_1. It knows
    nothing of values or of the networks between the layers.

    Args:
        layers: (heads, tokens, tokens) weights of each layer, the first one first; taken one by one, so that a
            generator needs the room of one layer only.
        kept: share of the token itself in each layer, from 0 to 1.

    Returns:
        (tokens at the end, tokens of the input), each row sums to 1.

    Raises:
        ValueError: no layer, maps that aren't square or differ in size, or `kept` outside 0 to 1.

    Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.

    >>> rollout([[[[1.0, 0.0], [1.0, 0.0]]], [[[0.0, 1.0], [0.0, 1.0]]]]).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    if not 0 <= kept <= 1:
        raise ValueError(f"kept must be from 0 to 1, got {kept}")
    flow: NDArray[np.float64] | None = None
    for layer in layers:
        mixed = _mixed(layer, kept)  # (tokens, tokens)
        if flow is not None and mixed.shape != flow.shape:
            raise ValueError(f"all layers must have maps of the same size, got {flow.shape} and {mixed.shape}")
        with one_thread():
            flow = mixed if flow is None else mixed @ flow
    if flow is None:
        raise ValueError("there is no layer")
    return flow


def _mixed(layer: ArrayLike, kept: float) -> NDArray[np.float64]:
    heads = as_floats(layer, "weights", "(heads, tokens, tokens)")
    if heads.ndim != 3 or heads.shape[1] != heads.shape[2]:
        raise ValueError(f"expected weights (heads, tokens, tokens) of a layer, got {heads.shape}")
    mixed = (1 - kept) * heads.mean(axis=0, dtype=np.float64) + kept * np.eye(heads.shape[1])
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True), np.float64)
