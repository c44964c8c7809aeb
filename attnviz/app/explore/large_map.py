"""The large map with what changes its look above it, and one cell of it under the glass."""

from functools import partial
from typing import Any

import streamlit as st

from attnviz.app.components.cell_picker.cell_picker import cell_picker
from attnviz.app.explore.cell_glass import cell_glass, pick_cell
from attnviz.app.explore.fields import ALL
from attnviz.app.explore.map_choice import FOR_ENCODERS, SHOWS, map_choice, offered_views, possible, rolled, written
from attnviz.app.shell.examples import example_of
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw, shown_table
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_view
from attnviz.app.show.files import head_of
from attnviz.core.maps.choice import MOST_CELLS, PART, MapChoice
from attnviz.core.maps.shown import ShownMap, shown_map
from attnviz.figures.shown_map import shown_figure

COLOURS = {"linear": "linear", "sqrt": "square root", "without_first": "without token 0"}
GONE = "rollout gone"  # in the session: the model and part in which a chosen rollout couldn't be shown
VIEWS = {"after": "with the switches", "before": "without", "difference": "difference"}


def picture(visit: Visit) -> None:
    """Draw the large map, what changes its look above it, and the chosen cell below."""
    title = st.empty()
    _choices(visit)
    choice, model = possible(visit, map_choice(visit))
    write, roll = partial(written, model), partial(rolled, visit.choice)
    shown = shown_map(visit.head_before, visit.head_after, choice, write=write, roll=roll)
    title.subheader(plain(shown.heading), anchor=False)
    of_a_head = shown.shows != "rollout"
    if of_a_head:
        _example_caption(visit)
    figure = shown_figure(shown, theme=visit.theme, height=620 if len(shown.rows.labels) <= 24 else 720)
    name = f"{shown.name} {visit.info.name}"
    draw(figure, "head-map", name, partial(shown_table, shown), **_files(visit, choice, shown))
    has_cells = of_a_head and not shown.pooled
    if has_cells:
        cell_picker("head-map", 0, on_pick=partial(_pick, shown), key="pick-cell")
    st.caption(plain(shown.caption))
    if has_cells:
        cell_glass(visit)


def _choices(visit: Visit) -> None:
    """Show what changes the look of the map."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="title-row"):
        _cells_show(visit)
        choose("Colours", "colours", COLOURS, hide_label=True)
        if visit.switched:
            choose("Show", "view", VIEWS, hide_label=True)
        if visit.n_tokens > MOST_CELLS:
            _part_box(visit.n_tokens)
    _say_gone(visit)


def _files(visit: Visit, choice: MapChoice, shown: ShownMap) -> dict[str, Any]:
    """Return what the map's files hold: all of the head's numbers where nothing else is drawn, else the table's."""
    head = None
    if shown.shows == "tokens" and not shown.pooled and not shown.hidden:
        head = head_of(visit, choice.view, choice.tokens)
    facts = dict(of_view(visit, choice.view))
    if shown.kind == "difference":
        facts["values"] = "weights with the switches minus weights without"
    return {"head": head, "about": facts | {"cells_show": SHOWS[shown.shows], "caption": shown.caption}}


def _pick(shown: ShownMap, cell: tuple[int, int]) -> None:
    pick_cell(*shown.tokens(*cell))


def _cells_show(visit: Visit) -> None:
    """Offer what the cells can show, and special tokens on or off where there are some."""
    offered = offered_views(visit)
    if st.session_state.shows not in offered:
        st.session_state.shows = "tokens"
        st.session_state[GONE] = (visit.choice, visit.part)
    st.selectbox(
        "Cells show",
        list(offered),
        key="shows",
        persist_state="session",
        format_func=offered.get,
        help="Weights of tokens, or of words made of them; or how much is written: the weight times the length of the "
        "value that the head writes. "
        + ("Rollout multiplies the maps of all layers." if "rollout" in offered else FOR_ENCODERS),
        width=230,
    )
    if any(token.special for side in visit.after.tokens_of(visit.part) for token in side):
        st.toggle("special tokens", key="special", persist_state="session")


def _say_gone(visit: Visit) -> None:
    """Say why a rollout that was chosen isn't shown, until something else is chosen."""
    if st.session_state.get(GONE) != (visit.choice, visit.part) or st.session_state.shows != "tokens":
        st.session_state.pop(GONE, None)
        return
    st.caption(FOR_ENCODERS)


def _example_caption(visit: Visit) -> None:
    """Show the example's caption, its number worked out from this very picture."""
    example = example_of(visit.text, visit.choice.name, visit.layer, visit.head)
    if example and not visit.switched:
        st.markdown(example.caption.format(weight=f"**{example.weight(visit.rest):.2f}**"))


def _part_box(n_tokens: int) -> None:
    starts = [ALL, *range(0, n_tokens - PART, PART // 2), n_tokens - PART]
    if st.session_state.zoom not in starts:
        st.session_state.zoom = ALL
    st.selectbox(
        "Tokens",
        starts,
        key="zoom",
        persist_state="session",
        format_func=lambda s: f"all {n_tokens:,}, pooled" if s == ALL else f"{s} to {s + PART - 1}",
        label_visibility="collapsed",
        width=180,
    )
