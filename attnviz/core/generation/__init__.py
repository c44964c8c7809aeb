"""A text that grows by a token at a time. NumPy only."""
