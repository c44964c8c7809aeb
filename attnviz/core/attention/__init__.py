"""Attention as the textbooks write it, its mask, its positions, and what goes wrong without care. NumPy only."""

from attnviz.core.attention.checks import additive_mask, as_floats, check_mask, check_row_maxima, check_values
from attnviz.core.attention.textbook import (
    attention_scores,
    attention_step,
    causal_mask,
    merge_heads,
    multi_head_attention,
    repeat_kv,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)

__all__ = [
    "additive_mask",
    "as_floats",
    "attention_scores",
    "attention_step",
    "causal_mask",
    "check_mask",
    "check_row_maxima",
    "check_values",
    "merge_heads",
    "multi_head_attention",
    "repeat_kv",
    "scaled_dot_product_attention",
    "softmax",
    "split_heads",
]
