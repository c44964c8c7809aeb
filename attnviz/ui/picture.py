"""The selected head as a heatmap, and one cell of it under the glass."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.core.one_sentence import all_heads_looks, clearest
from attnviz.core.pooling import pool_largest
from attnviz.core.trace import Token
from attnviz.figures import first_column_share, head_map
from attnviz.ui import cache, state
from attnviz.ui.charts import draw, map_table
from attnviz.ui.components.cell_picker import cell_picker
from attnviz.ui.controls import plain
from attnviz.ui.examples import example_of
from attnviz.ui.visit import Visit, ask_whole_page, choose_head

MOST_CELLS = 160  # tokens a side that are drawn one by one; longer texts are pooled, or shown in part
N_HEADS = 8  # that look most at a cell
PART = 96  # tokens a side of a part
COLOURS = {"linear": "linear", "sqrt": "square root", "without_first": "without token 0"}
VIEWS = {"after": "with the switches", "before": "without", "difference": "difference"}


def picture(visit: Visit) -> None:
    """Draw the selected head's map with what changes its look above it and the chosen cell below."""
    queries, keys = visit.after.tokens_of(visit.part)
    with st.container(horizontal=True, vertical_alignment="center", key="title-row"):
        st.subheader(f"{visit.name}: who looks at whom", anchor=False, width="stretch")
        st.segmented_control(
            "Colours",
            list(COLOURS),
            key="colours",
            persist_state="session",
            required=True,
            format_func=COLOURS.get,
            label_visibility="collapsed",
        )
        if visit.switched:
            st.segmented_control(
                "Show",
                list(VIEWS),
                key="view",
                persist_state="session",
                required=True,
                format_func=VIEWS.get,
                label_visibility="collapsed",
            )
        if max(len(queries), len(keys)) > MOST_CELLS:
            _part_box(max(len(queries), len(keys)))
    _example_caption(visit)
    if max(len(queries), len(keys)) > MOST_CELLS and st.session_state.zoom == state.ALL:
        _whole(visit)
    else:
        _tile(visit)


def window(visit: Visit) -> slice:
    """Return the tokens that are drawn one by one."""
    n = max(len(side) for side in visit.after.tokens_of(visit.part))
    if n <= MOST_CELLS:
        return slice(0, n)
    start = min(max(st.session_state.zoom, 0), max(0, n - PART))
    return slice(start, min(start + PART, n))


