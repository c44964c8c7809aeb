"""What a chart's files say of where its numbers come from; whoever makes a chart hands it over together with it.

Every file says version, page and link besides. A chart of a formula, of random numbers or of this machine claims no
model: it is `OF_NOTHING`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import streamlit as st

import attnviz
from attnviz.app.shell.share import page_link
from attnviz.app.shell.visit import Visit
from attnviz.core.export.head_files import about_trace
from attnviz.core.trace.head import Head
from attnviz.core.trace.trace import Trace

__all__ = ["OF_NOTHING", "Facts", "at_rest", "of_head", "of_model", "of_text", "of_view", "where"]

Facts: TypeAlias = Mapping[str, Any]
"""What is true of the numbers, by names, as JSON can hold it."""

OF_NOTHING: Facts = MappingProxyType({})


def where() -> dict[str, Any]:
    """Return what every file says: the version, the page and its link."""
    return {"attnviz": attnviz.__version__, "page": st.session_state.get("page_title", ""), "link": page_link()}


def of_model(visit: Visit) -> Facts:
    """Return which model it is: for numbers of the model on texts that aren't the visitor's."""
    said = about_trace(visit.rest, version=attnviz.__version__)
    return {name: said[name] for name in ("model", "title", "revision", "dtype", "engine")}


def of_head(head: Head) -> Facts:
    """Return model, text and switches of a head: for its numbers, or for those of the pass that it is chosen in."""
    said = about_trace(head.trace, version=attnviz.__version__, part=head.part, switches=head.switches)
    return said | {"selected_head": head.name}


def of_text(visit: Visit, trace: Trace) -> Facts:
    """Return the same for the chosen head in the pass over a text."""
    return of_head(visit.head_of(trace))


def of_view(visit: Visit, view: str = "after") -> Facts:
    """Return the facts of the visitor's text under his switches, or as it is without them in the view "before"."""
    return of_head(visit.head_in(view))


def at_rest(visit: Visit) -> Facts:
    """Return the facts of the visitor's text as the model reads it, without switches."""
    return of_head(visit.head_before)
