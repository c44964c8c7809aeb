"""Step 7, weighted sum: what a query fetches, what is added to its token's vector, and to the next word's logit."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import Numbers, numbers_row
from attnviz.app.scratch.roles import MOST_COMPONENTS, vectors_table
from attnviz.app.scratch.stream import Stream, stream
from attnviz.app.scratch.trail import trail
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.lesson import Step, folded, guess, once_shown, per_cent
from attnviz.core.attention.textbook import softmax
from attnviz.core.values.contributions import contributions, cosine, size_shares
from attnviz.figures import component_bars, component_map, labelled_bars, row_bars
from attnviz.figures.look import LookOptions
from attnviz.figures.theme import number

HEIGHT = 460  # of a picture, in px
N_WORDS = 6  # likeliest next tokens whose logits are looked at


def draw(visit: Visit, step: Step) -> None:
    """Draw the stack of weights times values, the residual stream, and the head's vote on the next word."""
    numbers = numbers_row(visit)
    if numbers is None:
        return
    weights = numbers.weights[numbers.row]
    parts = contributions(weights, numbers.v)  # (keys, d_value)
    shown = guess(step, **_answer(numbers, weights, parts))
    trail(numbers, "value", value=_size(parts[numbers.cell[1]]))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _shares(visit, numbers, weights, parts, shown)
    with right:
        once_shown(shown, step, HEIGHT, partial(_stack, visit, numbers, parts))
    if not numbers.real:
        st.caption(step.say("random"))
        return
    flow = None if numbers.cross else stream(visit, numbers)
    if flow is not None:
        _stream(visit, step, numbers, flow, parts)
        if flow.model.head is None:
            st.markdown(step.say("no_word"))
            return
        folded(step.say("word_title"), "weighted-sum-word", partial(_next_word, visit, step, numbers, flow, parts))


def next_word(flow: Stream) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Return the numbers of the likeliest tokens after the followed query, and their probabilities."""
    chances = softmax(flow.logits().astype(np.float64))
    words = np.argsort(-chances, kind="stable")[:N_WORDS]
    return words, chances[words]


def cell_vote(visit: Visit, numbers: Numbers, flow: Stream, words: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return (words,) what the followed cell, weight times value, adds to the logits of these words."""
    query, key = numbers.cell
    part = numbers.weights[numbers.row, key] * numbers.v[key]
    return flow.votes(flow.write(visit.layer, visit.head, part), words)


def _answer(numbers: Numbers, weights: NDArray[np.floating], parts: NDArray[np.floating]) -> dict[str, Any]:
    """Return the answer's numbers: the key with most weight, and the one that makes most of the output."""
    shares = size_shares(parts)
    most, largest = int(weights.argmax()), int(shares.argmax())
    return {
        "verdict": "Yes" if most == largest else "No",
        "most": numbers.key_labels[most],
        "key": numbers.key_labels[largest],
        "query": numbers.pair["query"],
        "weight": per_cent(weights[most]),
        "share": per_cent(shares[largest]),
        "value": number(_size(numbers.v[largest])),
        "mean": number(np.linalg.norm(numbers.v, axis=1).mean()),
    }


def _shares(
    visit: Visit, numbers: Numbers, weights: NDArray[np.floating], parts: NDArray[np.floating], shown: bool
) -> None:
    """Draw the weights and, once the answer is `shown`, the share of the output that each key makes."""
    keys = numbers.shown_keys
    allowed, labels = numbers.allowed[numbers.row, keys], numbers.key_labels[keys]
    shares = size_shares(parts)
    figure = row_bars(
        weights[keys],
        labels,
        query_label=numbers.pair["query"],
        after=shares[keys] if shown else None,
        allowed=allowed,
        names=("weight", "share of the output, by size"),
        key_start=keys.start,
        title="Weight, and share of the output" if shown else "",
        theme=visit.theme,
        height=HEIGHT,
    )
    columns = {"key": labels, "weight": weights[keys], "size of value": np.linalg.norm(numbers.v[keys], axis=1)}
    columns |= {"share": shares[keys]} if shown else {}
    charts.draw(figure, "lesson-shares", f"shares {numbers.name}", columns, about=numbers.about)


def _stack(visit: Visit, numbers: Numbers, parts: NDArray[np.floating]) -> None:
    """Draw one row a key, weight times value, and their sum, the output, as the last row."""
    keys = numbers.shown_keys
    rows = np.concatenate([parts[keys], parts.sum(axis=0, keepdims=True)])
    labels = [*numbers.key_labels[keys], "sum: the output"]
    figure = component_map(
        rows[:, :MOST_COMPONENTS],
        labels,
        bar_title="weight × value",
        row_title="key",
        start=keys.start,
        marked=[keys.start + len(labels) - 1],
        title="The stack that adds up to the output",
        theme=visit.theme,
        height=HEIGHT if len(labels) < 20 else None,
    )
    table = partial(vectors_table, rows, labels)
    charts.draw(figure, "lesson-stack", f"stack {numbers.name}", table, about=numbers.about)


