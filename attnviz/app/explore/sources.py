"""Where the numbers of the large map come from: the selected head's weights, what it writes, or all layers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.fields import ALL
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.core.values.rollout import rollout
from attnviz.core.values.value_weighted import value_weighted
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import head_write

Values = NDArray[np.floating]
Made = tuple[Values, NDArray[np.bool_]]
Make = Callable[[Trace, Switches | None], Made]

MOST_CELLS = 160  # rows or columns that are drawn one by one; more are pooled, or shown in part
PART = 96  # tokens a side of a part
MOST_ROLLED = 512  # tokens of a text whose layers are multiplied while the visitor waits
SHOWS = {
    "tokens": "weights of tokens",
    "words": "weights of words",
    "written": "weight × what is written",
    "rollout": "rollout over all layers",
}
FOR_ENCODERS = "Rollout is there for encoders only: in a decoder everything ends on the first token."


def offered_views(visit: Visit) -> dict[str, str]:
    """Return what the cells can show in this part of this model, name -> plain name."""
    return {name: title for name, title in SHOWS.items() if name != "rollout" or _looks_both_ways(visit)}


def chosen_view(visit: Visit) -> tuple[str, str]:
    """Return what the cells show, a name in `SHOWS`, and one sentence why it isn't what was chosen ("" if it is)."""
    shows = st.session_state.shows
    reason = ""
    if shows == "written":
        _, reason = _numpy_model(visit)
    elif shows == "rollout" and not _looks_both_ways(visit):
        reason = FOR_ENCODERS
    elif shows == "rollout" and (n_tokens := len(visit.rest.tokens_of(visit.part)[1])) > MOST_ROLLED:
        reason = (
            f"Rollout multiplies whole maps, so it is there for up to {MOST_ROLLED} tokens; these are {n_tokens:,}."
        )
    return ("tokens", reason) if reason else (shows, "")


def shown_view(visit: Visit) -> str:
    """Return which of the views is on the screen: "after" unless switches are on and another was chosen."""
    return st.session_state.view if visit.switched else "after"


def is_whole(visit: Visit) -> bool:
    """Return True if a text that is too long for single cells is shown as a whole."""
    n_tokens = max(len(side) for side in visit.after.tokens_of(visit.part))
    return n_tokens > MOST_CELLS and st.session_state.zoom == ALL


def window(visit: Visit) -> slice:
    """Return the tokens that are drawn one by one."""
    n = max(len(side) for side in visit.after.tokens_of(visit.part))
    if n <= MOST_CELLS:
        return slice(0, n)
    start = min(max(st.session_state.zoom, 0), max(0, n - PART))
    return slice(start, min(start + PART, n))


def head_weights(visit: Visit, view: str, part: slice | None = None) -> Made:
    """Return (queries, keys) weights of the selected head and where they are allowed, as `view` says.

    The difference is with minus without; there a cell counts as allowed if either map allows it.
    """
    return _as_view(visit, view, lambda trace, switches: _weights(visit, trace, switches, part, part))


def source_map(visit: Visit, shows: str, view: str, queries: slice) -> Made:
    """Return (queries, keys), with all keys, what the cells show, and where a look is possible.

    Args:
        visit: what is selected.
        shows: a name in `SHOWS` that `chosen_view` returns; for "words" the weights of tokens that words are made of.
        view: "before", "after" or "difference", as the switches go.
        queries: which of them.
    """

    def weights(trace: Trace, switches: Switches | None) -> Made:
        return _weights(visit, trace, switches, queries)

    def written(trace: Trace, switches: Switches | None) -> Made:
        model, _ = _numpy_model(visit)
        values = trace.qkv(visit.layer, visit.head, part=visit.part)[2]  # (keys, d_head)
        rows, allowed = weights(trace, switches)
        return value_weighted(rows, head_write(model, visit.layer, visit.head, values)), allowed

    def rolled(trace: Trace, switches: Switches | None) -> Made:
        flow = _rollout(visit, trace, switches)[queries]
        return flow, flow > 0

    return _as_view(visit, view, {"written": written, "rollout": rolled}.get(shows, weights))


def _as_view(visit: Visit, view: str, make: Make) -> Made:
    """Make a map without the switches, with them, or both and the difference."""
    if view == "before":
        return make(visit.rest, None)
    after, seen_after = make(visit.after, visit.picture)
    if view != "difference":
        return after, seen_after
    before, seen_before = make(visit.rest, None)
    return after - before, seen_before | seen_after


def _weights(
    visit: Visit, trace: Trace, switches: Switches | None, queries: slice | None, keys: slice | None = None
) -> Made:
    where = {"part": visit.part, "queries": queries, "keys": keys, "switches": switches}
    return trace.weights(visit.layer, visit.head, **where), trace.allowed(visit.layer, visit.head, **where)


def _looks_both_ways(visit: Visit) -> bool:
    return visit.part != "cross" and not visit.rest.causal(visit.layer, part=visit.part)


def _rollout(visit: Visit, trace: Trace, switches: Switches | None) -> NDArray[np.float64]:
    """Return (tokens, tokens), worked out a layer at a time, once for each text and its switches."""
    key = ("rollout", visit.choice, visit.text, trace.switches, switches, visit.part)
    layers = trace.layers_of(visit.part)
    maps = (trace.layer_weights(layer, part=visit.part, switches=switches) for layer in layers)
    return cache.results().get(key, lambda: rollout(maps))


def _numpy_model(visit: Visit) -> tuple[Model | None, str]:
    """Return the model in NumPy, for its W_O, and ""; or None and one sentence why it can't be run that way."""
    choice = replace(visit.choice, engine="numpy", dtype="float32")
    place = st.empty()
    try:
        return cache.get_engine(choice, lambda sentence: place.info(plain(sentence))).model, ""
    except ValueError as error:
        return None, f"What a head writes can't be worked out here, tokens' weights are shown: {error}."
    finally:
        place.empty()
