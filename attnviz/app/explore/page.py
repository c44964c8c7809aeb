"""Explore: a sentence, every head of a model, one head in large, and switches that really switch."""

import streamlit as st

from attnviz.app.explore.all_heads import all_heads
from attnviz.app.explore.changes import changes
from attnviz.app.explore.head_card import against_pytorch, guesses, head_card
from attnviz.app.explore.large_map import picture
from attnviz.app.explore.saturation import saturation
from attnviz.app.explore.sentence import sentence_strip
from attnviz.app.explore.tools import tools
from attnviz.app.shell import address as state
from attnviz.app.shell import controls
from attnviz.app.shell.visit import current_visit


@st.fragment  # a click in here redraws this much of the page and no more
def explore() -> None:
    """Draw the page from what the visitor chose."""
    visit = current_visit()
    heads, head = st.columns([3, 7], gap="medium")
    with head:  # first, since it is what a click on a thumbnail waits for
        picture(visit)
        against_pytorch(visit)
    with heads:
        controls.head(visit.info)
        all_heads(visit)
    sentence_strip(visit)
    tools(visit)
    card, next_token = st.columns(2, gap="medium")
    with next_token:
        guesses(visit)
    if visit.switched:
        changes(visit)
    saturation(visit)
    state.remember()
    with card:  # last, since a model's first reading of the reference texts takes seconds
        head_card(visit)


explore()
