"""Generate: the model continues the text, and the KV cache is seen at work."""

import streamlit as st

from attnviz.app.generate.continuation import continuation
from attnviz.app.generate.memory import memory, other_models
from attnviz.app.generate.shape import loaded_shape
from attnviz.app.generate.step_view import step_view
from attnviz.app.generate.with_without import with_without
from attnviz.app.generate.writing import PACE, controls_row, go_on
from attnviz.app.shell import address as state
from attnviz.app.shell.markdown import as_sentence
from attnviz.app.shell.visit import Visit, current_visit
from attnviz.app.show.choose import choose

TOPICS = {
    "steps": "Step by step",
    "both": "With and without the cache",
    "memory": "Memory",
    "models": "Other models",
}


def generate() -> None:
    """Draw the page from what the visitor chose."""
    visit = current_visit()
    topic = choose("Part", "writing_topic", TOPICS, hide_label=True)
    if topic == "models":
        other_models()
    else:
        _with_model(visit, topic)
    state.remember()


def _with_model(visit: Visit, topic: str) -> None:
    try:
        writing = continuation(visit)
    except ValueError as error:
        st.info(as_sentence(str(error)))
        return
    n_written = go_on(writing)
    controls_row(n_written, writing.ended and n_written == len(writing.steps))
    if topic == "both":
        with_without(visit, loaded_shape(visit))
    elif topic == "memory":
        memory(visit, writing.steps[n_written - 1] if n_written else None)
    else:
        step_view(visit, writing, n_written)


st.fragment(generate, run_every=PACE if st.session_state.get("playing") else None)()
