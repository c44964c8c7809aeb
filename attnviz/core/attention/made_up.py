"""Made-up queries, keys and values, for seeing what the mathematics does without a model. NumPy only."""

import numpy as np
from numpy.typing import NDArray


def random_qkv(
    n_tokens: int, width: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return q, k and v whose components are independent, of mean 0 and variance 1.

    Args:
        n_tokens: number of queries, and of keys.
        width: components of each, the d in 1/sqrt(d).
        seed: of the random numbers; the same seed gives the same numbers.

    Returns:
        Three arrays (tokens, width).

    Raises:
        ValueError: fewer than one token or component.

    >>> q, k, v = random_qkv(3, 2, seed=0)
    >>> q.shape, float(q[0, 0].round(4))
    ((3, 2), 0.1257)
    """
    if n_tokens < 1 or width < 1:
        raise ValueError(f"expected at least 1 token and 1 component, got {n_tokens} and {width}")
    q, k, v = np.random.default_rng(seed).standard_normal((3, n_tokens, width))  # (tokens, width) each
    return q, k, v
