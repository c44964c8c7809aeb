"""Which heads the selected one feeds: it is switched off, and the maps of later layers change."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.find.results import SIDES, head_list, one_bar_each, with_progress
from attnviz.app.shell import cache, controls
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, ask_whole_page, choose_head
from attnviz.app.show.charts import draw, heads_table
from attnviz.app.show.facts import of_text
from attnviz.core.compare.agreement import map_change
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.scored_text import score_pattern
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures import heads_changed

N_FED = 8
LEAST = 0.005  # a map that changes less than that hasn't changed
FALL = 0.1  # of an induction score, from which on it is worth a sentence
WORDS = "copper violin harbour mint ladder cloud spoon winter basket engine marble pencil"
LEADING = ("smollm2", (16, 0), (18, 6))  # model, the head that feeds, the head that is fed, on WORDS twice


def fed_by_this(visit: Visit) -> None:
    """Draw how the maps of all heads change when the selected one is off, and list those that change most."""
    reason = visit.info.cannot.get("ablate")
    if reason:
        st.caption(plain(reason))
        return
    off = _without(visit)
    change = cache.results().get(
        ("fed", visit.choice, visit.text, visit.part, visit.layer, visit.head),
        lambda: map_change(visit.rest, off, part=visit.part),
    )
    layers = visit.rest.layers_of(visit.part)
    fed = [entry for entry in strongest(change, layers, N_FED) if entry[2] >= LEAST]
    if not fed:
        st.caption(plain(_why_none(visit, change, layers)))
        return
    st.caption(plain(_reading(visit)))
    picture, best = st.columns(SIDES, gap="medium")
    with picture:
        _changes(visit, off, change)
    with best:
        head_list(visit, ["weight that moved"], one_bar_each(fed))
    _stripe(visit, off)


def _changes(visit: Visit, off: Trace, change: NDArray[np.float64]) -> None:
    layers, own = visit.rest.layers_of(visit.part), (visit.layer, visit.head)
    figure = heads_changed(change, layers, switched=[own], title="", theme=visit.theme)
    about = dict(of_text(visit, off)) | {"values": f"weight that went to other keys when {visit.name} was off"}
    draw(figure, "found-strip", f"heads fed {visit.info.name}", lambda: heads_table(change, layers), about=about)


def _without(visit: Visit) -> Trace:
    switches = Switches(ablate=frozenset({(visit.layer, visit.head)}))
    return with_progress(
        f"Reading the text without {visit.name}: layer",
        lambda show: cache.get_trace(visit.choice, visit.text, switches, on_layer=show),
    )


def _reading(visit: Visit) -> str:
    sentence = (
        f"{visit.name} is off in the whole pass: how much of each head's weight went to other keys. A changed map "
        "isn't proof of a direct feed, since the change may come through heads and MLPs in between."
    )
    return f"{sentence} The switches at the side are at rest here." if visit.switched else sentence


def _why_none(visit: Visit, change: NDArray[np.float64], layers: Sequence[int]) -> str:
    if visit.layer == layers[-1]:
        return f"{visit.name} is in the last layer with attention: no map comes after it."
    if not np.isfinite(change).any():
        return "No row of this text has a choice of tokens to look at, so no map can change."
    return f"With {visit.name} off no map changes by {LEAST} or more on this text."


def _stripe(visit: Visit, off: Trace) -> None:
    """Say which head's induction stripe falls most; where a text has none, offer the leading example."""
    before, after = (
        cache.results().get(
            ("stripe", visit.choice, trace.text, trace.switches),
            lambda trace=trace: score_pattern(trace, "induction", part=visit.part).scores,
        )
        for trace in (visit.rest, off)
    )
    layers = visit.rest.layers_of(visit.part)
    fallen = strongest(before - after, layers, 1)
    if fallen and fallen[0][2] >= FALL:
        st.markdown(plain(_fall(visit, before, after, layers)))
    elif visit.choice.name == LEADING[0]:
        _, feeds, fed = LEADING
        st.button(
            f"Try words that come twice: L{feeds[0]} H{feeds[1]} off, and the stripe of L{fed[0]} H{fed[1]} falls",
            key="feeds-example",
            type="tertiary",
            on_click=_show_example,
        )


def _fall(visit: Visit, before: NDArray[np.float64], after: NDArray[np.float64], layers: Sequence[int]) -> str:
    model, feeds, fed = LEADING
    layer, head, fall = strongest(before - after, layers, 1)[0]
    if (visit.choice.name, (visit.layer, visit.head)) == (model, feeds):
        place = layers.index(fed[0]), fed[1]
        if before[place] - after[place] >= FALL:
            layer, head = fed
    i = layers.index(layer)
    return (
        f"With {visit.name} off, the weight of L{layer} H{head} on what came next last time falls from "
        f"{before[i, head]:.2f} to {after[i, head]:.2f}."
    )


def _show_example() -> None:
    controls.new_text(f"{WORDS} {WORDS}")
    choose_head(*LEADING[1])
    ask_whole_page()
