"""The visitor's own deck: scenes saved from the pages, or a deck that was loaded."""

import streamlit as st

from attnviz.core.deck import Deck, Scene, deck_text, read_deck
from attnviz.core.switches import Switches
from attnviz.core.trace import Trace
from attnviz.ui import state
from attnviz.ui.controls import as_sentence
from attnviz.ui.pronouns.question import Question
from attnviz.ui.talk.scenes import word_place
from attnviz.ui.visit import Visit

OWN = "own"
PAGES_WITH_SCENES = ("", "pronouns")  # whose pictures a scene can show


def own_deck() -> Deck:
    """Return the visitor's deck, without scenes at first."""
    return st.session_state.get("own_deck", Deck("My talk"))


def set_own_deck(deck: Deck) -> None:
    """Keep a deck as the visitor's."""
    st.session_state.own_deck = deck


def edit_own(deck: Deck) -> None:
    """Let the visitor change titles, captions, questions and order of their deck, as the TOML that a deck is."""
    st.caption("Your deck lives as long as this tab: save it (.toml) before you close it.")
    with st.expander("Edit titles, captions, questions, order", type="compact"), st.form("edit-deck", border=False):
        text = st.text_area("The deck as TOML", deck_text(deck), height=400)
        if st.form_submit_button("Apply"):
            try:
                set_own_deck(read_deck(text))
            except ValueError as error:
                st.error(as_sentence(str(error)))
            else:
                st.rerun()


def save_button(visit: Visit) -> None:
    """Offer to keep what is on the screen as a scene of the visitor's deck."""
    st.button(
        "Save as scene",
        key="save-scene",
        on_click=_save,
        args=(visit,),
        width="stretch",
        disabled=len(visit.info.parts) > 1,
        help="Adds text, model, head and switches to your own deck: see the page Talk."
        if len(visit.info.parts) == 1
        else "A scene shows models of one part.",
    )


def _save(visit: Visit) -> None:
    deck = own_deck()
    question = st.session_state.get("question")
    on_pronouns = st.session_state.page == "pronouns" and question is not None
    scene = pronoun_scene(visit, question) if on_pronouns else scene_of(visit)
    set_own_deck(Deck(deck.title, (*deck.scenes, scene)))
    state.note(f"Saved as scene {len(deck.scenes) + 1} of your deck (page Talk).")


def scene_of(visit: Visit) -> Scene:
    """Return the visitor's picture as a scene: the map, before and after if something is switched."""
    words = _words(visit.rest, st.session_state.query, st.session_state.key)
    switched = visit.switched
    return Scene(
        title=f"{visit.name}: who looks at whom",
        caption="This head, before and after." if switched else "Where this head looks.",
        picture="before_after" if switched else "map",
        text=visit.text,
        model=visit.choice.name,
        layer=visit.layer,
        head=visit.head,
        query=words[0],
        key=words[1],
        switches=visit.switches if switched else Switches(),
        whole_pass=visit.in_pass or not switched,
    )


def pronoun_scene(visit: Visit, question: Question) -> Scene:
    """Return what the page Pronouns shows as a scene: the row of the word that looks, under the same lead."""
    answer = _answer(question)
    named = answer.replace("{", "{{").replace("}", "}}")  # a visitor's braces are no names of numbers
    of_answer = f"{{weight:.2f}} of its weight goes to “{named}”." if answer else "Where it looks."
    return Scene(
        title=f"What does “{question.spoken}” look at?",
        caption=f"{visit.name}: {of_answer}",
        picture="row",
        text=question.lead + question.text,
        model=visit.choice.name,
        layer=visit.layer,
        head=visit.head,
        query=question.spoken,
        key=answer,
    )


def _answer(question: Question) -> str:
    """Return the answer's last word; nothing if there is none, or if it stands in the text before, too."""
    if question.answer is None:
        return ""
    word = question.word(question.candidates[question.answer][-1])
    return word if word_place(question.trace, word, 0) == question.groups[question.answer][-1] else ""


def _words(trace: Trace, query: int | None, key: int | None) -> tuple[str, str]:
    """Return the words by which a scene finds a cell again; none, with a note, if they would lead to another cell."""
    tokens = trace.tokens
    if query is None or key is None or max(query, key) >= len(tokens):
        return "", ""
    words = tokens[query].text.strip(), tokens[key].text.strip()
    try:
        found = word_place(trace, words[0], -1), word_place(trace, words[1], 0)
    except ValueError:
        found = None
    if "" in words or found != (query, key):
        state.note("The cell you pointed at can't be found again by its words, so the scene shows the map without it.")
        return "", ""
    return words
