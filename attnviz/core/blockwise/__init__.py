"""The same attention block by block, as FlashAttention works it out. NumPy only."""

__all__ = []
