"""All heads of a model on many sentences."""
