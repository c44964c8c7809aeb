"""Generate: the growing text, one step, the cache, both ways side by side, and memory."""
