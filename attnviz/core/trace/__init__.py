"""What a pass over a text left behind, and the switches that act on it. NumPy only."""
