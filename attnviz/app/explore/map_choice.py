"""What the visitor chose to see of the head's map, read from the session once, and what can be shown of it."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.fields import ALL
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.visit import Visit
from attnviz.app.show.numpy_model import load_numpy
from attnviz.core.maps.choice import MapChoice, chosen_tokens
from attnviz.core.maps.shown import all_layers
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Float
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import head_write

MOST_ROLLED = 512  # tokens of a text whose layers are multiplied while the visitor waits
SHOWS = {
    "tokens": "weights of tokens",
    "words": "weights of words",
    "written": "weight × what is written",
    "rollout": "rollout over all layers",
}
FOR_ENCODERS = "Rollout is there for encoders only: in a decoder everything ends on the first token."


def map_choice(visit: Visit) -> MapChoice:
    """Return what the visitor chose to see of the selected head's map."""
    chosen = st.session_state
    return MapChoice(
        shows=chosen.shows,
        view=chosen.view if visit.switched else "after",
        scale=chosen.colours,
        tokens=chosen_tokens(visit.n_tokens, None if chosen.zoom == ALL else chosen.zoom),
        special=chosen.special,
        query=chosen.query,
        key=chosen.key,
        forbidden=tuple(visit.switches.forbidden(visit.layer, visit.head)),
    )


def offered_views(visit: Visit) -> dict[str, str]:
    """Return what the cells can show in this part of this model, name -> plain name."""
    both_ways = _looks_both_ways(visit)
    return {name: title for name, title in SHOWS.items() if name != "rollout" or both_ways}


def possible(visit: Visit, choice: MapChoice) -> tuple[MapChoice, Model | None]:
    """Return what can be shown, with one sentence why it isn't what was chosen, and the model in NumPy if it takes it.

    Args:
        visit: what is selected.
        choice: as the visitor made it.
    """
    reason, model = "", None
    if choice.shows == "written":
        try:
            model = load_numpy(visit)
        except ValueError as error:
            reason = f"What a head writes can't be worked out here, tokens' weights are shown: {error}."
    elif choice.shows == "rollout":
        reason = _why_no_rollout(visit)
    return (replace(choice, shows="tokens", reason=reason) if reason else choice), model


def written(model: Model | None, head: Head) -> Float:
    """Return (keys, d_model) what a head writes for each key; `possible` gives the model where that is shown."""
    assert model is not None
    values = head.trace.qkv(head.layer, head.head, part=head.part)[2]  # (keys, d_head)
    return head_write(model, head.layer, head.head, values)


def rolled(choice: ModelChoice, head: Head) -> NDArray[np.float64]:
    """Return (tokens, tokens) all layers as one map, worked out once for each text and its switches."""
    trace = head.trace
    key = ("rollout", choice, trace.text, trace.switches, head.switches, head.part)
    return cache.results().get(key, partial(all_layers, head))


def _why_no_rollout(visit: Visit) -> str:
    n_tokens = len(visit.rest.tokens_of(visit.part)[1])
    if not _looks_both_ways(visit):
        return FOR_ENCODERS
    if n_tokens > MOST_ROLLED:
        return f"Rollout multiplies whole maps, so it is there for up to {MOST_ROLLED} tokens; these are {n_tokens:,}."
    return ""


def _looks_both_ways(visit: Visit) -> bool:
    return visit.part != "cross" and not visit.head_before.causal
