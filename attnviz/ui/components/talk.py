"""A talk over the whole page, until the speaker leaves it. Needs streamlit."""

from collections.abc import Callable

import streamlit as st

from attnviz.ui.components.bridge import read_asset


def talk(html: str, *, on_leave: Callable[[], None], key: str) -> None:
    """Show a page, as `attnviz.figures.talk_html` makes it, over everything else.

    Args:
        html: the whole page.
        on_leave: called before the next run when the speaker pressed Escape.
        key: the component's name, unique on the page.
    """
    _talk(key=key, data={"html": html}, on_left_change=on_leave)


_talk = st.components.v2.component(
    "attnviz_talk",
    html='<div class="attnviz-talk-place" hidden>\n</div>',
    js=read_asset("talk.js"),
    isolate_styles=False,
)
