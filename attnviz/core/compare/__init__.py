"""Two traces or two maps, and how far they are apart. NumPy only."""
