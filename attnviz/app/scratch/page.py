"""From scratch: the mathematics of attention in nine steps, on the visitor's sentence and on made-up numbers."""

from urllib.parse import urlencode

import streamlit as st

from attnviz.app.scratch.steps import DRAW
from attnviz.app.scratch.texts import all_steps
from attnviz.app.shell import address as state
from attnviz.app.shell.visit import current_visit
from attnviz.app.show.choose import choose
from attnviz.app.show.lesson import code, frame, titles

BOXES = ("source", "layer", "head", "rows", "width", "seed", "heads", "curves", "swap", "heat", "digits", "overflow")
STEPS = {name: step for name, step in all_steps().items() if name in DRAW}


def go(name: str) -> None:
    """Open a step."""
    st.session_state.step = name


def back_and_next(name: str) -> None:
    """Show the buttons to the step before and the step after."""
    names = list(STEPS)
    place = names.index(name)
    with st.container(horizontal=True, vertical_alignment="center", key="back-and-next"):
        if place > 0:
            there = names[place - 1]
            st.button(f"Back: {STEPS[there].title}", key="back", on_click=go, args=(there,))
        st.markdown(f"[Link to this step](?{urlencode(st.session_state.address)})", width="stretch")
        if place + 1 < len(names):
            there = names[place + 1]
            st.button(f"Next: {STEPS[there].title}", key="next", type="primary", on_click=go, args=(there,))


@st.fragment  # a click in here redraws one step and no more
def lesson() -> None:
    """Draw the chosen step."""
    visit = current_visit()
    chosen = choose("Step", "step", titles(STEPS), hide_label=True)
    step = STEPS[chosen]
    state.hold("step", chosen, BOXES)
    if visit.switched:
        st.caption("The switches in the sidebar act on other pages. This one shows the model at rest.")
    frame(step)
    DRAW[chosen](visit, step)
    code(step)
    state.remember()  # before the link is drawn
    back_and_next(chosen)


lesson()
