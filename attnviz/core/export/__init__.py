"""Numbers as files: CSV, JSON, NPZ, and a script that computes them again. NumPy only."""
