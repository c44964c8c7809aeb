"""Heads found by a pattern: on the reference texts, and on the visitor's."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.fields import FIELDS
from attnviz.app.explore.find.results import (
    N_LISTED,
    SIDES,
    Bar,
    Listed,
    head_list,
    shown_facts,
    shown_key,
    shown_trace,
    strip,
    with_progress,
)
from attnviz.app.shell import address as state
from attnviz.app.shell import cache
from attnviz.app.shell.address import run_again
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_model
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.battery import BatteryScores, battery_texts, stands_out
from attnviz.core.heads.patterns import PATTERNS
from attnviz.core.heads.scored_text import PatternScores, score_pattern

PLACES = {"known": "on reference texts", "here": "on this text"}


def by_pattern(visit: Visit) -> None:
    """Draw how all heads score for the chosen pattern, and list the best."""
    if visit.part == "cross":
        st.caption("A pattern needs queries and keys of the same text, and cross-attention has two.")
        return
    _boxes()
    pattern, place = st.session_state.pattern, st.session_state.found_in
    known, here = _battery(visit), _here(visit, pattern)
    row = known.patterns.index(pattern)
    scores = known.scores[row] if place == "known" else here.scores
    heads = [(layer, head) for layer, head, _ in strongest(scores, known.layers, N_LISTED)]
    st.caption(plain(_reading(known, pattern, place, heads)))
    if not heads:
        return
    picture, best = st.columns(SIDES, gap="medium")
    with picture:
        about = of_model(visit) if place == "known" else shown_facts(visit)
        strip(visit, scores, known.layers, f"{PATTERNS[pattern].title}, {PLACES[place]}", about)
    with best:
        head_list(visit, ["reference texts", "this text"], [_listed(known, here, row, *head) for head in heads])


def _boxes() -> None:
    """Show the boxes that choose the pattern, and on which texts heads are put in order."""
    asked = st.session_state.pattern
    if asked not in PATTERNS:
        st.session_state.pattern = FIELDS["pattern"].default
        state.note(f"There is no pattern “{asked}”, so the page's own is shown.")
        run_again()  # the notes are at the top of the page
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Pattern",
            list(PATTERNS),
            key="pattern",
            persist_state="session",
            format_func=lambda key: PATTERNS[key].title,
            width=230,
        )
        texts = f"The {len(battery_texts())} reference texts come with attnviz and give every pattern its occasion."
        choose("Best first", "found_in", PLACES, help=texts)


def _battery(visit: Visit) -> BatteryScores:
    return with_progress(
        "Reading reference text", lambda show: cache.get_battery(visit.choice, visit.part, on_text=show)
    )


def _here(visit: Visit, pattern: str) -> PatternScores:
    return cache.results().get(
        ("pattern", *shown_key(visit), pattern), lambda: score_pattern(shown_trace(visit), pattern, part=visit.part)
    )


def _listed(known: BatteryScores, here: PatternScores, row: int, layer: int, head: int) -> Listed:
    i = known.layers.index(layer)
    on_battery = _number(known.scores[row, i, head], known.n[row, i])
    return Listed(layer, head, (on_battery, _number(here.scores[i, head], here.n[i, head])))


def _number(score: NDArray[np.float64], n: int) -> Bar:
    return Bar("no occasion", None) if np.isnan(score) else Bar(f"{score:.2f} (n {n:,})", float(score))


def _reading(known: BatteryScores, pattern: str, place: str, heads: list[tuple[int, int]]) -> str:
    sentence = f"{PATTERNS[pattern].explanation} From 0 to 1; n is the number of places behind a score."
    title = PATTERNS[pattern].title
    if not heads and place == "here":
        return f"{sentence} This text gives no occasion for “{title}”; the reference texts do."
    if not heads:
        return f"{sentence} The reference texts give this model no occasion: its mask or its tokens rule it out."
    if place == "known" and not stands_out(known, pattern).any():
        return f"{sentence} No head of this model scores high enough to be known for it."
    return sentence
