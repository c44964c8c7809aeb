"""Step 5, the causal mask: change the last token, and see which rows change, with the mask and without."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import MOST_TOKENS, numbers_row
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.facts import OF_NOTHING, at_rest
from attnviz.app.show.lesson import Step, awaited, folded, guess, once_shown
from attnviz.core.attention.naive import masked_softmax
from attnviz.core.compare.changed_token import (
    Alike,
    TokenChange,
    change_a_token,
    compare_tokens,
    heads_that_kept,
    row_changes,
    same_bits,
)
from attnviz.core.threads import half_the_cores
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures import component_map, head_map
from attnviz.figures.look import LookOptions

HEIGHT = 520  # of a picture, in px
MOST_COMPONENTS = 64  # columns that are drawn
MOST_COMPARED = 256  # rows of a long text; texts up to this length are compared in all heads
ROUNDING = 1e-5  # differences below it come from another order of adding up


def draw(visit: Visit, step: Step) -> None:
    """Draw what a change of the last token changes, in random numbers or in the visitor's text."""
    numbers = numbers_row(visit, follow=(), more=_swap_box)
    if numbers is None:
        return
    if numbers.real:
        _real(visit, step)
    else:
        _random(visit, step)
    folded(step.say("stand_ins_title"), "mask-stand-ins", partial(_stand_ins, step))


def _random(visit: Visit, step: Step) -> None:
    n_tokens, d, seed = (st.session_state[name] for name in ("rows", "width", "seed"))
    n_heads = 2 if d % 2 == 0 else 1
    masked, free = (_changed(n_tokens, d, n_heads, seed, causal) for causal in (True, False))
    signs = [_signs(found.output, found.output_after) for found in (masked, free)]
    shown = guess(step, **_answer(*signs))
    largest = max(float(row_changes(found.output, found.output_after).max()) for found in (masked, free))
    left, right = st.columns(2, gap="medium")
    with left:
        _random_maps(visit, masked, "with the mask", signs[0], largest)
    with right:
        once_shown(shown, step, HEIGHT, partial(_random_maps, visit, free, "without it", signs[1], largest))
    heads = "1 head" if n_heads == 1 else f"{n_heads} heads"
    st.caption(step.say("random", heads=heads, d=d, n_drawn=min(d, MOST_COMPONENTS)))


def _signs(before: NDArray[np.floating], after: NDArray[np.floating]) -> list[str]:
    """Return a sign for each row: it kept every bit, differs by rounding alone, or changed."""
    same, changes = same_bits(before, after), row_changes(before, after)
    return ["=" if kept else "≈" if change < ROUNDING else "≠" for kept, change in zip(same, changes, strict=True)]


def _answer(masked: Sequence[str], free: Sequence[str]) -> dict[str, int]:
    """Return the answer's numbers: how many rows changed without the mask and with it, by their signs."""
    return {"n": len(free), "n_changed": list(free).count("≠"), "n_changed_masked": list(masked).count("≠")}


def _changed(n_tokens: int, d: int, n_heads: int, seed: int, causal: bool) -> TokenChange:
    def make() -> TokenChange:
        with half_the_cores():
            return change_a_token(n_tokens, d, n_tokens - 1, causal=causal, n_heads=n_heads, seed=seed)

    return cache.results().get(("token change", n_tokens, d, n_heads, seed, causal), make)


def _random_maps(visit: Visit, found: TokenChange, name: str, signs: Sequence[str], largest: float) -> None:
    """Draw one head's weights, and below them by how much each number of the output changed."""
    tokens, weights = [f"token {index}" for index in range(len(signs))], found.weights[0]
    look: LookOptions = {"title": f"Weights of head 0, {name}", "theme": visit.theme, "height": 430}
    figure = head_map(weights, tokens, tokens, allowed=weights > 0, **look)
    table = {"query": tokens, **{f"key {key}": weights[:, key].round(6) for key in range(len(tokens))}}
    charts.draw(figure, f"mask-weights-{name.split()[0]}", f"weights {name}", table, about=OF_NOTHING)
    figure = component_map(
        (found.output_after - found.output)[:, :MOST_COMPONENTS],
        [f"{token} {sign}" for token, sign in zip(tokens, signs, strict=True)],
        value_range=largest,
        bar_title="change of the output",
        title=f"Output after minus before, {name}",
        theme=visit.theme,
    )
    table = {"token": tokens, "largest change": row_changes(found.output, found.output_after), "row": signs}
    title = f"change of the output {name}"
    charts.draw(figure, f"mask-change-{name.split()[0]}", title, table, about=OF_NOTHING)


