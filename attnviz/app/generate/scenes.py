"""What Generate shows, as a scene of a talk."""

import streamlit as st

from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene
from attnviz.app.show.scenes import WITHOUT_PICTURE, next_scene


def scene(visit: Visit) -> Scene:
    """Return the choice that the page shows as a scene: the text up to it, and what may come next."""
    writing = st.session_state.get("continuation")
    if st.session_state.writing_topic != "steps" or writing is None or not visit.info.predicts:
        raise ValueError(WITHOUT_PICTURE)
    n_before = max(0, st.session_state.written - 1)  # the choice on the screen is the one that wrote the last token
    return next_scene(visit, "".join(step.token.text for step in writing.steps[:n_before]))
