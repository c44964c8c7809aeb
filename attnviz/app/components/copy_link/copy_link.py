"""A button that copies the page's address from the browser. Needs streamlit."""

import streamlit as st

from attnviz.app.components.bridge.bridge import read_asset

HTML = """
<div class="copy-link">
  <button type="button" aria-live="polite">Copy link</button>
  <div class="said" role="status"></div>
  <input type="text" readonly hidden aria-label="Link to this page">
</div>
"""


def copy_link(*, key: str) -> None:
    """Show the button; the address is read when it is pressed, so it is always the page's own.

    Args:
        key: the component's name, unique on the page.
    """
    _button(key=key)


_button = st.components.v2.component(
    "attnviz_copy_link", html=HTML, css=read_asset("bridge/small_buttons.css"), js=read_asset("copy_link/copy_link.js")
)
