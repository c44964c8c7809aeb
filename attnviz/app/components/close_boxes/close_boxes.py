"""What closes the boxes that open over the page, wherever the visitor clicks instead. Needs streamlit."""

from attnviz.app.components.bridge.bridge import unseen


def close_boxes(*, key: str) -> None:
    """Watch over all boxes of the page.

    Args:
        key: the component's name, unique on the page.
    """
    _closer(key=key)


_closer = unseen("boxes", "close_boxes/close_boxes.js")
