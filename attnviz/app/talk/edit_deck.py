"""The visitor's own deck as text, to change titles, captions, questions and order."""

import streamlit as st

from attnviz.app.shell.address import run_again
from attnviz.app.shell.markdown import as_sentence
from attnviz.app.show.deck import Deck, deck_text, read_deck
from attnviz.app.show.own_deck import EMPTY, set_own_deck
from attnviz.app.talk.caption_numbers import check_caption

OWN = "own"  # the deck's name in the address


def edit_own(deck: Deck) -> None:
    """Let the visitor change titles, captions, questions and order of their deck, as the TOML that a deck is."""
    st.caption("This browser keeps your deck until you empty it. Save it (.toml) to take it elsewhere.")
    with st.expander("Edit titles, captions, questions, notes, order", type="compact"):
        with st.form("edit-deck", border=False):
            st.caption('A scene may also have lines such as question = "…", notes = "…", minutes = 2.')
            text = st.text_area("The deck as TOML", deck_text(deck), height=400)
            with st.container(horizontal=True, vertical_alignment="center"):
                applied = st.form_submit_button("Apply")
                if st.session_state.pop("deck-applied", False):
                    st.markdown("Applied: prepare the scenes again to see the changes.")
            if applied:
                _apply(text)
        st.button("Empty the deck", key="empty-deck", on_click=set_own_deck, args=(EMPTY,))


def _apply(text: str) -> None:
    try:
        deck = read_deck(text)
        check_captions(deck)
    except ValueError as error:
        st.error(as_sentence(str(error)))
        return
    set_own_deck(deck)
    st.session_state["deck-applied"] = True
    run_again()


def check_captions(deck: Deck) -> None:
    """Check the names of numbers in all captions.

    Raises:
        ValueError: a caption names a number that its scene can't have; the scene is named.
    """
    for number, scene in enumerate(deck.scenes, 1):
        try:
            check_caption(scene)
        except ValueError as error:
            raise ValueError(f"scene {number}: the caption of “{scene.title}”: {error}") from error
