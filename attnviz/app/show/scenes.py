"""What pages share to make scenes of a talk of what they show."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene
from attnviz.app.show.places import name_token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

WITHOUT_PICTURE = "A talk has no picture of this part of the page."
MOST_NAMED = 3  # heads that are off by name
SAME_MAP = (
    "A talk has nothing to show here: these switches leave the map of {name} as it is, "
    "and this model predicts no next token."
)


def scene_of(visit: Visit) -> Scene:
    """Return a scene of the visitor's text, model and head."""
    choice = visit.choice
    return Scene(
        "",
        "",
        text=visit.text,
        model=choice.name,
        precision=choice.dtype,
        engine=choice.engine,
        layer=visit.layer,
        head=visit.head,
    )


def map_scene(visit: Visit) -> Scene:
    """Return the visitor's picture as a scene: the map, before and after if something is switched.

    Switches that leave the map as it is, as a head that is off leaves its own, make a scene of the next tokens.

    Raises:
        ValueError: the map stays as it is, and the model predicts no next token.
    """
    switched = visit.switched
    if switched and _same_map(visit):
        if not visit.info.predicts:
            raise ValueError(SAME_MAP.format(name=visit.name))
        return replace(next_scene(visit), title=f"What comes next: {action(visit.switches)}")
    query, key = st.session_state.query, st.session_state.key
    scene = replace(
        scene_of(visit),
        title=f"{visit.name}: " + (f"before and after, {action(visit.switches)}" if switched else "who looks at whom"),
        caption=f"{visit.name}, before and after." if switched else "Where this head looks.",
        picture="before_after" if switched else "map",
        switches=visit.switches if switched else Switches(),
        whole_pass=visit.in_pass or not switched,
    )
    n_tokens = len(visit.rest.tokens)
    if query is None or key is None or max(query, key) >= n_tokens:
        return scene
    said = weights_of(visit.rest, query, key) if switched else weight_of(visit.rest, query, key)
    return replace(scene, **cell_of(visit.rest, query, key), caption=said)


def next_scene(visit: Visit, written: str = "") -> Scene:
    """Return what comes next after the visitor's text and what was written behind it, as a scene."""
    switched = visit.switched and visit.in_pass
    return replace(
        scene_of(visit),
        title="What comes next?",
        caption="“{next}”: {chance}" + (", under the switches {chance_after}." if switched else "."),
        picture="next",
        text=visit.text + written,
        switches=visit.switches if switched else Switches(),
    )


def action(switches: Switches) -> str:
    """Return in a few words what is switched.

    >>> action(Switches(ablate=frozenset({(16, 0)})))
    'L16 H0 off'
    """
    if len(switches.ablate) > MOST_NAMED:
        return f"{len(switches.ablate)} heads off"
    if switches.ablate:
        return ", ".join(f"L{layer} H{head}" for layer, head in sorted(switches.ablate)) + " off"
    if not switches.scaled:
        return "without 1/√d"
    if switches.causal is not None:
        return "without the mask" if switches.causal is False else "under the mask"
    if switches.forbid:
        return "looks forbidden"
    return f"temperature {switches.temperature:g}" if switches.temperature != 1 else "after"


def cell_of(trace: Trace, query: int, key: int) -> dict[str, Any]:
    """Return the attributes of a scene by which it finds a cell again."""
    names = (name_token(trace, query, by_itself=-1), name_token(trace, key, by_itself=0))
    return dict(zip(("query", "query_at", "key", "key_at"), (*names[0], *names[1]), strict=True))


def weight_of(trace: Trace, query: int, key: int) -> str:
    """Return what a caption says of one weight."""
    one, other = (braced(trace.tokens[token].text.strip() or trace.tokens[token].label) for token in (query, key))
    return f"{{weight:.2f}} of the attention of “{one}” goes to “{other}”."


def weights_of(trace: Trace, query: int, key: int) -> str:
    """Return what a caption says of one weight before and after the switches."""
    return weight_of(trace, query, key).replace("{weight:.2f}", "{weight:.2f} → {weight_after:.2f}")


def braced(word: str) -> str:
    """Return a word whose braces are no names of numbers."""
    return word.replace("{", "{{").replace("}", "}}")


def _same_map(visit: Visit) -> bool:
    """Return whether a whole pass under the switches leaves the selected head's map as it is."""
    return visit.in_pass and np.allclose(visit.head_before.weights, visit.head_after.weights, atol=1e-6)
