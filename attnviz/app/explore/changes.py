"""What the switches changed: which heads moved, and a sentence on what that shows and what it doesn't."""

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw, heads_table
from attnviz.app.show.facts import of_view
from attnviz.app.show.heads_map import head_button
from attnviz.core.compare.agreement import map_change
from attnviz.core.heads.at_a_glance import strongest
from attnviz.figures import heads_changed

CAVEAT = (
    "A trained model under a switch that it never met in training shows what it relies on, not how a model that was "
    "trained that way would look."
)


def changes(visit: Visit) -> None:
    """Say what is switched, and draw which heads changed most."""
    st.markdown("#### What the switches changed")
    scope = (
        "the whole pass: every layer ran under them" if visit.in_pass else "this picture: the same q and k as before"
    )
    st.markdown(f"{plain(describe(visit))} This acts on {scope}. {CAVEAT}")
    change = cache.results().get(
        ("change", visit.choice, visit.text, visit.switches, visit.in_pass, visit.part),
        lambda: map_change(visit.rest, visit.after, part=visit.part, switches_after=visit.picture),
    )
    layers = visit.rest.layers_of(visit.part)
    if not np.isfinite(change).any():
        st.caption("No row of this text has a choice of tokens to look at, so no map can change.")
        return
    map_box, list_box = st.columns([2, 1])
    with map_box:
        _map(visit, change)
    with list_box:
        st.markdown("Changed most")
        for layer, head, moved in strongest(change, layers, 8):
            head_button("moved", layer, head, f": {moved:.2f}")


def _map(visit: Visit, change: NDArray[np.float64]) -> None:
    off, layers = sorted(visit.switches.ablate), visit.rest.layers_of(visit.part)
    figure = heads_changed(change, layers, switched=off, title="", theme=visit.theme)
    table = partial(heads_table, change, layers)
    draw(figure, "heads-changed", f"heads changed {visit.info.name}", table, about=of_view(visit))
    st.caption(
        "How much of a head's weight went to other keys, in the mean over its rows: 0 nothing moved, 1 all of it."
    )


def describe(visit: Visit) -> str:
    """Return what is switched in one sentence."""
    switches, parts = visit.switches, []
    if switches.causal is not None:
        parts.append("causal mask on" if switches.causal else "no causal mask (a window's past side stays)")
    if not switches.scaled:
        parts.append("no factor 1/√d")
    if switches.temperature != 1:
        parts.append(f"temperature {switches.temperature:g}")
    if switches.ablate:
        parts.append("off: " + ", ".join(f"L{layer} H{head}" for layer, head in sorted(switches.ablate)))
    if switches.forbid:
        parts.append(f"{len(switches.forbid)} forbidden look{'s' * (len(switches.forbid) > 1)}")
    if switches.causal is True and visit.info.causal is False:
        parts.append("which is not how this model was trained")
    return "Switched: " + ", ".join(parts) + "."
