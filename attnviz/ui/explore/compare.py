"""Two texts, models, heads or settings of the switches, side by side."""

from attnviz.ui.visit import Visit


def compare(visit: Visit) -> None:
    """Draw the tool."""
