"""Words and signs of a text. NumPy and the standard library only."""
