"""Boxes that open over the page: an expander whose contents lie above what is below it. Needs streamlit.

Not `st.popover`: what is in a closed one isn't on the page, and the browser goes on telling what its widgets said when
they were last seen. A model chosen in it came back with the next click after an example had chosen another (streamlit
1.67). What is in a closed expander stays on the page.
"""

from typing import Any

import streamlit as st

from attnviz.app.components.close_boxes.close_boxes import close_boxes


def box(label: str, key: str) -> Any:
    """Return a box with that label, closed at first; its key ends in "-box", by which the style sheet knows it."""
    return st.expander(label, key=f"{key}-box", type="compact")


def mind_boxes() -> None:
    """Let a click elsewhere, and Escape, close the box that is open; once a page."""
    close_boxes(key="boxes")
