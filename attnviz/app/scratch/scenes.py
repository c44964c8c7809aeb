"""What From scratch shows, as a scene of a talk."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.scratch.numbers import real_numbers
from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene
from attnviz.app.show.scenes import WITHOUT_PICTURE, cell_of, scene_of, weight_of, weights_of
from attnviz.core.trace.switches import Switches


def scene(visit: Visit) -> Scene:
    """Return the step of From scratch that is open as a scene."""
    chosen = st.session_state
    made_up = chosen.source == "random" and chosen.step not in ("mask", "matches")
    if made_up or chosen.step not in LESSON or visit.info.cannot.get("scores"):
        raise ValueError("A talk shows no random numbers." if made_up else WITHOUT_PICTURE)
    numbers = real_numbers(visit)
    found = replace(scene_of(visit), **cell_of(visit.rest, *numbers.cell))
    return replace(found, **LESSON[chosen.step](visit, weight_of(visit.rest, *numbers.cell)))


def _mask_scene(visit: Visit) -> dict[str, Any]:
    """Point at the cell above the diagonal with the most weight without the mask: a row before the last."""
    switches = Switches(causal=not visit.head_before.causal)
    ahead = np.triu(visit.head_before.under(Switches(causal=False)).weights, 1)
    query, key = (int(place) for place in np.unravel_index(ahead.argmax(), ahead.shape))
    return {
        "title": "With the causal mask, and without",
        "picture": "before_after",
        "caption": weights_of(visit.rest, query, key) + " Each row shares its weight among the tokens it may see.",
        "switches": switches,
        "whole_pass": False,
        **cell_of(visit.rest, query, key),
    }


def _other_head(visit: Visit) -> int:
    other = st.session_state.get("other-box", st.session_state.other)
    return other if other is not None and other != visit.head else (visit.head + 1) % visit.info.n_heads


LESSON: dict[str, Callable[[Visit, str], dict[str, Any]]] = {
    "scores": lambda visit, weight: {
        "title": "One score, product by product",
        "picture": "products",
        "caption": "q·k = {product:.1f}, times the model's own factor {score:.1f}, after the softmax {weight:.2f}.",
    },
    "scaling": lambda visit, weight: {
        "title": "With the factor 1/√d, and without",
        "picture": "saturation",
        "caption": "Above 0.99: {saturated} of rows, without the factor {saturated_after}.",
    },
    "mask": lambda visit, weight: _mask_scene(visit),
    "softmax": lambda visit, weight: {"title": "The softmax makes shares", "picture": "row", "caption": weight},
    "several_heads": lambda visit, weight: {
        "title": "Two heads, one query",
        "picture": "rows",
        "other": (visit.layer, _other_head(visit)),
        "caption": f"{visit.name}: {weight}",
    },
    "matches": lambda visit, weight: {
        "title": f"{visit.name}: who looks at whom",
        "picture": "map",
        "caption": weight,
    },
}
