"""The sizes that costs are worked out for: those of a published model, or the visitor's own."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from attnviz.app.cost.texts import all_parts
from attnviz.core.attention.split_heads import divisors
from attnviz.core.cost.formulas import Shape
from attnviz.core.cost.published import PublishedModel, published_models

WIDTHS = (64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 12_288, 16_384)
LENGTHS = tuple(2**power for power in range(6, 20))  # 64 to 524,288
LAYERS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128)
MOST_HEADS = 256


def chosen_model() -> PublishedModel | None:
    """Return the published model that was chosen; None for sizes of the visitor's own."""
    return next((model for model in published_models() if model.name == st.session_state.cost_model), None)


def chosen_shape() -> Shape:
    """Return the chosen sizes: a model's, or plain attention with a classic MLP."""
    model, chosen = chosen_model(), st.session_state
    if model is not None:
        return model.shape
    return Shape(
        d_model=chosen.cost_d,
        n_heads=chosen.cost_heads,
        n_kv_heads=chosen.cost_heads // chosen.cost_group,
        d_head=chosen.cost_d // chosen.cost_heads,
        d_ff=4 * chosen.cost_d,
        n_layers=chosen.cost_layers,
        gated=False,
    )


def sizes_row() -> Shape:
    """Show the controls for sizes and length, and return the sizes."""
    _fit()
    chosen = st.session_state
    columns = st.columns([3, 3, 3, 2, 2, 2], gap="medium")
    with columns[0]:
        _model_box()
    group_help = "Query heads that share a key/value head. 1: multi-head; all of them: multi-query."
    sliders = (
        ("Tokens s", "cost_s", LENGTHS, None),
        ("Width d", "cost_d", WIDTHS, None),
        ("Heads", "cost_heads", divisors(chosen.cost_d, MOST_HEADS), None),
        ("Group size", "cost_group", divisors(chosen.cost_heads, MOST_HEADS), group_help),
        ("Layers", "cost_layers", LAYERS, None),
    )
    for column, slider in zip(columns[1:], sliders, strict=True):
        with column:
            _slider(*slider)
    _say_sizes()
    return chosen_shape()


def _say_sizes() -> None:
    chosen, model = st.session_state, chosen_model()
    st.caption(_described(chosen_shape(), model))
    if model is not None and chosen.cost_s > model.context:
        st.caption(_say("beyond", s=chosen.cost_s, name=model.name, context=model.context))


def _say(name: str, /, **values: Any) -> str:
    """Return a sentence about sizes; they are the first part's, whichever part shows them."""
    return all_parts()["grows"].say(name, **values)


def _described(shape: Shape, model: PublishedModel | None) -> str:
    if model is None:
        return _say("own", d_head=shape.d_head)
    about = {"name": model.name, "kind": model.attention, "context": model.context, "source": model.source}
    return _say("model", d_head=shape.d_head, d_ff=shape.d_ff, matrices=3 if shape.gated else 2, **about)


def _model_box() -> None:
    st.selectbox(
        "Sizes of",
        ["", *(model.name for model in published_models())],
        key="cost_model",
        persist_state="session",
        format_func=lambda name: name or "your own choice",
        help="A published model, or your own: move a slider, and the sizes become yours.",
    )


def _slider(label: str, key: str, options: Sequence[int], help_text: str | None) -> None:
    """Show a slider over some numbers and the one that is chosen; with one number there is nothing to slide."""
    shown = sorted({*options, st.session_state[key]})
    if len(shown) == 1:
        st.markdown(f"{label}: {shown[0]}")
        return
    st.select_slider(
        label,
        shown,
        key=key,
        persist_state="session",
        format_func=lambda number: f"{number:,}",
        help=help_text,
        on_change=None if key == "cost_s" else _make_own,  # the length is no size of a model
    )


def _make_own() -> None:
    st.session_state.cost_model = ""


def _fit() -> None:
    """Take over a model's sizes, or make the visitor's own ones fit each other."""
    chosen, model = st.session_state, chosen_model()
    if model is not None:
        shape = model.shape
        chosen.cost_d, chosen.cost_heads, chosen.cost_layers = shape.d_model, shape.n_heads, shape.n_layers
        chosen.cost_group = shape.n_heads // shape.n_kv_heads
        return
    chosen.cost_heads = _nearest(chosen.cost_heads, chosen.cost_d)
    chosen.cost_group = _nearest(chosen.cost_group, chosen.cost_heads)


def _nearest(number: int, whole: int) -> int:
    """Return the number of heads that divides the whole and lies nearest."""
    return min(divisors(whole, MOST_HEADS), key=lambda divisor: abs(divisor - number))
