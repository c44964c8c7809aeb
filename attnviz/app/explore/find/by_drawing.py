"""Heads found by a drawing: cells clicked in a small map, and the heads that put their weight there."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from attnviz.app.components.cell_picker.cell_picker import cell_picker
from attnviz.app.explore.find.results import (
    N_LISTED,
    SIDES,
    head_list,
    one_bar_each,
    shown_facts,
    shown_key,
    shown_trace,
)
from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw_map, of_head
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.finder import Cell, drawn_scores, possible_cells, scored_cells
from attnviz.core.heads.patterns import pattern_targets
from attnviz.core.trace.records import Token
from attnviz.core.trace.trace import Trace

SIDE = 32  # tokens a side of the map to draw on
MOST_NAMED = 8  # drawn cells that are named in words
READY = {"own": "diagonal", "first": "first column", "previous": "token before", "same": "same token before"}


def by_drawing(visit: Visit) -> None:
    """Show a map to draw on, and list the heads that look at the drawn cells most."""
    trace = shown_trace(visit)
    st.caption(
        plain(
            f"Click cells of the map, or add them below. Shades are {visit.name}'s weights, frames your drawing. "
            "A head's score: the share of a row's weight on drawn cells, in the mean over rows with one that "
            "have two keys or more to choose from."
        )
    )
    picture, best = st.columns(SIDES, gap="medium")
    with picture:
        _map(visit, trace)
        _say_cut(visit)
        _add_boxes(visit)
        _ready_buttons(visit)
    with best:
        _found(visit, trace)


def _side(visit: Visit) -> slice:
    start = map_choice(visit).part.start
    return slice(start, start + SIDE)


def _drawn(visit: Visit) -> list[Cell]:
    """Return the drawn cells that are in this text."""
    n_queries, n_keys = (len(side) for side in visit.after.tokens_of(visit.part))
    return [(q, k) for q, k in st.session_state.drawn if q < n_queries and k < n_keys]


def _map(visit: Visit, trace: Trace) -> None:
    side = _side(visit)
    draw_map(
        of_head(visit.head_of(trace).tile(side, side)),
        "drawn-map",
        f"drawing {visit.info.name}",
        about=shown_facts(visit),
        scale=st.session_state.colours,
        marked=[cell for cell in _drawn(visit) if _on_map(side, cell)],
        theme=visit.theme,
        height=560,
    )
    cell_picker("drawn-map", side.start, on_pick=_toggle, key="draw-cell")


def _on_map(side: slice, cell: Cell) -> bool:
    return side.start <= min(cell) and max(cell) < side.stop


def _say_cut(visit: Visit) -> None:
    """Say which tokens the map shows, and which drawn cells aren't among them."""
    side, n_tokens = _side(visit), visit.n_tokens
    sentences = []
    if n_tokens > SIDE or side.start:
        last = min(side.stop, n_tokens) - 1
        sentences.append(f"Tokens {side.start} to {last} of {n_tokens:,} are drawn here; the boxes offer all of them.")
    elsewhere = sorted({cell for cell in _drawn(visit) if not _on_map(side, cell)})
    if elsewhere:
        sentences.append(f"Drawn but not on this map: {_named(visit, elsewhere)}.")
    n_outside = len({tuple(cell) for cell in st.session_state.drawn}) - len(set(_drawn(visit)))
    if n_outside:
        cells = "1 drawn cell lies" if n_outside == 1 else f"{n_outside} drawn cells lie"
        sentences.append(f"{cells} outside this text and {'doesn' if n_outside == 1 else 'don'}'t count.")
    if sentences:
        st.caption(plain(" ".join(sentences)))


def _named(visit: Visit, cells: Sequence[Cell]) -> str:
    """Return cells in words, "“it” (10) to “car” (3)", the first few of many."""
    queries, keys = visit.after.tokens_of(visit.part)
    names = [f"“{queries[q].label}” ({q}) to “{keys[k].label}” ({k})" for q, k in cells[:MOST_NAMED]]
    more = [f"{len(cells) - MOST_NAMED} more"] if len(cells) > MOST_NAMED else []
    return ", ".join(names + more)


def _add_boxes(visit: Visit) -> None:
    side = _side(visit)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, tokens in zip(("query", "key"), visit.after.tokens_of(visit.part), strict=True):
            places = range(len(tokens))
            if st.session_state.get(f"draw-{name}") not in places:
                st.session_state[f"draw-{name}"] = min(side.stop, len(tokens)) - 1
            st.selectbox(
                f"{name.capitalize()} to draw", places, key=f"draw-{name}", format_func=_token_name(tokens), width=160
            )
        cell = st.session_state["draw-query"], st.session_state["draw-key"]
        st.button("Take away" if cell in _drawn(visit) else "Add", key="draw-add", on_click=_toggle, args=(cell,))


def _ready_buttons(visit: Visit) -> None:
    with st.container(horizontal=True, gap="small"):
        for key, title in READY.items():
            cells = _ready(visit, key)
            st.button(
                title,
                key=f"draw {key}",
                on_click=_draw_all,
                args=(cells,),
                disabled=not cells,
                help=None if cells else "These tokens give no such cell.",
            )
        st.button("Clear", key="draw-clear", on_click=_draw_all, args=([],), disabled=not st.session_state.drawn)


def _ready(visit: Visit, key: str) -> list[Cell]:
    """Return the cells of a ready-made pattern inside the map; the first row has no choice and is left out."""
    side = _side(visit)
    queries, keys = (tokens[side] for tokens in visit.after.tokens_of(visit.part))
    if visit.part == "cross":
        return [(token.index, 0) for token in queries] if key == "first" and side.start == 0 else []
    table = pattern_targets(key, visit.after.tokens_of(visit.part)[1])[side, side]
    return [(side.start + int(q), side.start + int(k)) for q, k in np.argwhere(table) if side.start + q > 0]


def _found(visit: Visit, trace: Trace) -> None:
    cells = _drawn(visit)
    if not cells:
        st.caption("Nothing is drawn yet.")
        return
    n_possible, n_scored, scores = cache.results().get(
        ("drawn", *shown_key(visit), tuple(sorted(set(cells)))),
        lambda: (
            len(possible_cells(trace, cells, part=visit.part)),
            len(scored_cells(trace, cells, part=visit.part)),
            drawn_scores(trace, cells, part=visit.part),
        ),
    )
    _say_impossible(len(set(cells)) - n_possible)
    if n_possible and not n_scored:
        st.caption(
            "Only rows with a single key to look at are drawn. Every head puts all its weight there, so they "
            "don't count."
        )
    rows = strongest(scores, trace.layers_of(visit.part), N_LISTED)
    if rows:
        head_list(visit, ["on drawn cells"], one_bar_each(rows))


def _say_impossible(n: int) -> None:
    if n:
        cells = "1 drawn cell lies" if n == 1 else f"{n} drawn cells lie"
        st.caption(f"{cells} where the mask lets no head look, such as above the diagonal. Such cells don't count.")


def _toggle(cell: Cell) -> None:
    drawn = [tuple(known) for known in st.session_state.drawn]
    st.session_state.drawn = [known for known in drawn if known != cell] if cell in drawn else [*drawn, cell]


def _draw_all(cells: list[Cell]) -> None:
    st.session_state.drawn = cells


def _token_name(tokens: Sequence[Token]) -> Callable[[int], str]:
    return lambda index: f"{tokens[index].label} ({index})"
