"""One cell of the large map under the glass: its numbers, the heads that look most there, and forbidding it."""

from collections.abc import Sequence

import streamlit as st

from attnviz.app.shell import address as state
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, ask_whole_page
from attnviz.app.show.heads_map import head_button
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.pronouns.one_sentence import all_heads_looks
from attnviz.core.trace.records import Token

N_HEADS = 8  # that look most at a cell


def pick_cell(query: int, key: int) -> None:
    """Choose a cell, by the tokens that it is about."""
    st.session_state.query, st.session_state.key = query, key


def cell_glass(visit: Visit) -> None:
    """Show boxes for one query and one key, the numbers of their cell, and what forbids that look."""
    queries, keys = visit.after.tokens_of(visit.part)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _token_box("From (query)", "query", queries)
        _token_box("to (key)", "key", keys)
        cell = st.session_state.query, st.session_state.key
        if None in cell:
            st.caption("Click a cell, or choose a query and a key, to see its numbers and to forbid that look.")
            return
        _forbid_buttons(visit, cell)
    st.caption(plain(_numbers(visit, cell, queries, keys)))
    _heads_that_look(visit, cell)


def _token_box(label: str, name: str, tokens: Sequence[Token]) -> None:
    """Show a box that chooses a token; one that isn't in this text is forgotten."""
    if (st.session_state[name] or 0) >= len(tokens):
        st.session_state[name] = None
    st.selectbox(
        label,
        range(len(tokens)),
        index=None,
        key=name,
        persist_state="session",
        format_func=lambda index: f"{tokens[index].label} ({index})",
        width=170,
    )


def _forbid_buttons(visit: Visit, cell: tuple[int, int]) -> None:
    reason = visit.info.cannot.get("forbid")
    for title, place in (("in this head", "head"), ("in this layer", "layer"), ("everywhere", "all")):
        st.button(
            f"Forbid {title}",
            key=f"forbid-{place}",
            on_click=_forbid,
            args=(visit.layer, visit.head, place, cell),
            disabled=bool(reason),
            help=reason or "That query may not see that key; the rest of its row shares the weight.",
        )


def _heads_that_look(visit: Visit, cell: tuple[int, int]) -> None:
    """Rank all heads by the weight of the chosen cell; a click shows the head."""
    key = ("cell", visit.choice, visit.text, visit.after.switches, visit.part, visit.picture, cell)
    looks = cache.results().get(
        key,
        lambda: all_heads_looks(visit.after, cell[0], [[cell[1]]], part=visit.part, switches=visit.picture)[..., 0],
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="heads-that-look"):
        st.markdown("All heads by this weight:", width="content")
        for layer, head, weight in strongest(looks, visit.after.layers_of(visit.part), N_HEADS):
            head_button("looks", layer, head, f" {weight:.2f}", type="tertiary")


def _numbers(visit: Visit, cell: tuple[int, int], queries: Sequence[Token], keys: Sequence[Token]) -> str:
    row, column = slice(cell[0], cell[0] + 1), slice(cell[1], cell[1] + 1)
    head = visit.head_after.tile(row, column)
    names = f"{queries[cell[0]].label} ({cell[0]}) → {keys[cell[1]].label} ({cell[1]}) in {visit.name}"
    if not head.allowed[0, 0]:
        return f"{names}: masked, this query may not see that key."
    text = f"{names}: weight {head.weights[0, 0]:.4f}"
    if not visit.info.cannot.get("scores"):
        text += f", score {head.scores[0, 0]:.2f} before the softmax"
    if visit.switched:
        text += f"; without the switches {visit.head_before.cell(*cell):.4f}"
    return text + "."


def _forbid(layer: int, head: int, place: str, cell: tuple[int, int]) -> None:
    look = (None if place == "all" else layer, head if place == "head" else None, *cell)
    if look in st.session_state.forbid:
        state.note("That look is forbidden already.")
    else:
        st.session_state.forbid = [*st.session_state.forbid, look]
    ask_whole_page()
