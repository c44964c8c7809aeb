"""What heads write: weights times values, and all layers together. NumPy only."""
