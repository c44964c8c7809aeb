"""Whole language models in NumPy, on the same weights."""
