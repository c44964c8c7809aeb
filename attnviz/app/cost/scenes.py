"""What Cost shows, as a scene of a talk."""

from typing import Any

import streamlit as st

from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene
from attnviz.app.show.scenes import WITHOUT_PICTURE


def scene(visit: Visit | None) -> Scene:
    """Return the curves of the page Cost as a scene, with the sizes and the length that are set there."""
    chosen = st.session_state
    sizes: dict[str, Any] = {"sizes_of": chosen.cost_model}
    if not chosen.cost_model:
        sizes = {"sizes": (chosen.cost_d, chosen.cost_heads, chosen.cost_group, chosen.cost_layers)}
    if chosen.cost_part == "grows" and chosen.cost_mlp and not chosen.cost_skip:
        title, picture = "What grows how", "cost"
        caption = "At {tokens:,} tokens attention takes {attention} multiply-adds of a layer, the MLP {mlp}."
    elif chosen.cost_part == "matrix":
        title, picture = "The score matrix", "scores_memory"
        sizes["number_bytes"] = int(chosen.cost_bytes)
        caption = "{tokens:,} tokens, {heads} heads: {one_layer} for one layer, {all_layers} for all {layers}."
    else:
        raise ValueError(WITHOUT_PICTURE)
    return Scene(title, caption, picture=picture, tokens=chosen.cost_s, **sizes)