def _swap_box() -> None:
    st.text_input("The last word becomes", key="swap", persist_state="session", max_chars=60, width=260)


def _real(visit: Visit, step: Step) -> None:
    """Run the text with another last word, under the model's own mask and under the other one, and compare a head."""
    other = swapped(visit.text, st.session_state.swap)
    if other == visit.text:
        st.info(step.say("same_word"))
        return
    own = visit.head_before.causal
    cannot = visit.info.cannot.get("causal") or (visit.part == "cross" and step.says["cross"])
    passes = {"with the mask" if own else "as it is, no mask": Switches()}
    if not cannot:
        passes["without it" if own else "with a mask"] = Switches(causal=not own)
    try:
        traces = {name: _both(visit, other, switches) for name, switches in passes.items()}
    except ValueError as error:
        st.info(as_sentence(str(error)))
        return
    alike = compare_tokens(*next(iter(traces.values())), part=visit.part)
    if not alike.n_shared:
        st.info(step.say("nothing_shared", other=other))
        return
    _compare(visit, step, traces, alike, masked_first=own)
    if cannot:
        st.info(plain(cannot))
    _say_compared(visit, step, traces, alike, own)


def _say_compared(visit: Visit, step: Step, traces: Mapping[str, tuple[Trace, Trace]], alike: Alike, own: bool) -> None:
    """Say what was compared, how the two texts differ in length and, under the model's `own` mask, in all heads."""
    if alike.n_shared > MOST_TOKENS:
        st.caption(step.say("drawn", drawn=MOST_TOKENS, n=alike.n_shared))
    switched = " " + step.say("switched") if len(traces) == 2 else ""
    st.caption(step.say("real", last=st.session_state.swap) + switched)
    if alike.n_before != alike.n_after:
        st.caption(step.say("lengths", n=alike.n_before, n_other=alike.n_after, n_shared=alike.n_shared))
    elif own and alike.first > 0 and alike.n_before <= MOST_COMPARED:
        n_heads, n_same = heads_that_kept(*next(iter(traces.values())), part=visit.part)
        st.caption(step.say("all_heads", n_heads=n_heads, n_same=n_same, first=alike.first))


def _both(visit: Visit, other: str, switches: Switches) -> tuple[Trace, Trace]:
    """Return the traces of the visitor's text and of the other one."""
    with st.spinner("Reading the text with another last word"):
        before, after = (cache.get_trace(visit.choice, text, switches) for text in (visit.text, other))
    return before, after


def _compare(
    visit: Visit, step: Step, traces: Mapping[str, tuple[Trace, Trace]], alike: Alike, masked_first: bool
) -> None:
    """Draw the changes under the model's own mask and, with the answer, under the other one, in the same colours."""
    heads = {name: [visit.head_of(trace) for trace in pair] for name, pair in traces.items()}
    rows, columns = _last(alike.n_shared, MOST_COMPARED), slice(0, alike.n_shared)
    weights = {name: [head.tile(rows, columns).weights for head in pair] for name, pair in heads.items()}
    signs = [_signs(*pair) for pair in weights.values()]
    pictures = list(weights)
    said = "the last {}" if alike.n_shared > MOST_COMPARED else "{}" if alike.n_before == alike.n_after else "{} shared"
    if len(pictures) == 2 and not _asked(step, signs, said.format(len(signs[0])), masked_first):
        pictures.pop()
    drawn = _last(alike.n_shared, MOST_TOKENS)
    sides = zip(*(trace.tokens_of(visit.part) for trace in next(iter(traces.values()))), strict=True)
    labels = [_before_and_after(before, after, drawn) for before, after in sides]  # of queries, of keys
    largest = _coloured(weights.values(), alike.first - rows.start)
    boxes = st.columns(2, gap="medium")
    for box, name, sign in zip(boxes, pictures, signs, strict=False):
        before, after = (side[-(drawn.stop - drawn.start) :, drawn] for side in weights[name])
        with box:
            _difference(visit, name, before, after, sign, labels, heads[name][0].tile(drawn, drawn), largest)
    if len(pictures) < len(weights):
        with boxes[1]:
            awaited(step.say("awaited"), HEIGHT)


