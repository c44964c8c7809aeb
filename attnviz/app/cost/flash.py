"""Part 3, FlashAttention step by step, on q, k and v of the visitor's own head and text."""

from collections.abc import Hashable

import numpy as np
import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.controls import head
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.facts import at_rest
from attnviz.app.show.lesson import Step, guess, minus, right_aligned
from attnviz.core.blockwise.fast_memory import FlashStep, fast_memory
from attnviz.core.blockwise.grid import Film, block_names, block_row, film_of, largest_difference, skipped_blocks
from attnviz.core.cost.formulas import score_bytes
from attnviz.figures import component_map, flash_grid, quantity
from attnviz.figures.look import LookOptions
from attnviz.figures.theme import number

MOST_BLOCKS = 32  # a side
FEW_BLOCKS = 6  # a side, at first
LARGEST_BLOCK = 128  # at first
MOST_COMPONENTS = 64  # columns of the output that are drawn
BYTES = 4  # float32
FAR = 8192  # tokens to compare with


def draw(visit: Visit | None, part: Step) -> None:
    """Draw the controls, the grid with the block in work, a query's running numbers, and the memory that it takes."""
    if visit is None:
        st.info("This part needs a text and a model that can be loaded.")
        return
    reason = visit.info.cannot.get("scores")
    if reason:
        st.info(plain(reason))
        return
    with st.container(horizontal=True, vertical_alignment="top", key="flash-row"):
        with st.container(width=260):
            head(visit.info)
        block = _block_box(visit)
        box = st.empty()
    try:
        film = film_of(visit.head_before, block=block)
        i, j, steps = _place(visit, film)
    except ValueError as error:
        st.info(as_sentence(str(error)))
        return
    with box:
        query = _query_box(visit, film, i)
    guess(part)
    _buttons(film)
    _say(visit, part, film, steps, j, query)
    left, right = st.columns(2, gap="large")
    with left:
        _grid(visit, part, film, (i, j))
    with right:
        _scores(visit, steps[j], query)
    _running(visit, film, steps, j, query)
    _output(visit, part, film, steps, j, query)
    _memory(part, film)
    _end(visit, part, film)


def _key(visit: Visit, name: str, film: Film) -> tuple[Hashable, ...]:
    return ("flash", name, visit.choice, visit.text, visit.part, visit.layer, visit.head, film.block)


def _place(visit: Visit, film: Film) -> tuple[int, int, list[FlashStep]]:
    """Return row and column of the block in work, at first the last row's first block, and the steps of its row."""
    chosen, (rows, columns) = st.session_state, film.shape
    start = (rows - 1) * columns  # the last token sees all others, so none of its blocks is left out
    chosen.cost_at = min(start if chosen.cost_at is None else chosen.cost_at, rows * columns - 1)
    i, j = divmod(chosen.cost_at, columns)
    return i, j, cache.results().get((*_key(visit, "row", film), i), lambda: block_row(film, i))


