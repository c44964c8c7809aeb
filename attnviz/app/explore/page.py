"""Explore: a sentence, every head of a model, one head in large, and switches that really switch."""

import streamlit as st

from attnviz.app.explore.all_heads import all_heads
from attnviz.app.explore.changes import changes
from attnviz.app.explore.head_card import against_pytorch, head_card
from attnviz.app.explore.large_map import picture
from attnviz.app.explore.next_words import next_words
from attnviz.app.explore.saturation import saturation
from attnviz.app.explore.sentence import sentence_strip
from attnviz.app.explore.tools import tools
from attnviz.app.shell import address as state
from attnviz.app.shell.visit import current_visit


@st.fragment  # a click in here redraws this much of the page and no more
def explore() -> None:
    """Draw the page from what the visitor chose."""
    visit = current_visit()
    with st.container(key="large-map"):  # first, since it is what a click on a thumbnail waits for
        below_map = picture(visit)
    with st.container(key="heads"):
        all_heads(visit)
    with st.container(key="next"):
        below_next = next_words(visit)
    below_map()
    below_next()
    against_pytorch(visit)
    sentence_strip(visit)
    tools(visit)
    if visit.switched:
        changes(visit)
    saturation(visit)
    state.remember()
    head_card(visit)  # last, since a model's first reading of the reference texts takes seconds


explore()
