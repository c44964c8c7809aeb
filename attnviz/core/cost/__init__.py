"""What attention costs in multiplications, bytes and seconds. NumPy and the standard library only."""
