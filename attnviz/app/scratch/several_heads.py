"""Step 8, several heads: random ones split, attend, concatenate, project; or two heads of the model side by side."""

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import Numbers, numbers_row
from attnviz.app.scratch.stream import stream
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import table
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.facts import OF_NOTHING
from attnviz.app.show.lesson import Step, folded, guess
from attnviz.core.attention.split_heads import Cost, attention_cost, divisors, random_heads
from attnviz.core.values.contributions import looks_elsewhere
from attnviz.figures import component_bars, layer_overview
from attnviz.figures.theme import number

BIG = (4096, 32)  # width and heads of a layer in models of 7 billion weights


def draw(visit: Visit, step: Step) -> None:
    """Draw random heads beside each other with what they cost, or two heads of the model's layer."""
    real = st.session_state.source == "real"
    numbers = numbers_row(visit, follow=("query",) if real else (), width="d_model")
    heads_box = None if real else _heads_box()
    n = len(numbers.q) if numbers else st.session_state.rows
    costs = [attention_cost(n, *shape) for shape in ((BIG[0], 1), BIG)]
    guess(step, n=n, one=_mega(costs[0]), many=_mega(costs[1]), matrices=costs[1].score_matrices)
    if heads_box is not None:
        _random(visit, step, heads_box)
    elif numbers is not None:
        _real(visit, step, numbers)


def _heads_box() -> int:
    """Show the slider for the number of heads, of those that divide the width, and return it."""
    chosen = st.session_state
    possible = divisors(chosen.width)
    if chosen.heads not in possible:
        chosen.heads = max(n for n in possible if n <= chosen.heads)
    if len(possible) == 1:
        return 1
    return st.select_slider(
        "Heads h, each with d = d_model / h components", possible, key="heads", persist_state="session"
    )


