"""Multi-head attention on random vectors, and what it costs with one head or with many. NumPy only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnviz.core.attention.made_up import random_layer
from attnviz.core.attention.textbook import multi_head_attention
from attnviz.core.threads import half_the_cores


class Cost(NamedTuple):
    """Multiply-adds and numbers held by one layer of attention.

    Attributes:
        projections: multiply-adds of x W_Q, x W_K, x W_V and of the last product with W_O.
        attention: multiply-adds of q k^T and of weights times values, all heads.
        score_matrices: how many there are; `scores`: numbers in all of them.
    """

    projections: int
    attention: int
    score_matrices: int
    scores: int


def attention_cost(n_tokens: int, d_model: int, n_heads: int) -> Cost:
    """Return what one layer costs, without a mask that skips anything and without the network behind it.

    >>> attention_cost(6, 64, 1)[:2] == attention_cost(6, 64, 4)[:2], attention_cost(6, 64, 4).scores
    (True, 144)
    """
    width = d_model // n_heads
    if n_heads < 1 or width * n_heads != d_model:
        raise ValueError(f"expected a number of heads that divides {d_model}, got {n_heads}")
    attention = n_heads * 2 * n_tokens**2 * width
    return Cost(4 * n_tokens * d_model**2, attention, n_heads, n_heads * n_tokens**2)


def divisors(width: int, most: int = 64) -> list[int]:
    """Return the numbers of heads that a width can be split into, at most `most`.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [n for n in range(1, min(width, most) + 1) if width % n == 0]


def random_heads(
    n_tokens: int, d_model: int, n_heads: int, seed: int = 0
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Run causal multi-head attention on random vectors with the random matrices of `random_layer`.

    Returns:
        Output (tokens, d_model) and weights (heads, queries, keys).

    >>> output, weights = random_heads(5, 8, 2)
    >>> output.shape, weights.shape
    ((5, 8), (2, 5, 5))
    """
    x, matrices = random_layer(n_tokens, d_model, np.random.default_rng(seed))
    with half_the_cores():
        return multi_head_attention(x, *matrices, n_heads=n_heads, causal=True)
