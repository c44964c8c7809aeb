"""What a chart's files say of where its numbers come from. Says nothing of the model where a chart isn't of it."""

import re
from typing import Any

import streamlit as st

import attnviz
from attnviz.core.export import about_trace
from attnviz.core.switches import Switches
from attnviz.core.trace import Trace
from attnviz.ui.share import page_link
from attnviz.ui.visit import Visit

PAGES = {
    "": "Explore",
    "scratch": "From scratch",
    "pronouns": "Pronouns",
    "generate": "Generate",
    "cost": "Cost",
    "talk": "Talk",
}
# Charts by their keys. One that isn't named here, such as a curve from a formula, claims no model.
OF_THE_TEXT = re.compile(
    r"head-map|histogram-(weights|maxima|gradient)|heads-changed|next-tokens"  # Explore
    r"|overview|head-lines|drawn-map|writes-\w+"
    r"|scores-real-\w+|maxima-real|gradient-real|mask-real-.*|lesson-distance-.*|lesson-map-as typed|lesson-head-\w+"
    r"|candidates|margins|\w+-effects|\w+-map"  # Pronouns
    r"|generate-map|rivals|cache-\w+|flash-\w+"  # Generate, Cost
)
OF_THE_TEXT_OR_RANDOM = re.compile(
    r"lesson-(apart|scores|products|shares|stack|sizes|likeness|votes|writes)|softmax-\w+|roles-\w+"
)
OF_THE_MODEL = re.compile(
    r"lesson-(shuffled|map-shuffled)|found-strip|rates|kinds|accuracy|pair-difference|both-seconds"
)


def facts_of(key: str) -> dict[str, Any]:
    """Return what is true of the chart with that key, as JSON can hold it.

    That is version, page and link always; model, text and switches where the chart is of them.
    """
    page = st.session_state.get("page", "")
    facts = {"attnviz": attnviz.__version__, "page": PAGES.get(page, page), "link": page_link()}
    visit: Visit | None = st.session_state.get("visit")
    if visit is None:
        return facts
    if _is_of_the_text(key):
        return facts | (_map_facts(visit) if key == "head-map" else _text_facts(visit, page))
    if OF_THE_MODEL.fullmatch(key):
        said = about_trace(visit.rest, version=attnviz.__version__)
        return facts | {name: said[name] for name in ("model", "title", "revision", "dtype", "engine")}
    return facts


def _is_of_the_text(key: str) -> bool:
    real = st.session_state.get("source") == "real"
    return bool(OF_THE_TEXT.fullmatch(key) or (real and OF_THE_TEXT_OR_RANDOM.fullmatch(key)))


def _map_facts(visit: Visit) -> dict[str, Any]:
    """Return what the large map on Explore is of, as its view says: with the switches, without, or the difference."""
    if not visit.switched or st.session_state.view == "after":
        return _text_facts(visit, "")
    if st.session_state.view == "before":
        return _text_facts(visit, "") | about_trace(visit.rest, version=attnviz.__version__, part=visit.part or None)
    return _text_facts(visit, "") | {"values": "weights with the switches minus weights without"}


def _text_facts(visit: Visit, page: str) -> dict[str, Any]:
    """Return model, text and switches: the visitor's on Explore, at rest on the other pages."""
    trace, switches = (visit.after, visit.picture) if page == "" else (_trace(visit, page), Switches())
    said = about_trace(trace, version=attnviz.__version__, part=visit.part or None, switches=switches)
    if page == "generate":
        said["tokens_written"] = st.session_state.written
    return said | {"selected_head": visit.name}


def _trace(visit: Visit, page: str) -> Trace:
    question = st.session_state.get("question")  # its text may have a line break in front
    return question.trace if page == "pronouns" and question is not None else visit.rest
