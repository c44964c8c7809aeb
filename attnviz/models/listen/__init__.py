"""Listening to a model of transformers while it runs. Uses torch."""
