"""Models: read from files, listened to while they run, or run from scratch in NumPy."""
