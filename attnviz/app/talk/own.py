"""The visitor's own deck: scenes saved from the pages, or a deck that was loaded. The browser keeps it over reloads."""

import streamlit as st

from attnviz.app.components.talk_player.talk_player import keep_text
from attnviz.app.shell import address as state
from attnviz.app.shell.controls import as_sentence
from attnviz.app.shell.visit import Visit
from attnviz.app.talk.caption_numbers import check_caption
from attnviz.app.talk.deck import Deck, deck_text, read_deck
from attnviz.app.talk.saving import scene_of_page

OWN = "own"
EMPTY = Deck("My talk")
PAGES_WITH_SCENES = ("", "scratch", "pronouns", "generate", "cost")  # of whose pictures a scene can be made
PAGES_WITHOUT_VISIT = ("talk", "cost")  # that need no text and no model


def own_deck() -> Deck:
    """Return the visitor's deck, without scenes at first."""
    return st.session_state.get("own_deck", EMPTY)


def set_own_deck(deck: Deck) -> None:
    """Keep a deck as the visitor's."""
    st.session_state.own_deck = deck


def keep_own_deck() -> None:
    """Keep the visitor's deck in the browser too, and take it from there when the session has none yet."""
    deck = st.session_state.get("own_deck")
    text = None if deck is None else deck_text(deck) if deck.scenes else ""
    keep_text(text, on_found=_take_back, key="own-deck")


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
    st.rerun()


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


def save_button(visit: Visit | None) -> None:
    """Offer to keep what is on the screen as a scene of the visitor's deck."""
    keep_own_deck()
    several = visit is not None and len(visit.info.parts) > 1 and st.session_state.page != "cost"
    st.button(
        "Save as scene",
        key="save-scene",
        on_click=_save,
        width="stretch",
        disabled=several,
        help="A scene shows models of one part."
        if several
        else "Adds what this page shows to your own deck: see the page Talk.",
    )


def _save() -> None:
    deck = own_deck()
    try:
        scene = scene_of_page(st.session_state.page, st.session_state.get("visit"))
    except ValueError as error:
        state.note(str(error))
        return
    set_own_deck(Deck(deck.title, (*deck.scenes, scene)))
    state.note(f"Saved as scene {len(deck.scenes) + 1} of the deck “{deck.title}” on the page Talk.")


def _take_back(text: str) -> None:
    """Take the deck that the browser kept, in front of scenes saved meanwhile.

    Once: the browser may tell twice, and late, when the visitor has emptied the deck.
    """
    if st.session_state.get("deck-taken"):
        return
    try:
        kept = read_deck(text)
    except ValueError:
        return
    st.session_state["deck-taken"] = True
    set_own_deck(Deck(kept.title, (*kept.scenes, *own_deck().scenes)))