def _asked(step: Step, signs: Sequence[Sequence[str]], rows: str, masked_first: bool) -> bool:
    """Ask which of the `rows`, a number, change under the other mask; return whether the answer is shown."""
    if masked_first:
        return guess(step, **_answer(*signs) | {"n": rows})
    question, answer = step.says["question_free"], step.says["answer_free"]
    return guess(step, question, answer, **_answer(*reversed(signs)) | {"n": rows})


def _before_and_after(before: Sequence[Token], after: Sequence[Token], drawn: slice) -> list[str]:
    """Return what the drawn tokens read, both readings where they differ."""
    pairs = zip(before[drawn], after[drawn], strict=True)
    return [old.label if old.label == new.label else f"{old.label} → {new.label}" for old, new in pairs]


def _coloured(pairs: Iterable[Sequence[NDArray[np.float32]]], n_earlier: int) -> float:
    """Return the largest change that gets a colour of its own: that of the rows before the changed token.

    The row of the changed token itself changes most, in every model; beside it the others would look unchanged.
    """
    changes = np.stack([row_changes(*pair) for pair in pairs])  # (masks, rows)
    earlier = float(changes[:, :n_earlier].max(initial=0.0))
    return earlier if earlier > ROUNDING else float(changes.max()) or 1.0


def _last(n: int, most: int) -> slice:
    return slice(max(0, n - most), n)


def swapped(text: str, word: str) -> str:
    """Return the text with its last word replaced, white space before it kept.

    >>> swapped("it is cold", "warm"), swapped("cold", "warm")
    ('it is warm', 'warm')
    """
    body = text.rstrip()
    cut = max((place + 1 for place, sign in enumerate(body) if sign.isspace()), default=0)
    return body[:cut] + word


def _difference(
    visit: Visit,
    name: str,
    before: NDArray[np.float32],
    after: NDArray[np.float32],
    signs: Sequence[str],
    labels: Sequence[list[str]],
    of: Head,
    largest: float,
) -> None:
    """Draw by how much the tile of a head changed, with a sign at each row; colours end at the `largest` change."""
    queries, keys = labels
    signs = signs[-len(queries) :]
    figure = head_map(
        after - before,
        [f"{label} {sign}" for label, sign in zip(queries, signs, strict=True)],
        keys,
        allowed=of.allowed,
        kind="difference",
        value_range=(-largest, largest),
        query_start=of.tokens[0][0].index,
        key_start=of.tokens[1][0].index,
        title=f"{visit.name} {name}: change of weights",
        theme=visit.theme,
        height=HEIGHT,
    )
    table = {"query": queries, "largest change": row_changes(before, after), "row": signs}
    title = f"change {visit.name} {name}"
    charts.draw(figure, f"mask-real-{name.split()[0]}", title, table, about=at_rest(visit))


def _stand_ins(step: Step) -> None:
    """Show what -inf and -1e9 make of a row in which something is allowed, and of one in which nothing is."""
    scores = np.array([1.0, 2.0, 0.5, 3.0])
    rows = {"two keys allowed": np.array([True, True, False, False]), "nothing allowed": np.zeros(4, bool)}
    lines = ["| scores 1, 2, 0.5, 3 | masked by | float32 | float16 |", "|:--|:--|:--|:--|"]
    for name, allowed in rows.items():
        for stand_in in (-np.inf, -1e9):
            found = [masked_softmax(scores, allowed, stand_in, dtype) for dtype in (np.float32, np.float16)]
            cells = " | ".join(", ".join(f"{value:.3g}" for value in row.astype(float)) for row in found)
            lines.append(f"| {name} | {'−∞' if np.isinf(stand_in) else '−1e9'} | {cells} |")
    st.markdown("\n".join(lines))
    with np.errstate(over="ignore"):
        half = np.float64(-1e9).astype(np.float16)
    st.caption(step.say("stand_ins", half=str(half).replace("-", "−")))
