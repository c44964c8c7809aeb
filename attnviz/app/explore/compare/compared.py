"""Two texts, models, heads or settings of the switches, side by side."""

import streamlit as st

from attnviz.app.explore.compare.difference import Compared, draw_difference, say_difference, subtract
from attnviz.app.explore.compare.other_sides import (
    another_head,
    another_model,
    another_text,
    forget_head,
    other_switches,
)
from attnviz.app.explore.compare.sides import Side, Tile, tiles
from attnviz.app.explore.compare.text_pairs import pair_buttons, pair_of
from attnviz.app.explore.compare.two_maps import causal_rows, maps, next_tokens, rows, strongest
from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose

VERSUS = {"head": "another head", "text": "another text", "model": "another model", "switches": "the switches"}
SIDES = {"head": another_head, "text": another_text, "model": another_model, "switches": other_switches}


def compare(visit: Visit) -> None:
    """Draw A, what is on the page, beside B, which differs from it in one thing, and the difference below them."""
    st.markdown("#### Side by side")
    versus = choose("A is the head on this page. Compare it with", "versus", VERSUS, on_change=forget_head)
    if versus == "text":
        pair_buttons()
    try:
        sides = SIDES[versus](visit)
        if sides is not None:
            _draw(visit, *sides)
    except ValueError as error:
        st.error(as_sentence(str(error)))


def _draw(visit: Visit, a: Side, b: Side) -> None:
    choice = map_choice(visit)
    tile_a, tile_b = tiles(a, b, choice.part.start)
    pair = pair_of(a.trace.text, b.trace.text)
    looking = rows(visit, choice.query, (tile_a, tile_b), pair)
    for note in b.notes:
        st.caption(plain(note))
    if pair is not None:
        st.markdown(pair.says(a, b))
    maps((tile_a, tile_b), looking, choice.scale, visit.theme)
    difference_box, words_box = st.columns(2, gap="medium")
    with difference_box:
        compared = _difference(visit, tile_a, tile_b)
    with words_box:
        if compared is not None:
            say_difference(compared)
        strongest(tile_a, tile_b, looking)
        next_tokens(a, b)
        causal_rows(tile_a, tile_b)


def _difference(visit: Visit, a: Tile, b: Tile) -> Compared | None:
    """Draw B minus A and return it; None, with the reason on the page, if nothing can be subtracted."""
    try:
        compared = subtract(a, b)
    except ValueError as error:
        reason = str(error)
        st.info(as_sentence(reason[:1].upper() + reason[1:]))
        return None
    draw_difference(visit, compared, a.side, b.side)
    return compared
