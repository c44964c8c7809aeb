"""What heads do: measures of their maps, all heads at a glance, heads found by what they do. NumPy only."""