def head_weights(visit: Visit, view: str, part: slice | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return (queries, keys) weights of the selected head and where they are allowed, as `view` says.

    The difference is with minus without; there a cell counts as allowed if either map allows it.
    """
    maps = []
    for trace, switches in ((visit.rest, None), (visit.after, visit.picture)):
        arguments = {"part": visit.part, "queries": part, "keys": part, "switches": switches}
        maps.append(
            (
                trace.weights(visit.layer, visit.head, **arguments),
                trace.allowed(visit.layer, visit.head, **arguments),
            )
        )
    (before, seen_before), (after, seen_after) = maps
    if view == "difference":
        return after - before, seen_before | seen_after
    return (before, seen_before) if view == "before" else (after, seen_after)


def shown_view(visit: Visit) -> str:
    """Return which of the views is on the screen: "after" unless switches are on and another was chosen."""
    return st.session_state.view if visit.switched else "after"


def _tile(visit: Visit) -> None:
    part, view = window(visit), shown_view(visit)
    weights, allowed = head_weights(visit, view, part)
    queries, keys = (side[part] for side in visit.after.tokens_of(visit.part))
    looks = [(q, k) for q, k in visit.switches.forbidden(visit.layer, visit.head)]
    cell = chosen_cell(visit)
    figure = head_map(
        weights,
        [token.label for token in queries],
        [token.label for token in keys],
        allowed=allowed,
        kind="difference" if view == "difference" else "weights",
        scale="linear" if view == "difference" else st.session_state.colours,
        query_start=part.start,
        key_start=part.start,
        marked=[cell] if cell and _inside(cell, part) else (),
        forbidden=[look for look in looks if _inside(look, part)],
        theme=visit.theme,
        height=_height(len(queries)),
    )
    table = partial(map_table, weights, allowed, queries, keys)
    draw(figure, "head-map", f"{visit.name} {visit.info.name}", table)
    cell_picker("head-map", part.start, on_pick=_pick, key="pick-cell")
    _say(visit, weights, allowed, view)
    _cell(visit)


def _whole(visit: Visit) -> None:
    """Draw a long text's map pooled: each square the largest weight of a block of tokens."""
    view = shown_view(visit)
    weights, allowed = head_weights(visit, "after" if view == "difference" else view)
    pooled, seen, block = pool_largest(weights, allowed, MOST_CELLS)
    names = [f"{i * block}–{min((i + 1) * block, max(weights.shape)) - 1}" for i in range(max(pooled.shape))]
    figure = head_map(
        pooled,
        names[: pooled.shape[0]],
        names[: pooled.shape[1]],
        allowed=seen,
        scale="linear" if st.session_state.colours == "without_first" else st.session_state.colours,
        theme=visit.theme,
        bar_title="largest weight",
        height=_height(pooled.shape[0]),
    )
    rows = [Token(i, 0, name, "", 0, 0, False) for i, name in enumerate(names)]
    table = partial(map_table, pooled, seen, rows[: pooled.shape[0]], rows[: pooled.shape[1]])
    draw(figure, "head-map", f"{visit.name} {visit.info.name}", table)
    st.caption(f"Each square is the largest weight of {block} x {block} tokens. Show a part to see single tokens.")


def _example_caption(visit: Visit) -> None:
    """Show the example's caption, its number worked out from this very picture."""
    example = example_of(visit.text, visit.choice.name, visit.layer, visit.head)
    if example and not visit.switched:
        st.markdown(example.caption.format(weight=f"**{example.weight(visit.rest):.2f}**"))


def _part_box(n_tokens: int) -> None:
    starts = [state.ALL, *range(0, n_tokens - PART, PART // 2), n_tokens - PART]
    if st.session_state.zoom not in starts:
        st.session_state.zoom = state.ALL
    st.selectbox(
        "Tokens",
        starts,
        key="zoom",
        persist_state="session",
        format_func=lambda s: f"all {n_tokens:,}, pooled" if s == state.ALL else f"{s} to {s + PART - 1}",
        label_visibility="collapsed",
        width=180,
    )


def _say(visit: Visit, weights: np.ndarray, allowed: np.ndarray, view: str) -> None:
    sentences = []
    sums = weights.sum(axis=1)
    part = window(visit)
    _, keys = visit.after.tokens_of(visit.part)
    if view != "difference":
        outside = 1 - float(sums.mean())
        if part.stop - part.start < len(keys):
            sentences.append(f"{outside:.0%} of these rows' weight lies on tokens outside this part.")
        elif outside > 1e-3:
            sentences.append(
                f"Rows sum to less than 1: {outside:.0%} goes to this head's learned sink, which has no column."
            )
        share = first_column_share(weights, allowed)
        if st.session_state.colours != "without_first" and np.isfinite(share):
            sentences.append(f"The first token gets {share:.0%} of the weight on average, row 0 aside.")
    if view == "difference" and not np.abs(weights).max() > 0:
        sentences.append(_why_no_difference(visit))
    st.caption(plain(" ".join(sentences)))


def _why_no_difference(visit: Visit) -> str:
    if (visit.layer, visit.head) in visit.switches.ablate:
        return "A head that is off keeps its own map: only what it writes is gone. Look at later layers."
    return "Nothing changes in this head."


def chosen_cell(visit: Visit) -> tuple[int, int] | None:
    """Return the (query, key) that the visitor chose last, if it is in this text."""
    query, key = st.session_state.query, st.session_state.key
    queries, keys = visit.after.tokens_of(visit.part)
    if query is None or key is None or query >= len(queries) or key >= len(keys):
        return None
    return query, key


def _pick(cell: tuple[int, int]) -> None:
    st.session_state.query, st.session_state.key = cell


def _cell(visit: Visit) -> None:
    """Show boxes for one query and one key, the numbers of their cell, and what forbids that look."""
    queries, keys = visit.after.tokens_of(visit.part)
    for name, tokens in (("query", queries), ("key", keys)):
        value = st.session_state[name]
        if value is not None and value >= len(tokens):
            st.session_state[name] = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "From (query)",
            range(len(queries)),
            index=None,
            key="query",
            persist_state="session",
            format_func=_token_name(queries),
            width=170,
        )
        st.selectbox(
            "to (key)",
            range(len(keys)),
            index=None,
            key="key",
            persist_state="session",
            format_func=_token_name(keys),
            width=170,
        )
        cell = chosen_cell(visit)
        reason = visit.info.cannot.get("forbid")
        if cell is None:
            st.caption("Click a cell, or choose a query and a key, to see its numbers and to forbid that look.")
            return
        for title, place in (("in this head", "head"), ("in this layer", "layer"), ("everywhere", "all")):
            st.button(
                f"Forbid {title}",
                key=f"forbid-{place}",
                on_click=_forbid,
                args=(visit.layer, visit.head, place, cell),
                disabled=bool(reason),
                help=reason or "That query may not see that key; the rest of its row shares the weight.",
            )
    st.caption(plain(_numbers(visit, cell, queries, keys)))
    _heads_that_look(visit, cell)


def _heads_that_look(visit: Visit, cell: tuple[int, int]) -> None:
    """Rank all heads by the weight of the chosen cell; a click shows the head."""
    key = ("cell", visit.choice, visit.text, visit.after.switches, visit.part, visit.picture, cell)
    looks = cache.results().get(
        key,
        lambda: all_heads_looks(visit.after, cell[0], [[cell[1]]], part=visit.part, switches=visit.picture)[..., 0],
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="heads-that-look"):
        st.markdown("All heads by this weight:", width="content")
        for layer, head, weight in clearest(looks, visit.after.layers_of(visit.part), N_HEADS):
            st.button(
                f"L{layer} H{head} {weight:.2f}",
                key=f"looks {layer} {head}",
                type="tertiary",
                on_click=choose_head,
                args=(layer, head),
            )


def _numbers(visit: Visit, cell: tuple[int, int], queries, keys) -> str:
    row, column = slice(cell[0], cell[0] + 1), slice(cell[1], cell[1] + 1)
    where = {"part": visit.part, "queries": row, "keys": column}
    names = f"{queries[cell[0]].label} ({cell[0]}) → {keys[cell[1]].label} ({cell[1]}) in {visit.name}"
    weight = float(visit.after.weights(visit.layer, visit.head, switches=visit.picture, **where)[0, 0])
    if not visit.after.allowed(visit.layer, visit.head, switches=visit.picture, **where)[0, 0]:
        return f"{names}: masked, this query may not see that key."
    text = f"{names}: weight {weight:.4f}"
    if not visit.info.cannot.get("scores"):
        score = float(visit.after.scores(visit.layer, visit.head, switches=visit.picture, **where)[0, 0])
        text += f", score {score:.2f} before the softmax"
    if visit.switched:
        before = float(visit.rest.weights(visit.layer, visit.head, **where)[0, 0])
        text += f"; without the switches {before:.4f}"
    return text + "."


def _forbid(layer: int, head: int, place: str, cell: tuple[int, int]) -> None:
    look = (None if place == "all" else layer, head if place == "head" else None, *cell)
    if look in st.session_state.forbid:
        state.note("That look is forbidden already.")
    else:
        st.session_state.forbid = [*st.session_state.forbid, look]
    ask_whole_page()


def _token_name(tokens):
    return lambda index: f"{tokens[index].label} ({index})"


def _inside(cell: tuple[int, int], part: slice) -> bool:
    return all(part.start <= index < part.stop for index in cell)


def _height(n_queries: int) -> int:
    return 620 if n_queries <= 24 else 720
