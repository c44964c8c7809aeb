"""The visitor's own deck: scenes saved from the pages, or a deck that was loaded."""

import streamlit as st

from attnviz.core.deck import Deck, Scene
from attnviz.core.switches import Switches
from attnviz.ui import state
from attnviz.ui.visit import Visit

OWN = "own"


def own_deck() -> Deck:
    """Return the visitor's deck, without scenes at first."""
    return st.session_state.get("own_deck", Deck("My talk"))


def set_own_deck(deck: Deck) -> None:
    """Keep a deck as the visitor's."""
    st.session_state.own_deck = deck


def save_button(visit: Visit) -> None:
    """Offer to keep what is on the screen as a scene of the visitor's deck."""
    st.button(
        "Save as scene",
        key="save-scene",
        on_click=_save,
        args=(visit,),
        width="stretch",
        help="Adds text, model, head and switches to your own deck: see the page Talk.",
    )


def _save(visit: Visit) -> None:
    deck = own_deck()
    set_own_deck(Deck(deck.title, (*deck.scenes, scene_of(visit))))
    state.note(f"Saved as scene {len(deck.scenes) + 1} of your deck (page Talk).")


def scene_of(visit: Visit) -> Scene:
    """Return the visitor's picture as a scene: the map, before and after if something is switched."""
    tokens = visit.rest.tokens
    query, key = st.session_state.query, st.session_state.key
    pointed = query is not None and key is not None and max(query, key) < len(tokens)
    switched = visit.switched
    return Scene(
        title=f"{visit.name}: who looks at whom",
        caption="This head, before and after." if switched else "Where this head looks.",
        picture="before_after" if switched else "map",
        text=visit.text,
        model=visit.choice.name,
        layer=visit.layer,
        head=visit.head,
        query=tokens[query].text.strip() if pointed else "",
        key=tokens[key].text.strip() if pointed else "",
        switches=visit.switches if switched else Switches(),
        whole_pass=visit.in_pass or not switched,
    )
