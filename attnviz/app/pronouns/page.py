"""Pronouns: who is “it”? Where heads look, how often they are right, and whether their look matters."""

import streamlit as st

from attnviz.app.pronouns.board import scoreboard
from attnviz.app.pronouns.matters import matters
from attnviz.app.pronouns.pairs import pair
from attnviz.app.pronouns.picture import look, sentence
from attnviz.app.pronouns.question import ask
from attnviz.app.shell import address as state
from attnviz.app.shell.markdown import as_sentence
from attnviz.app.shell.visit import current_visit
from attnviz.app.show.choose import choose

TOPICS = {
    "look": "Who gets the weight?",
    "pair": "Two sentences",
    "scores": "Many sentences",
    "matters": "Does the head matter?",
}


@st.fragment  # a click in here redraws this much of the page and no more
def pronouns() -> None:
    """Draw the sentence, and below it what was chosen."""
    visit = current_visit()
    if visit.switched:
        st.caption("The switches act on the page Explore. This page shows the model at rest.")
    try:
        question = ask(visit)
    except ValueError as error:
        st.error(as_sentence(str(error)))
        return
    if question is None:
        return
    sentence(visit, question)
    topic = choose("Below", "topic", TOPICS, hide_label=True)
    if topic == "look":
        look(visit, question)
    elif topic == "pair":
        pair(visit, question)
    elif topic == "scores":
        scoreboard(visit)
    else:
        matters(visit, question)
    state.remember()


pronouns()
