"""PyTorch's own attention, to compare ours with. NumPy arrays in and out; uses torch."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn.functional import scaled_dot_product_attention


def torch_attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, allowed: ArrayLike, scale: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return output and weights of `torch.nn.functional.scaled_dot_product_attention`.

    Torch's function hands out no weights. With the identity in place of the values its output is the weights.

    Args:
        q: (queries, d_head), float32 or float64.
        k: (keys, d_head), of the same type.
        v: (keys, d_value), of the same type.
        allowed: (queries, keys) bool, where a query may look.
        scale: the factor in front of q k^T.

    Returns:
        Output (queries, d_value) and weights (queries, keys), in the type of q.
    """
    query, key, value = (torch.from_numpy(np.array(x))[None, None] for x in (q, k, v))  # (1, 1, tokens, d)
    identity = torch.eye(key.shape[-2], dtype=value.dtype)[None, None]  # (1, 1, keys, keys)
    mask = torch.from_numpy(np.array(allowed))
    with torch.inference_mode():
        output, weights = (
            scaled_dot_product_attention(query, key, x, attn_mask=mask, scale=scale)[0, 0].numpy()
            for x in (value, identity)
        )
    return output, weights
