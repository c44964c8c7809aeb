"""Attention as the textbooks write it, its mask, its positions, and what goes wrong without care. NumPy only."""

__all__ = []
