"""From scratch: the mathematics of attention in nine steps."""
