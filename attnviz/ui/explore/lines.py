"""All heads of a layer as lines between the tokens."""

from attnviz.ui.visit import Visit


def lines(visit: Visit) -> None:
    """Draw the tool."""