def _random(visit: Visit, step: Step, n_heads: int) -> None:
    n_tokens, width, seed = (st.session_state[name] for name in ("rows", "width", "seed"))
    key = ("random heads", n_tokens, width, n_heads, seed)
    output, weights = cache.results().get(key, lambda: random_heads(n_tokens, width, n_heads, seed))
    st.markdown(step.say("shapes", n_tokens=n_tokens, width=width, n_heads=n_heads, part=width // n_heads))
    thumbnails = np.where(np.tri(n_tokens, dtype=bool), weights, np.nan)  # (heads, queries, keys)
    title = f"Weights of {n_heads} heads" if n_heads > 1 else "Weights of one head"
    figure = layer_overview(thumbnails, title=title, theme=visit.theme)
    labels = [f"token {index}" for index in range(n_tokens)]
    keys = {label: weights[..., index].ravel().round(4) for index, label in enumerate(labels)}
    columns = {"head": np.repeat(np.arange(n_heads), n_tokens), "query": labels * n_heads, **keys}
    charts.draw(figure, "lesson-heads", "random heads", columns, about=OF_NOTHING)
    st.markdown(_cost_table(step, n_tokens, width, n_heads))
    st.caption(step.say("cost"))


def _cost_table(step: Step, n_tokens: int, width: int, n_heads: int) -> str:
    rows = []
    for d, h in dict.fromkeys([(width, 1), (width, n_heads), (BIG[0], 1), BIG]):
        cost = attention_cost(n_tokens, d, h)
        counts = f"{cost.projections:,}", f"{cost.attention:,}", f"{cost.score_matrices}", f"{cost.scores:,}"
        rows.append((f"{d:,} = {h} × {d // h:,}", *counts))
    return table(step.says["cost_header"], rows)


def _mega(cost: Cost) -> str:
    return f"{(cost.projections + cost.attention) / 1e6:,.0f} million"


def _real(visit: Visit, step: Step, numbers: Numbers) -> None:
    """Draw the chosen head and another one of its layer, and what each head of the layer writes."""
    weights = visit.rest.layer_weights(visit.layer, part=visit.part)  # (heads, queries, keys)
    if len(weights) < 2:
        st.info(step.say("one_head"))
        return
    other = _other_box(visit, numbers, weights)
    if numbers.allowed[numbers.row].sum() > 1:  # else neither head has a choice
        names = {"name": numbers.name, "other": f"L{visit.layer} H{other}", "query": numbers.pair["query"]}
        keys = {"one_key": _top_key(numbers, weights[visit.head]), "other_key": _top_key(numbers, weights[other])}
        n_matrices = len(visit.rest.layers_of(visit.part)) * len(weights)
        st.markdown(step.say("two_heads", n_matrices=n_matrices, **names, **keys))
    for column, head in zip(st.columns(2, gap="medium"), (visit.head, other), strict=True):
        with column:
            _map(visit, numbers, weights[head], head)
    folded(step.say("write_title"), "several-heads-writes", partial(_writes, visit, step, numbers, weights))


def _other_box(visit: Visit, numbers: Numbers, weights: NDArray[np.float32]) -> int:
    """Show the box for the other head, and return it: unless chosen, one that looks elsewhere from the same query."""
    chosen = st.session_state
    fits = chosen.other is not None and chosen.other < len(weights) and chosen.other != visit.head
    other = chosen.other if fits else looks_elsewhere(weights[:, numbers.cell[0]], visit.head)[0]
    chosen["other-box"] = other
    st.selectbox(
        "Beside it, head",
        [head for head in range(len(weights)) if head != visit.head],
        key="other-box",
        format_func=lambda head: f"L{visit.layer} H{head}: “{_top_key(numbers, weights[head])}”",
        on_change=_choose_other,
        width=320,
    )
    return other


def _choose_other() -> None:
    st.session_state.other = st.session_state["other-box"]


def _top_key(numbers: Numbers, weights: NDArray[np.float32]) -> str:
    """Return the label of the key that the followed query looks at most in a head, the first one aside."""
    row = weights[numbers.cell[0]]
    first = 1 if len(row) > 1 and row[1:].any() else 0
    return numbers.key_labels[first + int(row[first:].argmax())]


def _map(visit: Visit, numbers: Numbers, weights: NDArray[np.float32], head: int) -> None:
    look = {"highlight_query": numbers.cell[0], "title": f"L{visit.layer} H{head}", "theme": visit.theme, "height": 500}
    key = "lesson-head-one" if head == visit.head else "lesson-head-other"
    drawn = numbers.map_of(weights[numbers.shown, numbers.shown])
    charts.draw_map(drawn, key, f"L{visit.layer} H{head} {visit.info.name}", about=numbers.about, **look)


def _writes(visit: Visit, step: Step, numbers: Numbers, weights: NDArray[np.float32]) -> None:
    """Draw how much each head of the layer writes at the followed query, and say how they are put together."""
    flow = None if numbers.cross else stream(visit, numbers)
    if flow is None:
        return
    found = [
        row @ visit.rest.qkv(visit.layer, head, part=visit.part)[2]
        for head, row in enumerate(weights[:, numbers.cell[0]])
    ]
    written = np.stack([flow.write(visit.layer, head, part) for head, part in enumerate(found)])  # (heads, d_model)
    sizes, query = np.linalg.norm(written, axis=1), numbers.pair["query"]
    whole = number(np.linalg.norm(written.sum(axis=0)))
    shape = {"n_heads": len(weights), "width": numbers.v.shape[1], "wide": len(weights) * numbers.v.shape[1]}
    said = {"d_model": written.shape[1], "parts": number(sizes.sum()), "whole": whole, "query": query}
    st.markdown(step.say("write", **shape, **said))
    figure = component_bars(
        sizes,
        highlighted=[visit.head],
        names=(numbers.name, "the other heads"),
        value_name="size of what it writes",
        bar_name="head",
        title=f"What the heads of layer {visit.layer} write at “{query}”",
        theme=visit.theme,
        height=330,
    )
    columns = {"head": np.arange(len(weights)), "size": sizes}
    charts.draw(figure, "lesson-writes", f"writes layer {visit.layer}", columns, about=numbers.about)
