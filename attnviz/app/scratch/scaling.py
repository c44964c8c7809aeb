"""Step 4, scaling: how large q·k gets, and what that does to the softmax and to the gradient, random and real."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.scratch.numbers import random_boxes, real_numbers
from attnviz.app.scratch.trail import trail
from attnviz.app.shell import cache
from attnviz.app.shell.controls import head
from attnviz.app.shell.markdown import plain, table
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import OF_NOTHING, Facts, at_rest
from attnviz.app.show.lesson import Step, folded, guess, in_powers, per_cent
from attnviz.core.export.table_files import Columns
from attnviz.core.softmax.row_sharpness import Histogram, histogram, saturated_share
from attnviz.core.softmax.score_size import (
    Curves,
    Rows,
    Scaling,
    head_scaling,
    kurtosis,
    normal_density,
    product_density,
    random_scaling,
    row_spread,
    scaling_curves,
)
from attnviz.core.threads import half_the_cores
from attnviz.figures import Line, gradient_histogram, saturation_histogram, score_histogram, share_curves
from attnviz.figures.look import LookOptions

NAMES = ("with 1/√d", "without")
OWN_NAMES = ("with its factor", "without")
WIDTHS = tuple(2**power for power in range(11))  # 1 to 1,024
STOPS = sorted({*WIDTHS, *(3 * width // 2 for width in WIDTHS[1:-1])})  # of the slider
COUNTS = tuple(2**power for power in range(1, 10))  # 2 to 512
NORMAL_FROM = 16  # below, the distribution of q·k is visibly not normal
HEIGHT = 310  # of a picture, in px
FEW, MANY = 16, 40  # bins for the rows of one text, and of many
SMALLEST = 1e-4  # left end of the axis of gradients, in units of the median with the factor


def draw(visit: Visit, step: Step) -> None:
    """Draw random numbers with and without the factor, and below them the chosen head's own."""
    with st.container(horizontal=True, vertical_alignment="top", gap="medium", key="numbers-row"):
        _width_slider()
        random_boxes(["seed"])
    n_tokens, d, seed = (st.session_state[name] for name in ("rows", "width", "seed"))
    with half_the_cores():
        found = cache.results().get(("scaling", n_tokens, d, seed), lambda: random_scaling(n_tokens, d, seed))
    guess(step, n_tokens=n_tokens, **_answer(found, d))
    _spread(visit, step, found, d)
    folded(step.say("numbers_title"), "scaling-gradients", partial(_weights_and_gradients, visit, step, found))
    folded(step.say("real_title"), "scaling-real", partial(_real, visit, step))


def _weights_and_gradients(visit: Visit, step: Step, found: Scaling) -> None:
    """Draw the largest weights and the gradients, as histograms, a table, and curves over the width or the tokens."""
    n_tokens, d = st.session_state.rows, st.session_state.width
    random_boxes(["rows"])
    st.markdown(step.say("gradient", **_gradients(found)) if d >= NORMAL_FROM else step.say("gradient_small"))
    _sharpness(visit, found, NAMES, "random")
    st.caption(step.say("sharpness"))
    counted, said = st.columns(2, gap="medium")
    counted.markdown(_table(found, NAMES))
    said.caption(step.say("counted", n_rows=f"{len(found.scaled.maxima):,}", n_tokens=n_tokens))
    said.caption(step.say("kurtosis", kurtosis=kurtosis(found.products), expected=3 + 6 / d))
    _curves(visit, step)


def _width_slider() -> None:
    """Show the width d as a slider; a width between its stops comes from the address or from another step."""
    st.session_state["width-slider"] = st.session_state.width
    st.select_slider(
        "Width d",
        sorted({*STOPS, st.session_state.width}),
        key="width-slider",
        format_func=lambda d: f"{d:,}",
        on_change=_take_width,
    )


def _take_width() -> None:
    st.session_state.width = st.session_state["width-slider"]


def _answer(found: Scaling, d: int) -> dict[str, Any]:
    """Return the answer's numbers: how many rows saturate, and how far apart two products, and their weights, are."""
    gap = math.sqrt(2 * d)
    ratio = float(f"{math.exp(gap):.2g}")
    told = in_powers(ratio) if ratio >= 1e6 else f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
    rows = {"n_rows": f"{len(found.scaled.maxima):,}", "ratio": told, "gap": gap, "least": math.exp(math.sqrt(2))}
    shares = {"without": found.unscaled.above(0.99), "scaled": found.scaled.above(0.99)}
    return rows | {name: per_cent(share) for name, share in shares.items()}


