"""Step 2, scores: q·k for every pair, and one cell of it taken apart."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.app.components.cell_picker.cell_picker import cell_picker
from attnviz.app.scratch.numbers import Numbers, numbers_row, pick
from attnviz.app.scratch.trail import trail
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.lesson import Step, folded, guess, minus, right_aligned
from attnviz.core.attention.products import fewest_products, row_in_steps
from attnviz.figures import component_bars
from attnviz.figures.theme import number

SHARE = 0.9  # of the sum, that the fewest products reach
MOST_ROWS = 15  # of the table, before it scrolls


def draw(visit: Visit, step: Step) -> None:
    """Draw the scores, the products behind the followed one, and its row on the way to weights."""
    numbers = numbers_row(visit)
    if numbers is None:
        return
    query, key = numbers.cell
    products = numbers.q[query] * numbers.k[key]
    few = fewest_products(products, SHARE)
    shown = guess(step, **_answer(products, few))
    trail(numbers, "weight", n=3)
    st.caption(step.say("click"))
    left, right = st.columns(2, gap="medium")
    with left:
        _map(visit, numbers)
    with right:
        _products(visit, numbers, products, few if shown else few[:0])
    folded(step.say("row_title"), "scores-row", partial(_row, step, numbers))


def _answer(products: np.ndarray, few: np.ndarray) -> dict[str, str | int]:
    """Return the answer's numbers: how many products make most of the sum, and what they and the others come to."""
    reached, total = products[few].sum(), products.sum()
    sums = {"few": number(reached), "rest": number(total - reached), "total": number(total)}
    return {"n_few": len(few), "side": _side(products), "width": len(products), **sums}


def _side(products: np.ndarray) -> str:
    """Return the sign of the sum, which is that of the products that reach it first."""
    return "negative" if products.sum() < 0 else "positive"


def _map(visit: Visit, numbers: Numbers) -> None:
    drawn = numbers.map_of(numbers.scores[:, numbers.shown])
    look = {"kind": "scores", "title": f"Scores of {numbers.name}", "theme": visit.theme, "height": 520}
    name = f"scores {numbers.name}"
    charts.draw_map(drawn, "lesson-scores", name, about=numbers.about, marked=[numbers.cell], **look)
    cell_picker("lesson-scores", numbers.shown.start, on_pick=pick, key="pick-score")


def _products(visit: Visit, numbers: Numbers, products: np.ndarray, few: np.ndarray) -> None:
    figure = component_bars(
        products,
        highlighted=few.tolist(),
        names=(f"the largest {_side(products)}, {len(few)} of them", "the others"),
        title="The {width} products of “{query}” and “{key}”".format(width=len(products), **numbers.pair),
        theme=visit.theme,
        height=520,
    )
    query, key = numbers.cell
    table = {"component": np.arange(len(products)), "q": numbers.q[query], "k": numbers.k[key], "product": products}
    charts.draw(figure, "lesson-products", f"products {numbers.name}", table, about=numbers.about)


def _row(step: Step, numbers: Numbers) -> None:
    """Show the followed query's row, key by key, from product to weight."""
    st.markdown(step.say("row", scale=number(1 / numbers.scale), **numbers.pair))
    steps = row_in_steps(numbers.scores[numbers.row])
    seen = np.flatnonzero(numbers.allowed[numbers.row])
    seen = seen[(seen >= numbers.shown.start) & (seen < numbers.shown.stop)]
    columns = {
        "q · k": [f"{product:.2f}" for product in numbers.k[seen] @ numbers.q[numbers.cell[0]]],
        "score": [f"{score:.3f}" for score in steps.scores[seen]],
        "exp(score − largest)": [f"{power:.4f}" for power in steps.exps[seen]],
        "weight": [f"{weight:.4f}" for weight in numbers.weights[numbers.row][seen]],
    }
    keys = [f"{numbers.key_labels[i]} ({i})" + " ◀" * int(i == numbers.cell[1]) for i in seen]
    st.dataframe(
        {"key": keys} | {name: [minus(cell) for cell in cells] for name, cells in columns.items()},
        hide_index=True,
        height="content" if len(seen) <= MOST_ROWS else 440,
        column_config=right_aligned(columns),
        key="lesson-row",
    )
    st.caption(step.say("caution"))
