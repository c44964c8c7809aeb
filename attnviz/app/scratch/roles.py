"""Step 1, three roles: the queries, keys and values of one head."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import Numbers, numbers_row
from attnviz.app.scratch.trail import sizes
from attnviz.app.shell.visit import Visit
from attnviz.app.show import charts
from attnviz.app.show.lesson import Step, folded, guess
from attnviz.core.export.table_files import Columns
from attnviz.figures import component_map

MOST_COMPONENTS = 256  # that are drawn
COLOURED = 0.97  # of the components have colours of their own; a few that are far larger would leave the rest dark


def draw(visit: Visit, step: Step) -> None:
    """Draw q, k and v as maps of tokens by components."""
    numbers = numbers_row(visit)
    if numbers is None:
        return
    (n_queries, width), n_keys = numbers.q.shape, len(numbers.k)
    n_numbers = numbers.q.size + numbers.k.size + numbers.v.size
    guess(step, n_queries=n_queries, n_keys=n_keys, width=width, n_numbers=n_numbers)
    sides = (
        ("Queries", numbers.q, numbers.query_labels, numbers.cell[0]),
        ("Keys", numbers.k, numbers.key_labels, numbers.cell[1]),
        ("Values", numbers.v, numbers.key_labels, numbers.cell[1]),
    )
    for column, side in zip(st.columns(3, gap="medium"), sides, strict=True):
        with column:
            _vectors(visit, numbers, *side)
    sizes(numbers)
    st.caption(_followed(visit, step, numbers))
    if width > MOST_COMPONENTS:
        st.caption(step.say("cut", drawn=MOST_COMPONENTS, width=width))
    folded(step.say("more_title"), "roles-more", partial(_more, visit, step, numbers))


def _followed(visit: Visit, step: Step, numbers: Numbers) -> str:
    """Say what the line above means, and which head this is."""
    if not numbers.real:
        return step.say("followed_random")
    return f"{step.say('followed')} {step.say('naming', name=visit.name, head=visit.head, layer=visit.layer)}"


def _more(visit: Visit, step: Step, numbers: Numbers) -> None:
    st.markdown(step.say("names"))
    if numbers.real:
        st.markdown(_shared(visit, step))


def _vectors(
    visit: Visit, numbers: Numbers, title: str, values: NDArray[np.floating], labels: Sequence[str], token: int
) -> None:
    part = slice(numbers.shown.start, min(numbers.shown.stop, len(labels)))
    drawn = values[part, :MOST_COMPONENTS]
    figure = component_map(
        drawn,
        labels[part],
        value_range=float(np.quantile(np.abs(drawn), COLOURED)) or None,
        bar_title=f"component of {title.lower()}",
        start=part.start,
        marked=[token] if part.start <= token < part.stop else [],
        title=title,
        theme=visit.theme,
    )
    name = title.lower()
    table = partial(vectors_table, values[part], labels[part])
    charts.draw(figure, f"roles-{name}", f"{name} {numbers.name}", table, about=numbers.about)


def vectors_table(values: NDArray[np.floating], labels: Sequence[str]) -> Columns:
    """Return a column of tokens and one of each component."""
    rounded = np.asarray(values, np.float64).round(4)
    columns = {str(index): rounded[:, index] for index in range(min(rounded.shape[1], MOST_COMPONENTS))}
    return {"token": list(labels), **columns}


def _shared(visit: Visit, step: Step) -> str:
    """Say which heads share these keys and values."""
    group = visit.info.n_heads // visit.info.n_kv_heads
    first = visit.head // group * group
    if group == 1:
        return step.say("own", n_heads=visit.info.n_heads)
    return step.say("shared", first=first, last=first + group - 1, layer=visit.layer, n_kv_heads=visit.info.n_kv_heads)
