"""Explore: a sentence, every head of a model, one head in large, and switches that really switch."""
