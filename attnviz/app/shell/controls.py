"""The widgets that all pages share: sentence, examples, and the head. Model and switches have modules of their own."""

from importlib import resources

import streamlit as st

from attnviz.app.components.plots.plots import keep_plots
from attnviz.app.shell import address as state
from attnviz.app.shell.examples import Example, examples, languages
from attnviz.app.shell.fields import OF_SWITCHES, OF_TEXT
from attnviz.app.shell.visit import ask_whole_page
from attnviz.core.trace.records import ModelInfo

CSS = resources.files("attnviz.app.shell") / "app.css"


def style() -> None:
    """Give the page its measure, and let charts keep theirs."""
    st.html(CSS)
    keep_plots(key="plots")


def sentence() -> None:
    """Show the text area with Run; Ctrl+Enter does the same."""
    with st.form("sentence", border=False):
        area, button = st.columns([9, 1], vertical_alignment="bottom", gap="small")
        with area:
            st.text_area(
                "Your text (Ctrl+Enter runs it)",
                key="draft",
                height=72,
                placeholder="Type a sentence in any language",
            )
        with button:
            st.form_submit_button("Run", type="primary", width="stretch", on_click=_run_draft)
    if not state.fits_address(st.session_state.text):
        st.caption("This text is too long for a link: the page's address leaves it out.")


def examples_row() -> None:
    """Show the examples of all languages as buttons."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        for language in languages():
            st.markdown(f":gray[{language}]", width="content")
            for example in examples(language):
                st.button(
                    example.title,
                    key=f"example-{example.name}",
                    type="tertiary",
                    help=example.text.replace("\n", " "),
                    on_click=_take_example,
                    args=(example,),
                )


def head(info: ModelInfo) -> None:
    """Show the boxes for part, layer and head, and the button that switches the head off."""
    if len(info.parts) > 1:
        st.segmented_control(
            "Part",
            info.parts,
            key="part",
            required=True,
            persist_state="session",
            on_change=ask_whole_page,
            help="Encoder: the text sees itself. Decoder: what is written sees itself. Cross: it sees the text.",
        )
    with st.container(horizontal=True, gap="xsmall", width="content", key="head-boxes"):
        if info.layers == tuple(range(info.layers[0], info.layers[-1] + 1)):
            st.number_input("Layer", info.layers[0], info.layers[-1], step=1, key="layer", persist_state="session")
        else:
            reason = "The layers that have softmax attention."
            st.selectbox("Layer", info.layers, key="layer", help=reason, persist_state="session")
        st.number_input("Head", 0, info.n_heads - 1, step=1, key="head", persist_state="session")


def _run_draft() -> None:
    new_text(st.session_state.draft)


def new_text(text: str) -> None:
    """Take a text as the one to show; what named tokens of the old one is dropped."""
    chosen = st.session_state
    if text == chosen.text:
        return
    if chosen.forbid:
        state.note("The forbidden looks named tokens of the text before, so they were dropped.")
    chosen.text = chosen.draft = text
    state.put_at_rest(OF_TEXT)


def _take_example(example: Example) -> None:
    new_text(example.text)
    chosen = st.session_state
    chosen.draft, chosen.model, chosen.layer, chosen.head = example.text, example.model, example.layer, example.head
    rest()


def rest() -> None:
    """Put all switches at rest."""
    state.put_at_rest(OF_SWITCHES)
