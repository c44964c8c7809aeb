"""The same attention block by block, as FlashAttention works it out. NumPy only."""

from attnviz.core.blockwise.fast_memory import blockwise_steps
from attnviz.core.blockwise.online import BlockStep, Running, blockwise_attention, merge_block, nothing_seen

__all__ = [
    "BlockStep",
    "Running",
    "blockwise_attention",
    "blockwise_steps",
    "merge_block",
    "nothing_seen",
]