def _stream(visit: Visit, step: Step, numbers: Numbers, flow: Stream, parts: NDArray[np.floating]) -> None:
    """Say how large the head's addition is beside the token's vector, and offer pictures of it."""
    written = flow.write(visit.layer, visit.head, parts.sum(axis=0))
    sizes = {"written": number(_size(written)), "entering": number(_size(flow.states[visit.layer]))}
    st.markdown(step.say("stream", name=numbers.name, query=numbers.pair["query"], **sizes))
    draw = partial(_sizes_and_likeness, visit, step, numbers, flow, written)
    folded(step.say("stream_pictures"), "weighted-sum-stream", draw)


def _sizes_and_likeness(
    visit: Visit, step: Step, numbers: Numbers, flow: Stream, written: NDArray[np.floating]
) -> None:
    """Draw the sizes of the stream and of what the head adds, and the stream's likeness to the word, layer by layer."""
    at = visit.layer
    entering = flow.states[at]
    sizes = {
        step.say("own"): _size(flow.states[0]),
        step.say("entering", layer=at): _size(entering),
        step.say("written", name=numbers.name): _size(written),
        step.say("leaving", layer=at): _size(flow.states[at + 1]),
    }
    left, right = st.columns(2, gap="medium")
    with left:
        _sizes(visit, numbers, sizes)
    with right:
        likeness = _likeness(visit, numbers, flow)
    st.caption(step.say("likeness", layer=at, likeness=number(round(likeness, 2))))
    together = {"entering": _size(entering), "written": _size(written), "both": _size(entering + written)}
    others = {"name": numbers.name, "layer": at, "n_others": visit.info.n_heads - 1}
    st.caption(step.say("sizes", **others, **{name: number(size) for name, size in together.items()}))


def _sizes(visit: Visit, numbers: Numbers, sizes: dict[str, float]) -> None:
    """Draw the sizes of vectors, what the head adds the third of them."""
    look: LookOptions = {"title": "How much is added", "theme": visit.theme, "height": 330}
    vectors, values = list(sizes), list(sizes.values())
    figure = labelled_bars(values, vectors, highlighted=[2], value_name="size of the vector", **look)
    table = {"vector": vectors, "size": values}
    charts.draw(figure, "lesson-sizes", f"sizes {numbers.name}", table, about=numbers.about)


def _likeness(visit: Visit, numbers: Numbers, flow: Stream) -> float:
    """Draw how like the stream is to the word's own vector, layer by layer, and return it at the chosen layer."""
    likeness = cosine(flow.states, flow.states[0])  # (layers + 1,)
    figure = component_bars(
        likeness,
        highlighted=[visit.layer],
        names=(f"entering layer {visit.layer}", "entering the others"),
        value_name="cosine with the word's own vector",
        bar_name="layer",
        title="How much it still points where the word did",
        theme=visit.theme,
        height=330,
    )
    table = {"entering layer": np.arange(len(likeness)), "cosine": likeness}
    charts.draw(figure, "lesson-likeness", f"likeness {numbers.name}", table, about=numbers.about)
    return float(likeness[visit.layer])


def _next_word(visit: Visit, step: Step, numbers: Numbers, flow: Stream, parts: NDArray[np.floating]) -> None:
    """Draw what the head adds by itself to the logits of the likeliest next words."""
    words, chances = next_word(flow)
    labels = [visit.rest.label_of(int(word)) for word in words]
    votes = flow.votes(flow.write(visit.layer, visit.head, parts.sum(axis=0)), words)
    cell = cell_vote(visit, numbers, flow, words)
    trail(numbers, "logit", value=_size(parts[numbers.cell[1]]), logit=(labels[0], float(cell[0])), n=5)
    said = {"name": numbers.name, "word": labels[0], "second": labels[1], "chance": per_cent(chances[0], 1)}
    sizes = {"vote": votes[0], "cell": cell[0], "factor": np.exp(votes[0]), "lead": votes[0] - votes[1]}
    st.markdown(step.say("word", **said, **numbers.pair, **{name: number(size) for name, size in sizes.items()}))
    figure = labelled_bars(
        votes,
        [f"{label} ({per_cent(chance, 1)})" for label, chance in zip(labels, chances, strict=True)],
        highlighted=[0],
        value_name="added to the logit, above the mean of all words",
        title=f"The vote of {numbers.name} on the next word",
        theme=visit.theme,
    )
    columns = {"next word": labels, "probability": chances, "added by the head": votes, "by the followed cell": cell}
    charts.draw(figure, "lesson-votes", f"votes {numbers.name}", columns, about=numbers.about)
    st.caption(step.say("direct"))


def _size(vector: NDArray[np.floating]) -> float:
    return float(np.linalg.norm(vector))
