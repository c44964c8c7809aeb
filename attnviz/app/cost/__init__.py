"""Cost: what attention costs, and how FlashAttention avoids the matrix."""