def _gradients(found: Scaling) -> dict[str, float]:
    scaled, unscaled = found.scaled.query_gradient, found.unscaled.query_gradient
    return {
        "mean_scaled": float(scaled.mean()),
        "mean_unscaled": float(unscaled.mean()),
        "median_scaled": float(np.median(scaled)),
        "median_unscaled": float(np.median(unscaled)),
        "nothing": found.nothing(found.unscaled),
        "tenfold": found.tenfold(found.unscaled),
    }


def _spread(visit: Visit, step: Step, found: Scaling, d: int) -> None:
    """Draw random scores without the factor and with it, beside what theory says."""
    root = math.sqrt(d)
    _scores(visit, found, root / 5, 5 * root, "random", partial(_densities, d))
    st.caption(step.say("spread", d=d, root=root))


def _scores(
    visit: Visit,
    found: Scaling,
    bin_width: float,
    end: float,
    key: str,
    densities: Callable[[float], Sequence[tuple[str, np.ndarray, np.ndarray]]] = lambda factor: (),
) -> None:
    """Draw two histograms on one and the same axis, from -end to end: q·k, and q·k times the factor."""
    n_bins = 2 * math.ceil(float(np.abs(found.products).max()) / bin_width) or 2
    edges = np.linspace(-n_bins / 2, n_bins / 2, n_bins + 1) * bin_width
    counts, _ = np.histogram(found.products, edges)
    scaled = "q·k / √d" if key == "random" else f"q·k times {found.factor:.3g}"
    columns = st.columns(2, gap="medium")
    for column, name, factor, second in zip(columns, ("q·k", scaled), (1.0, found.factor), (True, False), strict=True):
        figure = score_histogram(
            counts,
            edges * factor,
            densities(factor),
            unit="products" if second else "scores",
            value_name=name,
            value_range=(-end, end),
            second=second,
            title=f"{name}: standard deviation {found.products.std() * factor:.3g}",
            theme=visit.theme,
            height=HEIGHT,
        )
        table = {"from": (edges * factor)[:-1].round(4), "to": (edges * factor)[1:].round(4), "scores": counts}
        place = f"{key}-{'without' if second else 'with'}"
        with column:
            charts.draw(figure, f"scores-{place}", f"scores {place}", table, about=_facts(visit, key))


