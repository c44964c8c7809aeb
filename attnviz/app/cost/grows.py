"""Part 1, what grows how: multiply-adds of projections, attention and MLP over the length of the text."""

import numpy as np
import streamlit as st

from attnviz.app.cost.sizes import LENGTHS, chosen_model, sizes_row
from attnviz.app.shell.markdown import table
from attnviz.app.shell.visit import Visit, theme
from attnviz.app.show import charts
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import OF_NOTHING
from attnviz.app.show.lesson import Step, guess, per_cent
from attnviz.core.cost.formulas import FLOPS_PER_MULTIPLY_ADD, LayerCost, Shape, layer_cost, meeting_point
from attnviz.figures import Curve, Mark, cost_curves, quantity

POINTS = 81  # of a line


def draw(visit: Visit | None, part: Step) -> None:
    """Draw the controls, the claim put right, the curves with their meeting point, and the numbers at the length."""
    shape = sizes_row()
    chosen = st.session_state
    with st.container(horizontal=True, vertical_alignment="center", gap="large"):
        st.checkbox("with the MLP", key="cost_mlp", persist_state="session", width="content")
        skip_help = "Leave out the blocks that a causal mask forbids, as FlashAttention does."
        skip = {"key": "cost_skip", "persist_state": "session", "help": skip_help, "width": "content"}
        st.checkbox("causal blocks skipped", **skip)
        choose("Axes", "cost_axes", {"log": "logarithmic axes", "linear": "linear axes"}, hide_label=True)
    guess(part, **_claim(shape, chosen.cost_skip))
    settings = {"with_mlp": chosen.cost_mlp, "causal_skipped": chosen.cost_skip}
    meeting = meeting_point(shape, **settings)
    rest = "projections and MLP together" if chosen.cost_mlp else "the projections"
    left, right = st.columns([3, 2], gap="large")
    with left:
        _curves(part, shape, meeting)
    with right:
        st.markdown(f"#### {part.say('meet', meeting=meeting, in_d=meeting / shape.d_model, rest=rest)}")
        st.markdown(_table(shape, layer_cost(shape, chosen.cost_s, causal_skipped=chosen.cost_skip)))
        if shape.n_heads != shape.n_kv_heads:
            st.markdown(part.say("group", group=shape.n_heads // shape.n_kv_heads))
        st.markdown(part.say("mask"))
        flops = quantity(
            FLOPS_PER_MULTIPLY_ADD * layer_cost(shape, chosen.cost_s, causal_skipped=chosen.cost_skip).total
        )
        st.caption(part.say("units", flops=flops))


def _claim(shape: Shape, skip: bool) -> dict[str, float | str]:
    """Return the numbers of “from s = d on”, and what is right."""
    cost = layer_cost(shape, shape.d_model, causal_skipped=skip)
    meet = {name: meeting_point(shape, with_mlp=mlp, causal_skipped=skip) for name, mlp in (("p", False), ("a", True))}
    return {
        "d": shape.d_model,
        "attention": quantity(cost.attention),
        "projections": quantity(cost.projections),
        "times": cost.attention / cost.projections,
        "share": cost.attention / cost.total,
        "meet_projections": meet["p"],
        "meet_all": meet["a"],
        "in_d_projections": meet["p"] / shape.d_model,
        "in_d_all": meet["a"] / shape.d_model,
    }


def _lengths(meeting: float, s: int, log: bool) -> np.ndarray:
    """Return the lengths at which the lines are drawn, with the chosen one and the meeting point among them."""
    if log:
        ends = min(LENGTHS[0], s, meeting), max(LENGTHS[-1], s, meeting)
        return np.unique(np.rint(np.geomspace(*ends, POINTS))).clip(1)
    return np.unique(np.rint(np.linspace(1, max(1.5 * s, 1.6 * meeting), POINTS)))


def _curves(part: Step, shape: Shape, meeting: float) -> None:
    chosen = st.session_state
    log = chosen.cost_axes == "log"
    s = _lengths(meeting, chosen.cost_s, log)
    costs = [layer_cost(shape, int(length), causal_skipped=chosen.cost_skip) for length in s]
    rows = {
        "attention": [cost.attention for cost in costs],
        "projections": [cost.projections for cost in costs],
    }
    if chosen.cost_mlp:
        rows["MLP"] = [cost.mlp for cost in costs]
        rows["projections and MLP"] = [cost.projections + cost.mlp for cost in costs]
    model = chosen_model()
    name = model.name if model else f"d = {shape.d_model:,}"
    figure = cost_curves(
        [Curve(label, s, values) for label, values in rows.items()],
        y_name="multiply-adds of one layer",
        log=log,
        marks=_marks(part, shape, log),
        marked=chosen.cost_s,
        title=f"One layer of {name}" if model else f"One layer, {name}",
        theme=theme(),
        height=520,
    )
    table = {"tokens": s.astype(int), **rows}
    charts.draw(figure, "cost-curves", f"cost {name}", table, about=OF_NOTHING)


def _marks(part: Step, shape: Shape, log: bool) -> list[Mark]:
    """Return where attention equals the projections and, with the MLP, where it equals both together."""
    chosen, one = st.session_state, layer_cost(shape, 1)
    rests = {False: ("projections", one.projections), True: ("projections and MLP", one.projections + one.mlp)}
    marks = []
    for with_mlp in (False, True) if chosen.cost_mlp and log else (chosen.cost_mlp,):
        meeting = meeting_point(shape, with_mlp=with_mlp, causal_skipped=chosen.cost_skip)
        rest, cost = rests[with_mlp]
        text = part.say("meet_mark", rest=rest, meeting=meeting, in_d=meeting / shape.d_model)
        marks.append(Mark(meeting, meeting * cost, text, above=with_mlp == chosen.cost_mlp))
    return marks


def _table(shape: Shape, cost: LayerCost) -> str:
    names = {"projections": cost.projections, "attention": cost.attention, "MLP": cost.mlp, "together": cost.total}
    rows = [
        (name, quantity(value), per_cent(value / cost.total).replace(" ", "\u00a0"), quantity(value * shape.n_layers))
        for name, value in names.items()
    ]
    s = st.session_state.cost_s
    layers = "1 layer" if shape.n_layers == 1 else f"all {shape.n_layers} layers"
    return table(f"| at s = {s:,} | one layer | share | {layers} |", rows)
