"""Buttons that save a picture from the browser as PNG, SVG or HTML. Needs streamlit."""

import streamlit as st

from attnviz.app.components.bridge.bridge import read_asset, read_script
from attnviz.figures import THEMES

HTML = """
<div class="row">
  <button type="button" data-format="png">PNG</button>
  <button type="button" data-format="svg">SVG</button>
  <button type="button" data-format="html" hidden>HTML</button>
</div>
"""


def save_picture(of: str, name: str, *, key: str, html: bool = False) -> None:
    """Show the buttons; the picture is saved as it looks in the browser at that moment.

    Args:
        of: `key=` of the chart, or of one of attnviz's own components, on the same page.
        name: of the file, without its ending.
        key: the component's name, unique on the page.
        html: offer one HTML file too, with the picture as SVG inside; for one of attnviz's own components.
    """
    grounds = {theme.name: theme.page for theme in THEMES.values()}
    _buttons(key=key, data={"of": of, "name": name, "grounds": grounds, "html": html}, width="content")


_buttons = st.components.v2.component(
    "attnviz_save_picture",
    html=HTML,
    css=read_asset("bridge/small_buttons.css"),
    js=read_script("save_picture/save_picture.js"),
)
