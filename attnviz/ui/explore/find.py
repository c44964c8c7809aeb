"""Heads found by what they do."""

from attnviz.ui.visit import Visit


def find(visit: Visit) -> None:
    """Draw the tool."""
