"""The controls of the page Generate: step, play, stop, back, and how tokens are chosen."""

import streamlit as st

from attnviz.app.generate.continuation import MOST, Continuation
from attnviz.app.shell.address import run_again
from attnviz.app.shell.visit import ask_whole_page

WARMTHS = ("0", "0.3", "0.7", "1", "1.5", "2")
TOP_PS = ("0.5", "0.8", "0.9", "0.95", "1")
PACE = 0.8  # seconds from one token to the next while it plays


def controls_row(n_written: int, done: bool) -> None:
    """Show the buttons that write and take back, and how tokens are chosen."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="writing"):
        _buttons(n_written, done)
        st.select_slider(
            "Temperature of the choice",
            WARMTHS,
            key="warmth",
            persist_state="session",
            format_func=lambda text: "0: the likeliest" if text == "0" else text,
            width=200,
        )
        if st.session_state.warmth != "0":
            _drawing()


def _buttons(n_written: int, done: bool) -> None:
    playing = st.session_state.get("playing", False)
    back = {"on_click": _to, "disabled": not n_written}
    st.button("To start", key="write-start", args=(0,), **back)
    st.button("Back", key="write-back", args=(n_written - 1,), shortcut="Left", **back)
    forward = {"on_click": _to, "disabled": done, "type": "primary"}
    st.button("Step", key="write-step", args=(n_written + 1,), shortcut="Right", **forward)
    label = "Stop" if playing else "Play"
    st.button(label, key="write-play", on_click=play, args=(not playing,), disabled=done and not playing)


def _drawing() -> None:
    st.number_input("Top k (0: all)", 0, 1000, step=1, key="top_k", persist_state="session", width=130)
    st.select_slider("Top p", TOP_PS, key="top_p", persist_state="session", width=130)
    st.number_input("Seed", 0, 999_999, step=1, key="seed", persist_state="session", width=130)


def go_on(writing: Continuation) -> int:
    """Write as far as the visitor wants and return how many tokens are shown; while it plays, one more each time."""
    chosen = st.session_state
    if chosen.get("playing") and chosen.get("play_tick"):
        chosen.written += 1
    chosen.play_tick = bool(chosen.get("playing"))
    place = st.empty()
    wanted = min(chosen.written, MOST)
    behind = wanted - len(writing.steps) > 1

    def show(n: int) -> None:
        if behind:
            place.progress(n / wanted, f"Writing token {n} of {wanted}")

    writing.reach(wanted, show)
    place.empty()
    chosen.written = min(wanted, len(writing.steps))
    if chosen.get("playing") and (writing.ended or chosen.written >= MOST):
        play(False)
        run_again()
    return chosen.written


def play(on: bool) -> None:
    """Let the text grow by itself, or stop it."""
    st.session_state.playing = on
    st.session_state.play_tick = on
    ask_whole_page()


def _to(n: int) -> None:
    st.session_state.written = n
    if st.session_state.get("playing"):
        play(False)
