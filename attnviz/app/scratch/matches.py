"""Step 9, does it match? The same numbers through our function and through PyTorch's, and the whole model both ways."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import Numbers, numbers_row
from attnviz.app.scratch.stream import stream
from attnviz.app.scratch.trail import ladder, signed, trail
from attnviz.app.scratch.weighted_sum import cell_vote, next_word
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.markdown import plain, table
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.lesson import Step, folded, guess, in_powers, minus
from attnviz.app.show.numpy_model import MOST_TOKENS
from attnviz.core.attention.textbook import scaled_dot_product_attention
from attnviz.core.compare.agreement import largest_probability_difference, largest_weight_difference
from attnviz.core.trace.head import Head
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.models.measure.torch_attention import torch_attention

TYPES = ("float32", "float64")
Differences = dict[str, tuple[NDArray[np.floating], NDArray[np.floating]]]  # by type: of the output, of the weights


def draw(visit: Visit, step: Step) -> None:
    """Draw where NumPy and PyTorch differ, say by how much, and end with the followed number."""
    real = st.session_state.source == "real"
    numbers = numbers_row(visit, follow=("query", "key") if real else ())
    if numbers is None:
        return
    found = {name: _both(numbers, name) for name in TYPES}
    apart = found["float32"][1]
    most, finest = (float(np.abs(found[name][1]).max()) for name in TYPES)
    exact = step.says["answer_exact"] if most == finest == 0 else ""
    guess(step, "", exact, weights=in_powers(most), fine=in_powers(finest))
    left, right = st.columns(2, gap="medium")
    with left:
        _map(visit, numbers, apart)
    with right:
        if numbers.real and not numbers.cross:
            st.markdown(f"#### {step.say('end_title')}")
            _end(visit, step, numbers)
    folded(step.say("numbers_title"), "matches-numbers", partial(_in_numbers, visit, step, numbers, found))


def _in_numbers(visit: Visit, step: Step, numbers: Numbers, found: Differences) -> None:
    """Say how far apart both ways are, for this head and for the whole model."""
    st.markdown(_table(step, found))
    if numbers.of is not None and _extras(numbers.of):
        st.caption(step.say("extras"))
    if numbers.real:
        _whole_model(visit, step)


def _both(numbers: Numbers, dtype: str) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return NumPy's output and weights minus PyTorch's, of the drawn tokens, computed in that type."""
    q, k, v = (np.asarray(x[numbers.shown], dtype) for x in (numbers.q, numbers.k, numbers.v))
    allowed = numbers.allowed[:, numbers.shown]
    ours = scaled_dot_product_attention(q, k, v, mask=allowed, scale=numbers.scale)
    theirs = torch_attention(q, k, v, allowed=allowed, scale=numbers.scale)
    return ours[0] - theirs[0], ours[1] - theirs[1]


def _tiny(value: float) -> str:
    return minus(f"{value:.1e}")


def _extras(of: Head) -> bool:
    """Return True if the model's own attention has more than the textbook's: a soft-cap, sinks or a bias."""
    record = of.trace.records[of.part][of.layer]
    return any(getattr(record, name, None) is not None for name in ("softcap", "sinks", "bias"))


def _table(step: Step, found: Differences) -> str:
    rows = []
    for name, (output, weights) in found.items():
        sizes = np.abs(weights).max(), np.abs(output).max(), np.finfo(name).eps
        rows.append((name, *map(_tiny, sizes)))
    return table(step.says["header"], rows)


def _map(visit: Visit, numbers: Numbers, apart: NDArray[np.floating]) -> None:
    figure = numbers.map_of(apart).figure(
        kind="difference",
        bar_title="NumPy − PyTorch, float32",
        title=f"Weights of {numbers.name}: NumPy minus PyTorch",
        theme=visit.theme,
        height=500,
    )
    name = f"NumPy minus PyTorch {numbers.name}"
    queries, keys = numbers.queries[numbers.shown], numbers.keys[numbers.shown]
    columns = {token.label + f" ({token.index})": [_tiny(x) for x in apart[:, i]] for i, token in enumerate(keys)}
    columns = {"query": [token.label for token in queries], **columns}
    charts.draw(figure, "lesson-apart", name, columns, about=numbers.about)


def _whole_model(visit: Visit, step: Step) -> None:
    """Run the whole model the other way, and say how far weights and predictions are apart."""
    if len(visit.rest.tokens) > MOST_TOKENS:
        st.info(step.say("too_long", most=MOST_TOKENS))
        return
    choice = replace(visit.choice, engine="torch" if visit.choice.engine == "numpy" else "numpy", dtype="float32")
    try:
        trace = _read(visit, choice)
    except ValueError as error:
        st.info(plain(f"The whole model can't be run both ways: {error}."))
        return
    key = ("both engines", visit.choice, choice, visit.text)
    weights = cache.results().get(key, lambda: largest_weight_difference(visit.rest, trace))
    n_heads = sum(
        visit.rest.heads(layer, part=part) for part in visit.rest.parts for layer in visit.rest.layers_of(part)
    )
    dtype = visit.choice.dtype if choice.engine == "numpy" else choice.dtype
    st.markdown(step.say("whole", n_heads=n_heads, weights=_tiny(weights), dtype=dtype))
    if visit.info.predicts:
        chance = largest_probability_difference(visit.rest, trace)
        words = {"word": visit.rest.next_tokens(1)[0][0], "other": trace.next_tokens(1)[0][0]}
        st.markdown(step.say("whole_words", chance=_tiny(chance), **words))


def _read(visit: Visit, choice: ModelChoice) -> Trace:
    with passing() as place:
        return cache.get_trace(choice, visit.text, Switches(), say=lambda sentence: place.info(plain(sentence)))


def _end(visit: Visit, step: Step, numbers: Numbers) -> None:
    """Show the followed number from its product to the next word, once more and whole."""
    key = numbers.cell[1]
    size = float(np.linalg.norm(numbers.weights[numbers.row, key] * numbers.v[key]))
    flow = stream(visit, numbers)
    if flow is None or flow.model.head is None:
        trail(numbers, "value", value=size, n=4)
        return
    words, chances = next_word(flow)
    vote = float(cell_vote(visit, numbers, flow, words)[0])
    ladder(numbers, size, visit.rest.label_of(int(words[0])), vote, float(chances[0]))
    trace = visit.rest
    n_cells = sum(trace.heads(layer) * int(trace.allowed(layer, 0).sum()) for layer in trace.layers)
    st.markdown(step.say("end", n_cells=n_cells, added=signed(vote), query=numbers.pair["query"]))
