"""Heads whose maps are like the selected head's on this text."""

import numpy as np
import streamlit as st

from attnviz.app.explore.find.results import (
    N_LISTED,
    SIDES,
    head_list,
    one_bar_each,
    shown_facts,
    shown_key,
    shown_trace,
    strip,
    with_progress,
)
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.finder import RESTS, Alike, heads_like


def like_this(visit: Visit) -> None:
    """Draw how like the selected head all heads are on this text, and list the most alike."""
    found = _alike(visit)
    layers = visit.after.layers_of(visit.part)
    reason = _why_none(visit, found, found.free[layers.index(visit.layer), visit.head])
    if reason:
        st.caption(plain(reason))
        return
    st.caption(plain(_reading(visit, found)))
    picture, best = st.columns(SIDES, gap="medium")
    with picture:
        strip(visit, found.similarity, layers, f"similarity to {visit.name}", shown_facts(visit))
    with best:
        own = (visit.layer, visit.head)
        others = [entry for entry in strongest(found.similarity, layers, N_LISTED + 1) if entry[:2] != own]
        head_list(visit, [f"like {visit.name}"], one_bar_each(others[:N_LISTED]))


def _why_none(visit: Visit, found: Alike, share: float) -> str:
    if not found.n_rows:
        return "No token of this text has two others to choose from, so there is nothing to compare."
    if share >= RESTS:
        return ""
    return (
        f"{visit.name} rests on this text: only {share:.1%} of its weight is off the first token. "
        "Choose another head, or a text that gives it something to do, such as words that come twice."
    )


def _alike(visit: Visit) -> Alike:
    return with_progress(
        "Comparing maps: layer",
        lambda show: cache.results().get(
            ("alike", *shown_key(visit), visit.layer, visit.head),
            lambda: heads_like(visit.head_of(shown_trace(visit)), on_layer=show),
        ),
    )


def _reading(visit: Visit, found: Alike) -> str:
    special = any(token.special for token in visit.after.tokens_of(visit.part)[1])
    aside = "the first token and special ones" if special else "the first token"
    rest = int(np.isfinite(found.free).sum())
    return (
        f"The weight that two heads put on the same keys from the same queries, as a share of what each puts anywhere "
        f"(1: the same map). Weight on {aside} is left out, because most heads rest there; {found.n_resting} of {rest} "
        f"heads leave less than {RESTS:.0%} for the other tokens here and aren't compared."
    )
