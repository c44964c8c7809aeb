"""Heads found by what they do."""
