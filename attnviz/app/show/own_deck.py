"""The visitor's own deck: scenes saved from the pages, or a deck that was loaded. The browser keeps it over reloads."""

import streamlit as st

from attnviz.app.components.talk_player.talk_player import keep_text
from attnviz.app.shell import address as state
from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Deck, deck_text, read_deck
from attnviz.app.show.page_entry import Page

EMPTY = Deck("My talk")


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


def save_button(page: Page, visit: Visit | None) -> None:
    """Offer to keep what is on the screen as a scene of the visitor's deck."""
    keep_own_deck()
    several = visit is not None and len(visit.info.parts) > 1 and page.needs_text
    st.button(
        "Save as scene",
        key="save-scene",
        on_click=_save,
        args=(page,),
        width="stretch",
        disabled=several,
        help="A scene shows models of one part."
        if several
        else "Adds what this page shows to your own deck: see the page Talk.",
    )


def _save(page: Page) -> None:
    deck, visit = own_deck(), st.session_state.get("visit")
    try:
        if page.scene is None or (visit is None and page.needs_text):
            raise ValueError("There is no text to make a scene of.")
        scene = page.scene(visit)
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
