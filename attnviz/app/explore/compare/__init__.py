"""Two texts, models, heads or settings of the switches, side by side."""
