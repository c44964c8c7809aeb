"""A talk over the whole page until the speaker leaves it, and a text that the browser keeps. Needs streamlit."""

from collections.abc import Callable

import streamlit as st

from attnviz.app.components.bridge.bridge import unseen


def talk(html: str, *, on_leave: Callable[[], None], key: str) -> None:
    """Show a page, as `attnviz.figures.talk_html` makes it, over everything else.

    Args:
        html: the whole page.
        on_leave: called before the next run when the speaker pressed Escape.
        key: the component's name, unique on the page.
    """
    _talk(key=key, data={"html": html}, on_left_change=on_leave)


def keep_text(text: str | None, *, on_found: Callable[[str], None], key: str) -> None:
    """Let the visitor's browser keep a text, so that it is there again after a reload or in a new tab.

    Args:
        text: to be kept; "" forgets what is kept; None: this session has none, and would like to hear what is kept.
        on_found: called with the kept text before the next run, if `text` was None and one is kept.
        key: the component's name, unique on the page, and the text's in the browser.
    """

    def tell() -> None:
        found = st.session_state[key]["found"]
        if found:
            on_found(str(found))

    _keep(key=key, data={"name": f"attnviz-{key}", "text": text}, on_found_change=tell)


_talk = unseen("talk", "talk_player/talk_player.js")
_keep = unseen("keep", "talk_player/keep.js")
