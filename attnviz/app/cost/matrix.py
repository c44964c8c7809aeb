"""Part 2, the score matrix: its bytes for a head, a layer and all layers, beside what FlashAttention keeps."""

import numpy as np
import streamlit as st

from attnviz.app.cost.sizes import LENGTHS, sizes_row
from attnviz.app.shell.markdown import table
from attnviz.app.shell.visit import Visit, theme
from attnviz.app.show import charts
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import OF_NOTHING
from attnviz.app.show.lesson import Step, guess
from attnviz.core.cost.formulas import Shape, layer_cost, row_sum_bytes, score_bytes
from attnviz.figures import Curve, Mark, cost_curves, quantity

ROW_SUM_BYTES = 4  # float32, whatever the scores are in
EXAMPLE = (8192, 32, 32)  # tokens, heads, layers of the question


def draw(visit: Visit | None, part: Step) -> None:
    """Draw the controls, the bytes over the length, and the numbers at the chosen one."""
    shape = sizes_row()
    choose("Bytes a number", "cost_bytes", {"2": "2 bytes a number (float16, bfloat16)", "4": "4 bytes (float32)"})
    guess(part, **_example())
    left, right = st.columns([3, 2], gap="large")
    with left:
        _curves(part, shape)
    with right:
        s = st.session_state.cost_s
        st.markdown(f"#### {part.say('each', s=s, n=quantity(s**2))}")
        st.markdown(_table(part, shape))
        st.markdown(part.say("linear"))
        if shape.n_heads > 1:
            cost = layer_cost(shape, st.session_state.cost_s)
            sizes = {"heads": shape.n_heads, "d_head": shape.d_head, "width": shape.n_heads * shape.d_head}
            st.markdown(part.say("heads", attention=quantity(cost.attention), **sizes))
        st.markdown(part.say("more_work"))


def _example() -> dict[str, str]:
    s, heads, layers = EXAMPLE
    return {
        "layer": quantity(score_bytes(s, heads, 1, 2), "bytes"),
        "all": quantity(score_bytes(s, heads, layers, 2), "bytes"),
        "rows": quantity(row_sum_bytes(s, heads, layers, ROW_SUM_BYTES), "bytes"),
    }


def _held(shape: Shape) -> dict[str, tuple[int, int]]:
    """Return what can be held: (heads, layers) of one head, one layer, all layers; equal ones once."""
    held = {"one head": (1, 1), "one layer": (shape.n_heads, 1), "all layers": (shape.n_heads, shape.n_layers)}
    return {
        f"{name}, {heads * layers:,} matrices" if heads * layers > 1 else name: (heads, layers)
        for name, (heads, layers) in held.items()
    }


def _held_over(shape: Shape, lengths: np.ndarray) -> dict[str, list[int]]:
    """Return the bytes over the length: of score matrices, and of one number a query."""
    n_bytes = int(st.session_state.cost_bytes)
    rows = {
        name: [score_bytes(int(length), heads, layers, n_bytes) for length in lengths]
        for name, (heads, layers) in _held(shape).items()
    }
    kept = [row_sum_bytes(int(length), shape.n_heads, shape.n_layers, ROW_SUM_BYTES) for length in lengths]
    return rows | {"one number a query, all layers": kept}


def _curves(part: Step, shape: Shape) -> None:
    s, n_bytes = np.array(LENGTHS), int(st.session_state.cost_bytes)
    rows = _held_over(shape, s)
    at = st.session_state.cost_s
    whole = score_bytes(at, shape.n_heads, shape.n_layers, n_bytes)
    figure = cost_curves(
        [Curve(name, s, values) for name, values in rows.items()],
        unit="bytes",
        y_name="bytes",
        marks=[Mark(at, whole, f"{quantity(whole, 'bytes')} at s = {at:,}")],
        marked=at,
        title="Score matrices, kept whole or not",
        theme=theme(),
        height=520,
    )
    charts.draw(figure, "matrix-curves", "score matrices", {"tokens": s, **rows}, about=OF_NOTHING)


def _table(part: Step, shape: Shape) -> str:
    s, n_bytes = st.session_state.cost_s, int(st.session_state.cost_bytes)
    rows = [
        (
            name,
            f"**{quantity(score_bytes(s, heads, layers, n_bytes), 'bytes')}**",
            quantity(row_sum_bytes(s, heads, layers, ROW_SUM_BYTES), "bytes"),
        )
        for name, (heads, layers) in _held(shape).items()
    ]
    return table(part.say("header"), rows)