def block_sizes(n_queries: int, n_keys: int) -> list[int]:
    """Return the sizes of blocks to choose from: powers of two with 1 to 32 blocks a side.

    >>> block_sizes(12, 12), block_sizes(4096, 4096)[0]
    ([1, 2, 4, 8, 16], 128)
    """
    most = max(n_queries, n_keys)
    powers = [2**power for power in range(most.bit_length() + 1)]
    shown = [size for size in powers if -(-most // size) <= MOST_BLOCKS and size <= 256 and size < 2 * most]
    return shown or [next(size for size in powers if -(-most // size) <= MOST_BLOCKS)]


def _block_box(visit: Visit) -> int:
    queries, keys = visit.head_before.tokens
    sizes, chosen = block_sizes(len(queries), len(keys)), st.session_state
    if chosen.cost_block not in sizes:
        most = max(len(queries), len(keys))
        few = [size for size in sizes if -(-most // size) <= FEW_BLOCKS and size <= LARGEST_BLOCK]
        chosen.cost_block = few[0] if few else sizes[0]
    st.selectbox(
        "Tokens a block",
        sizes,
        key="cost_block",
        persist_state="session",
        width=150,
        on_change=_go,
        args=(None,),
        help="Queries, and keys, in a block. On a graphics card it is what fits the fast memory, often 64 or 128.",
    )
    return chosen.cost_block


def _query_box(visit: Visit, film: Film, i: int) -> int:
    """Return the query whose numbers are shown: the chosen one if its block is in work, else the last of that block."""
    chosen, rows = st.session_state, film.queries(i)
    asked = chosen.query
    query = asked if asked is not None and rows.start <= asked < rows.stop else rows.stop - 1
    names = [f"{token.label} ({token.index})" for token in visit.head_before.tokens[0]]
    chosen["flash-query"] = query
    st.selectbox(
        "Follow the query",
        range(len(names)),
        key="flash-query",
        format_func=names.__getitem__,
        on_change=_follow,
        args=(film.block, film.shape[1]),
        width=200,
        help="Another query takes the film to the first block of its row.",
    )
    return query


def _follow(block: int, columns: int) -> None:
    chosen = st.session_state
    chosen.query = chosen["flash-query"]
    chosen.cost_at = chosen.query // block * columns


def _go(step: int | None) -> None:
    st.session_state.cost_at = step


def _buttons(film: Film) -> None:
    last, at = film.shape[0] * film.shape[1] - 1, st.session_state.cost_at
    with st.container(horizontal=True, vertical_alignment="center", key="flash-buttons"):
        st.button("To the start", key="flash-first", disabled=at == 0, on_click=_go, args=(0,))
        st.button("Back", key="flash-back", disabled=at == 0, on_click=_go, args=(at - 1,))
        forward = {"on_click": _go, "type": "primary", "disabled": at == last}
        st.button("Next block", key="flash-next", args=(at + 1,), **forward)
        st.button("To the end", key="flash-last", disabled=at == last, on_click=_go, args=(last,))
        st.markdown(f"Block {at + 1} of {last + 1}", width="content")
    if last > 0:
        st.slider("Block", 0, last, key="cost_at", persist_state="session", label_visibility="collapsed", format=" ")


def _say(visit: Visit, part: Step, film: Film, steps: list[FlashStep], j: int, query: int) -> None:
    """Say what this block did to the followed query."""
    step, r = steps[j], query - steps[j].queries.start
    keys = block_names(len(film.k), film.block)[j]
    values = {
        "query": visit.head_before.tokens[0][query].label,
        "index": query,
        "keys": keys,
        "maximum": number(step.maximum[r]),
        "total": number(step.total[r]),
        "rescale": number(step.rescale[r]),
        "before": number(steps[j - 1].maximum[r]) if j else "",
        "queries": block_names(len(film.q), film.block)[step.i],
    }
    st.markdown(part.say(_event(steps, j, r), **values))
    if step.finished:
        expected = film.weights(step.queries) @ film.v
        st.markdown(part.say("finished", difference=minus(f"{np.abs(step.output - expected).max():.1e}")))


def _event(steps: list[FlashStep], j: int, r: int) -> str:
    """Return what happened to a query of the block: the name of a sentence."""
    step = steps[j]
    if step.scores is None:
        return "skipped"
    if np.isneginf(step.scores[r]).all():
        return "nothing"
    if j == 0 or np.isneginf(steps[j - 1].maximum[r]):
        return "first"
    return "grew" if step.maximum[r] > steps[j - 1].maximum[r] else "stayed"


def _grid(visit: Visit, part: Step, film: Film, now: tuple[int, int]) -> None:
    skipped = cache.results().get(_key(visit, "skipped", film), lambda: skipped_blocks(film))
    rows, columns = (block_names(len(side), film.block) for side in (film.q, film.k))
    look: LookOptions = {"title": "The blocks of this head", "theme": visit.theme, "height": 440}
    figure = flash_grid(skipped, now, query_names=rows, key_names=columns, **look)
    table = {"queries": rows, "left out blocks": skipped.sum(axis=1)}
    charts.draw(figure, "flash-grid", f"blocks {visit.name}", table, about=at_rest(visit))
    st.caption(part.say("legend"))


def _scores(visit: Visit, step: FlashStep, query: int) -> None:
    """Draw the scores of the block in work, all that is there of the matrix at this moment."""
    if step.scores is None or max(step.scores.shape) > 256:
        st.markdown("#### Scores of this block")
        st.info(
            "This block is left out: no score is worked out." if step.skipped else "This block is too large to draw."
        )
        return
    queries, keys = visit.head_before.tokens
    block = charts.TokenMap(step.scores, np.isfinite(step.scores), queries[step.queries], keys[step.keys])
    look = {"title": "Scores of this block: all that is held of the matrix", "theme": visit.theme, "height": 440}
    name, about = f"block scores {visit.name}", at_rest(visit)
    charts.draw_map(block, "flash-scores", name, about=about, kind="scores", highlight_query=query, **look)


def _running(visit: Visit, film: Film, steps: list[FlashStep], j: int, query: int) -> None:
    """Show the followed query's running numbers, a row for each block so far."""
    rows = []
    for step, name in zip(steps[: j + 1], block_names(len(film.k), film.block), strict=False):
        r = query - step.queries.start
        top = -np.inf if step.scores is None else step.scores[r].max()
        before = steps[step.j - 1].total[r] if step.j else 0.0
        rows.append(
            {
                "keys": name,
                "largest score here": number(top) if np.isfinite(top) else "left out" if step.skipped else "none",
                "running maximum": number(step.maximum[r]) if np.isfinite(step.maximum[r]) else "none yet",
                "old sums times": number(step.rescale[r]) if before > 0 else "nothing yet",
                "running sum": number(step.total[r]),
                "size of the output": number(np.linalg.norm(step.output[r])),
            }
        )
    label = visit.head_before.tokens[0][query].label
    st.markdown(f"#### What is kept for “{plain(label)}” ({query})")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    st.dataframe(columns, hide_index=True, column_config=right_aligned(list(columns)[1:]), key="flash-running")


def _output(visit: Visit, part: Step, film: Film, steps: list[FlashStep], j: int, query: int) -> None:
    """Draw the partial output after each block, those to come empty, and the trace's own output as the last row."""
    r = query - steps[0].queries.start
    expected = film.weights(slice(query, query + 1))[0] @ film.v  # (d_value,)
    rows = np.array([step.output[r] if step.j <= j else np.zeros_like(expected) for step in steps] + [expected])
    names = block_names(len(film.k), film.block)
    labels = [
        f"after keys {name}" if step.j <= j else f"{name}: to come" for step, name in zip(steps, names, strict=True)
    ]
    figure = component_map(
        rows[:, :MOST_COMPONENTS],
        [*labels, part.say("trace_row")],
        value_range=float(max(np.abs([step.output[r] for step in steps]).max(), np.abs(expected).max())) or None,
        bar_title=part.say("output_bar"),
        row_title="",
        marked=[j],
        title="The output so far, beside the trace's",
        theme=visit.theme,
        height=250 + 22 * len(rows),
    )
    table = {"row": [*labels, part.say("trace_row")], **{f"{c}": rows[:, c] for c in range(rows.shape[1])}}
    charts.draw(figure, "flash-output", f"output so far {visit.name}", table, about=at_rest(visit))


def _memory(part: Step, film: Film) -> None:
    d_head, d_value = film.q.shape[1], film.v.shape[1]
    needed = fast_memory(film.block, film.block, d_head, BYTES, d_value=d_value)
    sizes = {name: quantity(n_bytes, "bytes") for name, n_bytes in vars(needed).items()}
    matrix = quantity(len(film.q) * len(film.k) * BYTES, "bytes")
    far = quantity(score_bytes(FAR, 1, 1, BYTES), "bytes")
    total = quantity(needed.total, "bytes")
    st.markdown(part.say("memory", total=total, block=film.block, d_head=d_head, matrix=matrix, far=far, **sizes))


def _end(visit: Visit, part: Step, film: Film) -> None:
    """Say how far the output of all queries is from the trace's."""
    with st.spinner("Working out all blocks"):
        difference = cache.results().get(_key(visit, "difference", film), lambda: (largest_difference(film),))[0]
    skipped = cache.results().get(_key(visit, "skipped", film), lambda: skipped_blocks(film))
    counts = {"n": len(film.q), "n_skipped": int(skipped.sum()), "n_blocks": skipped.size}
    st.markdown(part.say("same", difference=minus(f"{difference:.1e}"), **counts))
