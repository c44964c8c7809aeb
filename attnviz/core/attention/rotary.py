"""Rotary position embedding: positions turn q and k, so that q . k depends on how far apart two tokens are. NumPy only.

Axes: tokens, d_head, and pairs, the d_head / 2 planes in which q and k are turned.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.threads import one_thread

Float: TypeAlias = NDArray[np.floating[Any]]


def rotary(n_tokens: int, d_head: int, theta: float) -> tuple[Float, Float]:
    """Return cosines and sines, (tokens, d_head / 2) each, of the angles by which positions turn q and k.

    Pair i of d_head / 2 turns by theta^(-2i / d_head) for each token: the first fast, the last hardly.

    Source: Su et al. 2021 (RoFormer), section 3.2.2.

    >>> cos, sin = rotary(3, 4, 100.0)
    >>> np.arctan2(sin, cos).round(1).tolist() == np.float32([[0, 0], [1, 0.1], [2, 0.2]]).tolist()
    True
    """
    pairs = np.arange(0, d_head, 2, dtype=np.float32) / np.float32(d_head)  # (d_head / 2,)
    speeds = np.float32(1) / np.float32(theta) ** pairs
    angles = np.arange(n_tokens, dtype=np.float32)[:, None] * speeds  # (tokens, d_head / 2)
    return np.cos(angles), np.sin(angles)


def rotate(x: Float, cos: Float, sin: Float) -> Float:
    """Turn each pair (x_i, x_{i + d_head/2}) by its angle: (heads, tokens, d_head) -> the same.

    q . k of two turned vectors depends on how far apart they are, not on where.

    >>> rotate(np.array([[1.0, 0.0]]), np.array([[0.0]]), np.array([[1.0]])).tolist()
    [[0.0, 1.0]]
    """
    left, right = np.split(x, 2, axis=-1)  # (heads, tokens, d_head / 2)
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def turn_back(x: ArrayLike, theta: float) -> Float:
    """Return q or k as it was before its position turned it: (..., tokens, d_head), the first token at position 0.

    >>> q = np.ones((3, 4))
    >>> bool(np.allclose(turn_back(rotate(q, *rotary(3, 4, 100.0)), 100.0), q))
    True
    """
    turned = _even(x)
    cos, sin = rotary(turned.shape[-2], turned.shape[-1], theta)
    return rotate(turned, cos, -sin)


def score_by_distance(q: ArrayLike, k: ArrayLike, n_distances: int, theta: float) -> Float:
    """Return q . k of every query with every key if they stood 0, 1, 2 ... tokens apart, the query later.

    Args:
        q: (queries, d_head) before their turn.
        k: (keys, d_head) before their turn.
        n_distances: how many distances, from 0 up.
        theta: base of the angles.

    Returns:
        (distances, queries, keys).

    >>> score_by_distance([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], 2, 100.0).round(2).tolist()
    [[[1.0, 0.0]], [[0.54, 0.84]]]
    """
    queries, keys = _even(q), _even(k)  # (queries, d_head), (keys, d_head)
    cos, sin = rotary(n_distances, queries.shape[-1], theta)  # (distances, d_head / 2) each
    turned = rotate(queries, cos[:, None], sin[:, None])  # (distances, queries, d_head)
    with one_thread():
        return turned @ keys.T  # (distances, queries, d_head) @ (d_head, keys) -> (distances, queries, keys)


def _even(x: ArrayLike) -> Float:
    array = np.asarray(x)
    if array.ndim < 2 or array.shape[-1] % 2:
        raise ValueError(f"expected (..., tokens, d_head) with an even d_head, since pairs turn; got {array.shape}")
    return array
