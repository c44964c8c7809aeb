"""Where what stands around a page is drawn: in the sidebar, or in a row of boxes above a page that fills the window."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.app.shell import controls
from attnviz.app.shell.boxes import box, mind_boxes


@dataclass(frozen=True)
class Frame:
    """A place, as a container of streamlit, for each thing around a page.

    Attributes:
        examples, help, model, switches, scene, link, look, about: for what they are called.
        notes: for sentences to the visitor; `working`: for progress, so that nothing below moves when it goes.
    """

    examples: Any
    help: Any
    model: Any
    switches: Any
    scene: Any
    link: Any
    look: Any
    about: Any
    notes: Any
    working: Any


def open_frame(on_stage: bool) -> Frame:
    """Show the text box and return the places."""
    return _on_stage() if on_stage else _beside()


def _beside() -> Frame:
    controls.sentence()
    examples = st.container()
    notes, working = st.container(), st.container()
    with st.sidebar:
        help, model, switches, scene, link, look, about = (st.container() for _ in range(7))
    return Frame(examples, help, model, switches, scene, link, look, about, notes, working)


def _on_stage() -> Frame:
    with st.container(key="sentence-row", horizontal=True, vertical_alignment="center", gap="small"):
        controls.sentence()
        examples, model = box("Examples", "examples"), box("Model", "model")
        with box("Share", "share"):
            scene, link = st.container(), st.container()
        look, help = box("Look", "look"), box("?", "help")
        mind_boxes()
    with st.container(key="said"):
        notes, working = st.container(), st.container()
    switches = st.container(key="switches")
    return Frame(examples, help, model, switches, scene, link, look, model, notes, working)
