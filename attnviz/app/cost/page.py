"""Cost: what attention costs in multiplications and memory, and how FlashAttention avoids the matrix."""

import streamlit as st

from attnviz.app.cost.parts_list import DRAW
from attnviz.app.cost.texts import all_parts
from attnviz.app.shell import address as state
from attnviz.app.shell.visit import current_visit
from attnviz.app.show.choose import choose
from attnviz.app.show.lesson import code, frame, titles


@st.fragment  # a click in here redraws one part and no more
def cost() -> None:
    """Draw the chosen part."""
    visit = current_visit() if "visit" in st.session_state else None  # without a text there is none
    parts = all_parts()
    chosen = choose("Part", "cost_part", titles(parts), hide_label=True)
    if visit is not None and visit.switched:
        st.caption("The switches act on the page Explore. This page shows the model at rest.")
    frame(parts[chosen])
    DRAW[chosen](visit, parts[chosen])
    code(parts[chosen])
    state.remember()


cost()