def _densities(d: int, factor: float) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the exact density of the scores times a factor, and the normal one where it is near."""
    x = np.linspace(-5, 5, 200) * math.sqrt(d)  # an even number of points: 0, where d = 1 is infinite, isn't one
    curves = [("theory", x * factor, product_density(x, d) / factor)]
    if d >= NORMAL_FROM:
        curves.append(("normal curve", x * factor, normal_density(x, math.sqrt(d)) / factor))
    return curves


def _sharpness(visit: Visit, found: Scaling, names: tuple[str, str], key: str) -> None:
    """Draw the largest weight of each row and the gradient that reaches its query, with the factor and without."""
    sides = (found.scaled, found.unscaled)
    bins = MANY if len(found.scaled.maxima) > 100 else FEW
    edges = np.logspace(np.log10(SMALLEST), 2.5, bins + 1)
    counts = [np.histogram(np.clip(found.relative(rows), edges[0], edges[-1]), edges)[0] for rows in sides]
    left, right = st.columns(2, gap="medium")
    with left:
        _maxima(visit, [histogram(rows.maxima, bins=bins) for rows in sides], names, key)
    with right:
        _gradients_drawn(visit, [Histogram(edges, count, 0) for count in counts], names, key)


def _maxima(visit: Visit, sides: Sequence[Histogram], names: tuple[str, str], key: str) -> None:
    a, b = sides
    look: LookOptions = {"title": "Largest weight of each row", "theme": visit.theme, "height": HEIGHT}
    figure = saturation_histogram(a.counts, b.counts, a.edges, names=names, **look)
    table = partial(_histogram_table, a, b, names)
    charts.draw(figure, f"maxima-{key}", f"row maxima {key}", table, about=_facts(visit, key))


def _gradients_drawn(visit: Visit, sides: Sequence[Histogram], names: tuple[str, str], key: str) -> None:
    a, b = sides
    figure = gradient_histogram(
        a.counts,
        b.counts,
        a.edges,
        value_name=f"size of ∂L/∂q, in units of its median {names[0]}",
        names=names,
        left_out="Smaller ones are in the first bar.",
        log_values=True,
        title="Gradient that reaches each query",
        theme=visit.theme,
        height=HEIGHT,
    )
    table = partial(_histogram_table, a, b, names)
    charts.draw(figure, f"gradient-{key}", f"gradient {key}", table, about=_facts(visit, key))


def _facts(visit: Visit, key: str) -> Facts:
    return at_rest(visit) if key == "real" else OF_NOTHING


def _histogram_table(a: Histogram, b: Histogram, names: tuple[str, str]) -> Columns:
    return {"from": a.edges[:-1].round(5), "to": a.edges[1:].round(5), names[0]: a.counts, names[1]: b.counts}


def _table(found: Scaling, names: tuple[str, str]) -> str:
    sides = (found.scaled, found.unscaled)
    measures = {
        "rows with a largest weight above 0.9": [f"{rows.above(0.9):.0%}" for rows in sides],
        "above 0.99": [f"{rows.above(0.99):.0%}" for rows in sides],
        "size of ∂L/∂q, mean": [f"{rows.query_gradient.mean():.2f}" for rows in sides],
        "median": [f"{np.median(rows.query_gradient):.2f}" for rows in sides],
        "rows with less than 1 % of the usual": [f"{found.nothing(rows):.0%}" for rows in sides],
        "with more than ten times the usual": [f"{found.tenfold(rows):.0%}" for rows in sides],
    }
    rows = [(name, *cells) for name, cells in measures.items()]
    return table(f"| | {names[0]} | {names[1]} |", rows)


def _curves(visit: Visit, step: Step) -> None:
    """Draw how the shares of the table change with the width, or with the number of tokens."""
    over = choose("The same as curves over", "curves", {"width": "the width d", "tokens": "the number of tokens T"})
    n_tokens, d, seed = (st.session_state[name] for name in ("rows", "width", "seed"))
    shapes = tuple((n_tokens, width) for width in WIDTHS) if over == "width" else tuple((n, d) for n in COUNTS)
    with half_the_cores():
        found = cache.results().get(("scaling curves", shapes, seed), lambda: scaling_curves(shapes, seed))
    x = WIDTHS if over == "width" else COUNTS
    x_name, marked = ("width d", d) if over == "width" else ("tokens T", n_tokens)
    sharp = _lines(found, ("above_90", "above_99"), ("largest weight > 0.9", "largest weight > 0.99"))
    erratic = _lines(found, ("nothing", "tenfold"), ("gradient below 1 % of usual", "gradient above ten times usual"))
    left, right = st.columns(2, gap="medium")
    for column, name, title, lines in (
        (left, "sharp", "Rows with nearly all weight on one key", sharp),
        (right, "erratic", "Rows with hardly any gradient or too much", erratic),
    ):
        figure = share_curves(x, lines, title=title, height=400, x_name=x_name, marked=marked, theme=visit.theme)
        table = {x_name: x, **{line.name: np.asarray(line.shares).round(4) for line in lines}}
        with column:
            charts.draw(figure, f"curves-{name}", name, table, about=OF_NOTHING)
    st.caption(step.say("curves"))


def _lines(found: Curves, measures: tuple[str, str], names: tuple[str, str]) -> list[Line]:
    return [
        Line(f"{name}, {NAMES[side]}", getattr(found, measure)[side], second=side == 1, dashed=dashed)
        for side in (1, 0)
        for measure, name, dashed in zip(measures, names, (False, True), strict=True)
    ]


def _real(visit: Visit, step: Step) -> None:
    """Draw the same for the head and the text that the visitor chose."""
    st.markdown(f"#### {visit.name} on your text")
    with st.container(width=260):
        head(visit.info)
    found = _own_scaling(visit)
    if isinstance(found, str):
        st.info(plain(found))
        return
    trail(real_numbers(visit), "score")
    end = 1.05 * float(np.abs(found.products).max())
    _scores(visit, found, end / 16, end, "real")
    _sharpness(visit, found, OWN_NAMES, "real")
    counted, said = st.columns(2, gap="medium")
    counted.markdown(_table(found, OWN_NAMES))
    spread = float(np.median(row_spread(visit.head_before.scores)))
    said.caption(step.say("real", spread=spread, at_rest=_at_rest(visit, found.unscaled)))
    said.markdown(step.say("wrong_temperature", factor=found.factor))


def _own_scaling(visit: Visit) -> Scaling | str:
    """Return the scores of the chosen head with its factor and without, or a sentence why it has none."""
    reason = visit.info.cannot.get("scores") or visit.info.cannot.get("scaled")
    if reason:
        return reason
    key = ("head scaling", visit.choice, visit.text, visit.part, visit.layer, visit.head)
    try:
        return cache.results().get(key, lambda: head_scaling(visit.head_before))
    except ValueError as error:
        return f"Not here: {error}."


def _at_rest(visit: Visit, rows: Rows) -> float:
    """Return the share of rows that have more than 0.99 on the first token or a special one without the factor."""
    resting = np.array([token.index == 0 or token.special for token in visit.head_before.tokens[1]])  # (keys,)
    return saturated_share(rows.maxima, resting[rows.strongest]).at_rest
