"""Multi-head attention on random vectors, and what it costs with one head or with many. NumPy only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """Run causal multi-head attention on random vectors with random matrices.

    The matrices have variance 1 / d_model, so that every component of q, k and v has variance 1 as x has.

    Returns:
        Output (tokens, d_model) and weights (heads, queries, keys).

    >>> output, weights = random_heads(5, 8, 2)
    >>> output.shape, weights.shape
    ((5, 8), (2, 5, 5))
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_tokens, d_model))
    w_q, w_k, w_v, w_o = rng.standard_normal((4, d_model, d_model)) / np.sqrt(d_model)  # (d_model, d_model) each
    with half_the_cores():
        return multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, causal=True)
