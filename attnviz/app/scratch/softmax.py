"""Step 6, the softmax: one row at any temperature, what rows and columns sum to, and why the maximum goes off first."""

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.fields import HEATS
from attnviz.app.scratch.numbers import Numbers, numbers_row
from attnviz.app.scratch.trail import trail
from attnviz.app.shell import cache
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.choose import choose
from attnviz.app.show.lesson import Step, folded, guess, minus, once_shown, right_aligned
from attnviz.core.attention.naive import LargestProduct, largest_exponent, largest_product, naive_softmax
from attnviz.core.attention.textbook import softmax
from attnviz.core.softmax.row_sharpness import jacobian_norm
from attnviz.core.trace.switches import Switches
from attnviz.figures import row_bars, sum_bars

DIGITS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
HEIGHT = 354  # of a picture, in px
MOST_ROWS = 12  # keys in the table of exponentials


def draw(visit: Visit, step: Step) -> None:
    """Draw the followed row at a temperature, the sums of rows and columns, and where the literal formula fails."""
    numbers = numbers_row(visit)
    if numbers is None:
        return
    heat = float(_temperature(step))
    weights = _weights(numbers, heat)  # (shown queries, keys)
    columns = weights.sum(axis=0)[numbers.shown]
    best = int(columns.argmax())
    key = numbers.key_labels[numbers.shown][best]
    n = str(len(weights)) if len(weights) == len(numbers.q) else f"the {len(weights)} rows drawn"
    shown = guess(step, n=n, largest=float(columns[best]), key=key, least=float(columns.min()))
    trail(numbers, "weight", names={} if heat == 1 else {"weight": "weight (at τ = 1)"})
    left, right = st.columns(2, gap="medium")
    with left:
        _row(visit, numbers, weights, heat)
    with right:
        once_shown(shown, step, HEIGHT, partial(_sums, visit, step, numbers, weights))
    folded(step.say("answers_title"), "softmax-answers", partial(_answers, step, weights[numbers.row], heat))
    folded(step.say("overflow_title"), "softmax-exponents", partial(_exponents, visit, step, numbers, heat))


def _temperature(step: Step) -> str:
    names = {"0.01": "0.01, nearly all to the largest", "1": "1, as it is", "100": "100, nearly equal shares"}
    return st.select_slider(
        step.say("heat"),
        HEATS,
        key="heat",
        persist_state="session",
        format_func=lambda heat: names.get(heat, heat),
        help=step.say("heat_help"),
    )


def _weights(numbers: Numbers, heat: float) -> NDArray[np.floating]:
    if numbers.of is None:
        return softmax(numbers.scores / heat)
    return numbers.of.under(Switches(temperature=heat)).weights


def _row(visit: Visit, numbers: Numbers, weights: NDArray[np.floating], heat: float) -> None:
    row, shown = numbers.row, numbers.shown
    labels = numbers.key_labels[shown]
    figure = row_bars(
        numbers.weights[row][shown],
        labels,
        query_label=numbers.pair["query"],
        after=None if heat == 1 else weights[row][shown],
        allowed=numbers.allowed[row][shown],
        names=("temperature 1", f"temperature {heat:g}"),
        key_start=shown.start,
        theme=visit.theme,
    )
    table = {
        "key": labels,
        "score": numbers.scores[row][shown],
        "weight": numbers.weights[row][shown],
        f"temperature {heat:g}": weights[row][shown],
    }
    charts.draw(figure, "softmax-row", f"row {numbers.name}", table, about=numbers.about)


def _answers(step: Step, weights: NDArray[np.floating], heat: float) -> None:
    """Say how strongly a row's weights answer to a small change of its scores."""
    gradient = float(jacobian_norm(weights[None])[0]) / heat  # a score is divided by it before the softmax
    st.markdown(step.say("row", gradient=gradient))
    st.caption(step.say("jacobian"))


def _sums(visit: Visit, step: Step, numbers: Numbers, weights: NDArray[np.floating]) -> None:
    """Draw what each token gives, always 1, beside what it gets."""
    shown = numbers.shown
    if numbers.query_labels != numbers.key_labels:
        st.caption(step.say("two_texts"))
        return
    rows, columns = weights.sum(axis=1), weights.sum(axis=0)[shown]
    labels = numbers.key_labels[shown]
    figure = sum_bars(rows, columns, labels, start=shown.start, theme=visit.theme)
    table = {"token": labels, "its row": rows, "its column": columns}
    charts.draw(figure, "softmax-sums", f"sums {numbers.name}", table, about=numbers.about)
    if float(rows.max()) < 0.999:
        st.caption(step.say("sinks", n=len(rows), total=float(columns.sum())))


