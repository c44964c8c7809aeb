"""Talk: decks of scenes, worked out beforehand and stepped through with the arrow keys."""

import streamlit as st

from attnviz.app.shell import address as state
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.show.deck import Deck, read_deck
from attnviz.app.show.own_deck import keep_own_deck, own_deck, set_own_deck
from attnviz.app.talk.buttons import buttons
from attnviz.app.talk.edit_deck import OWN, edit_own
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
