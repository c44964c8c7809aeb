"""All heads of a layer as lines between the tokens."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.head_lines.head_lines import head_lines
from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import TokenMap, of_head
from attnviz.app.show.facts import of_view
from attnviz.app.show.files import files_row
from attnviz.app.show.lesson import folded
from attnviz.core.heads.strong_lines import LEAST
from attnviz.core.maps.choice import MapChoice

HOW_TO_READ = (
    "Left is who looks, right is who is looked at. Each head of the layer has a colour and a dash, the same in every "
    "layer; the wider and stronger its line, the larger the weight. The table holds all weights of the selected head."
)


def lines(visit: Visit) -> None:
    """Draw every weight of the selected layer's heads that is large enough as a line."""
    st.markdown(f"#### All heads of layer {visit.layer} as lines")
    choice = map_choice(visit)
    part = choice.part
    queries, keys = visit.head_after.tile(part, part).tokens
    weights = _layer_weights(visit, choice)
    head_lines(
        [token.label for token in queries],
        [token.label for token in keys],
        np.clip(weights, 0, 1),
        start=part.start,
        selected=visit.head,
        shown=_shown(len(weights)),
        on_shown=_keep,
        key="head-lines",
    )
    _say_gone(visit, len(weights))
    _say_outside(visit, part, weights)
    title = "How to read it, numbers, files"
    folded(title, "head-lines-table", partial(_table, visit, choice, weights), small=True)


def _layer_weights(visit: Visit, choice: MapChoice) -> NDArray[np.float32]:
    """Return (heads, queries, keys) of the tokens that are drawn; a line can't be less than nothing: no difference."""
    head, part = visit.head_in(choice.view), choice.part
    return head.trace.layer_weights(visit.layer, part=visit.part, queries=part, switches=head.switches)[..., part]


def _shown(n_heads: int) -> list[int] | None:
    """Return which heads of the visitor's choice this model has, all of them (None) if it has none."""
    chosen = st.session_state.lines_heads
    if chosen is None:
        return None
    kept = sorted({head for head in chosen if head < n_heads})
    return kept if kept or not chosen else None


def _say_gone(visit: Visit, n_heads: int) -> None:
    """Say which heads were asked for that this layer doesn't have."""
    gone = sorted({head for head in st.session_state.lines_heads or () if head >= n_heads})
    if gone:
        st.caption(f"Layer {visit.layer} has heads 0 to {n_heads - 1}: there is no head {' or '.join(map(str, gone))}.")


def _keep(shown: list[int] | None) -> None:
    st.session_state.lines_heads = shown


def _say_outside(visit: Visit, part: slice, weights: NDArray[np.float32]) -> None:
    """Say how much weight lies on no key that is drawn."""
    outside = 1 - float(weights.sum(axis=-1, dtype=np.float64).mean())
    if part.stop - part.start < visit.n_tokens:
        st.caption(
            f"Tokens {part.start} to {part.stop - 1} of {visit.n_tokens:,}; choose another part above the map. "
            f"{100 * outside:.0f} % of the layer's weight lies on tokens outside this part."
        )
    elif outside > 1e-3:
        st.caption(f"{100 * outside:.0f} % of the layer's weight goes to learned sinks, which are no tokens.")


def _table(visit: Visit, choice: MapChoice, layer_weights: NDArray[np.float32]) -> None:
    """Show all weights of the selected head; the files hold those of all heads of the layer."""
    st.caption(plain(f"{HOW_TO_READ} Here that is {visit.name}; weights below {LEAST} are in it too."))
    shown = of_head(visit.head_in(choice.view).tile(choice.part, choice.part))
    st.dataframe(dict(shown.table()), hide_index=True, height=300, key="head-lines-numbers")
    columns, about = _all_heads(shown, layer_weights), of_view(visit, choice.view)
    files_row(None, "head-lines", f"layer {visit.layer} {visit.info.name}", columns, about=about)


def _all_heads(shown: TokenMap, weights: NDArray[np.float32]) -> dict[str, list[Any]]:
    """Return a line for each head and query, and a column for each key; empty where the mask forbids."""
    tables = [replace(shown, values=values).table() for values in weights]
    heads = [head for head in range(len(weights)) for _ in shown.queries]
    return {"head": heads} | {name: [x for table in tables for x in table[name]] for name in tables[0]}