def _exponents(visit: Visit, step: Step, numbers: Numbers, heat: float) -> None:
    """Show the softmax with the largest score taken off, the followed cell in it, and where it overflows without."""
    st.latex(step.says["overflow_formula"])
    shifted = (numbers.scores[numbers.row] - numbers.scores[numbers.row].max()) / heat
    power, total = float(np.exp(shifted[numbers.cell[1]])), float(np.exp(shifted).sum())
    st.markdown(step.say("followed", power=power, total=total, share=power / total))
    _overflow(visit, step, numbers)


def _overflow(visit: Visit, step: Step, numbers: Numbers) -> None:
    """Compute a row as the formula writes it and as it is done, in the chosen precision, and show both."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        choose("Row", "overflow", {"largest": "with the largest q·k", "row": "the followed one"})
        choose("Computed in", "digits", {name: name for name in DIGITS})
    scores, labels, where = _raw_row(visit, numbers)
    name = "s" if st.session_state.overflow == "row" else "q·k"
    if name == "q·k":
        st.caption(step.say("largest_row" if numbers.real else "largest_random", where=where))
    kind = DIGITS[st.session_state.digits]
    shifted = scores - scores.max()
    literal, stable = naive_softmax(scores, kind), softmax(shifted.astype(np.float64))
    _both_ways(scores, labels, name, literal, stable)
    values = {"limit": largest_exponent(kind), "digits": st.session_state.digits, "largest": float(scores.max())}
    values |= {"where": where, "name": name}
    if np.isfinite(literal).all():
        st.markdown(step.say("sound", difference=float(np.abs(literal - stable).max()), **values))
    else:
        st.markdown(step.say("broken", **values))
    st.caption(step.say("limits", half=largest_exponent(np.float16), single=largest_exponent(np.float32)))


def _both_ways(
    scores: NDArray[np.float64],
    labels: list[str],
    name: str,
    literal: NDArray[np.floating],
    stable: NDArray[np.floating],
) -> None:
    """Show the largest scores on their way to shares, as the formula writes it and with the largest taken off."""
    kind, shifted = literal.dtype, scores - scores.max()
    with np.errstate(over="ignore", under="ignore"):
        exps, exps_shifted = np.exp(scores.astype(kind)), np.exp(shifted.astype(kind))
    columns = {
        "s" if name == "s" else "q·k, no factor": (scores, ".2f"),
        f"exp({name})": (exps, ".4g"),
        "share, literally": (literal, ".3g"),
        f"{name} − largest": (shifted, ".2f"),
        f"exp({name} − largest)": (exps_shifted, ".4g"),
        "share": (stable, ".3g"),
    }
    order = np.sort(np.argsort(-scores, kind="stable")[:MOST_ROWS])
    table = {at: [minus(f"{values[key]:{form}}") for key in order] for at, (values, form) in columns.items()}
    names = {"key": [labels[key] for key in order]}
    st.dataframe(names | table, hide_index=True, column_config=right_aligned(table), key="softmax-overflow")


def _raw_row(visit: Visit, numbers: Numbers) -> tuple[NDArray[np.float64], list[str], str]:
    """Return the allowed scores of a row, the names of their keys, and a name for the row.

    The followed row has its scores as they enter the softmax; the one with the largest q·k has none of them scaled.
    """
    labels = [f"{label} ({index})" for index, label in enumerate(numbers.key_labels)]
    if st.session_state.overflow == "row":
        allowed = numbers.allowed[numbers.row]
        scores = numbers.scores[numbers.row]
        where = f"the row of {numbers.pair['query']} in {numbers.name}"
    elif not numbers.real:
        products = np.where(numbers.allowed, numbers.q @ numbers.k.T, -np.inf)  # (queries, keys)
        products[0] = -np.inf  # its first row has no choice
        query = int(products.argmax()) // products.shape[1]
        allowed, scores, where = numbers.allowed[query], products[query], f"row {query}"
    else:
        best = _largest(visit)
        of = visit.rest.head(best.layer, best.head, part=visit.part)
        q, k, _ = of.qkv
        allowed = of.tile(slice(best.query, best.query + 1)).allowed[0]
        scores = q[best.query] @ k.T
        where = f"the row of {numbers.query_labels[best.query]} in {of.name}"
    names = [label for label, seen in zip(labels, allowed, strict=True) if seen]
    return np.asarray(scores[allowed], np.float64), names, where


def _largest(visit: Visit) -> LargestProduct:
    key = ("largest product", visit.choice, visit.text, visit.part)
    return cache.results().get(key, lambda: largest_product(visit.rest, part=visit.part))
