"""Talk: decks of scenes, worked out beforehand and stepped through with the arrow keys."""

from functools import partial

import streamlit as st

from attnviz.app.components.talk_player.talk_player import talk
from attnviz.app.shell import address as state
from attnviz.app.shell import cache, palette
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import theme
from attnviz.app.show import job
from attnviz.app.show.deck import Deck, deck_text, read_deck
from attnviz.app.show.own_deck import keep_own_deck, own_deck, set_own_deck
from attnviz.app.talk.edit_deck import OWN, edit_own
from attnviz.app.talk.prepare import Prepared, prepare
from attnviz.app.talk.shipped import shipped_decks

KEYS = (
    "→ ← or Page Down, Page Up: step. F: full screen. N: your view, with notes and clock. P: the same in a "
    "window of its own, for a second screen. B: blank. Esc: leave."
)


def chosen_deck() -> Deck:
    """Let the visitor choose a deck and return it."""
    decks = {**shipped_decks(), OWN: own_deck()}
    if st.session_state.deck not in decks:
        st.session_state.deck = next(iter(decks))
    name = st.selectbox("Deck", list(decks), key="deck", format_func=lambda name: decks[name].title)
    if name == OWN:
        file = st.file_uploader("Load a deck (.toml)", type=["toml"], key="deck-file")
        if file is not None and st.session_state.get("deck-read") != file.file_id:
            st.session_state["deck-read"] = file.file_id
            try:
                set_own_deck(read_deck(file.getvalue().decode("utf-8", "replace")))
            except ValueError as error:
                st.error(as_sentence(str(error)))
    return own_deck() if name == OWN else decks[name]


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


st.subheader("Talk", anchor=False)
st.caption("A deck brings its own texts, models and switches: what stands above and beside acts on other pages.")
keep_own_deck()
deck = chosen_deck()
if deck.scenes:
    st.caption(f"Scenes: {len(deck.scenes)}. Minutes: {deck.minutes:g}. {KEYS}")
    buttons(deck)
    for number, scene in enumerate(deck.scenes, 1):
        question = f" *{plain(scene.question)}*" if scene.question else ""
        st.markdown(f"{number}. **{plain(scene.title)}**{question} :gray[{plain(' '.join(scene.notes.split()))}]")
else:
    st.info("Your deck has no scene yet: press “Save as scene” on another page, or load a deck.")
if st.session_state.deck == OWN and deck.scenes:
    edit_own(deck)
state.remember()
