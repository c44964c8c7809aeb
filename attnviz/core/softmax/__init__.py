"""How sharp a softmax is, and why scores are divided by sqrt(d). NumPy only."""
