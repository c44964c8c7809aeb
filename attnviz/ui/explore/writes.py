"""What a head adds to the sentence, in words."""

from attnviz.ui.visit import Visit


def writes(visit: Visit) -> None:
    """Draw the tool."""
