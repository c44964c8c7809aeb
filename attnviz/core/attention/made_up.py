"""Made-up vectors and matrices, for seeing what the mathematics does without a model. NumPy only."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Matrices = tuple[Float, Float, Float, Float]


def random_qkv(*sizes: int, seed: int = 0) -> tuple[Float, Float, Float]:
    """Return q, k and v whose components are independent, normal with mean 0 and variance 1.

    Args:
        sizes: of each of the three, such as (tokens, width), or (texts, tokens, width).
        seed: of the random numbers; the same seed gives the same numbers.

    Raises:
        ValueError: a size below 1.

    >>> q, k, v = random_qkv(3, 2, seed=0)
    >>> q.shape, float(q[0, 0].round(4))
    ((3, 2), 0.1257)
    """
    if min(sizes) < 1:
        raise ValueError(f"expected at least 1 token and 1 component, got sizes {sizes}")
    q, k, v = np.random.default_rng(seed).standard_normal((3, *sizes))
    return q, k, v


def random_layer(n_tokens: int, d_model: int, random: np.random.Generator) -> tuple[Float, Matrices]:
    """Return x (tokens, d_model) of variance 1, and w_q, w_k, w_v and w_o (d_model, d_model).

    The matrices have variance 1 / d_model, so that every component of q, k and v has variance 1 as x has.
    """
    x = random.standard_normal((n_tokens, d_model))
    w_q, w_k, w_v, w_o = random.standard_normal((4, d_model, d_model)) / np.sqrt(d_model)
    return x, (w_q, w_k, w_v, w_o)
