"""The buttons of a talk: work it out, start it, save it."""

from functools import partial

import streamlit as st

from attnviz.app.components.talk_player.talk_player import talk
from attnviz.app.shell import cache, palette
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import theme
from attnviz.app.show import job
from attnviz.app.show.deck import Deck, deck_text
from attnviz.app.talk.prepare import Prepared, prepare


def buttons(deck: Deck) -> None:
    """Offer to work the talk out, to start it, and to save it."""
    wanted = ("talk", deck, theme(), palette.chosen())
    ready: Prepared | None = cache.results().peek(wanted)
    if ready is None and job.is_going_on("preparing", wanted):
        job.watch("preparing", keep=lambda found: cache.results().get(wanted, lambda: found), key="stop-preparing")
        return
    with st.container(horizontal=True):
        if ready is None:
            begin = {
                "args": ("preparing", wanted, partial(prepare, *wanted[1:])),
                "kwargs": {"alone": job.ALONE_SECONDS},
            }
            st.button("Prepare all scenes", type="primary", key="prepare", on_click=job.start, **begin)
        else:
            st.button("Start", type="primary", key="start-talk", on_click=_set_talking, args=(True,))
            st.download_button(
                "Save as one HTML file", ready.page, f"{deck.title}.html", "text/html", on_click="ignore"
            )
        st.download_button("Save the deck (.toml)", deck_text(deck), f"{deck.title}.toml", on_click="ignore")
    for notice in ready.notices if ready is not None else ():
        st.caption(plain(notice))
    if ready is not None and st.session_state.get("talking"):
        talk(ready.page, on_leave=lambda: _set_talking(False), key="talk")


def _set_talking(on: bool) -> None:
    st.session_state.talking = on
