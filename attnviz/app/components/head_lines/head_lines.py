"""All heads of a layer as lines between two columns of tokens, in a colour and a dash each. Needs streamlit."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.bridge.bridge import pack, read_asset, read_script, send_note, settle_in_session
from attnviz.app.components.token_strip.token_strip import FULL
from attnviz.core.heads.strong_lines import LEAST, shares_left_out, worth_a_line

HTML = """
<div class="strip head-lines">
  <div class="pills" role="group" aria-label="Heads shown"></div>
  <p class="line" dir="ltr"></p>
  <div class="content"></div>
  <p class="left-out" aria-live="polite"></p>
</div>
"""


def head_lines(
    queries: Sequence[str],
    keys: Sequence[str],
    weights: NDArray[np.float32],
    *,
    start: int = 0,
    selected: int,
    shown: Collection[int] | None = None,
    on_shown: Callable[[list[int] | None], None],
    key: str,
) -> None:
    """Draw a line for each (head, query, key) with a weight of at least 0.05.

    Pointing, walking with the arrow keys, pinning a token and hiding the first token's lines happen in the browser.
    Showing or hiding a head draws at once there too, and then tells Python. Only new labels or weights are sent again.

    Args:
        queries: a label for each query; a leading "·" stands for a space and is drawn faintly.
        keys: a label for each key.
        weights: (heads, queries, keys) from 0 to 1; rows sum to 1 or, where keys are left out, to less.
        start: index in the text of the first query and key.
        selected: the head that the rest of the page shows.
        shown: the heads whose lines are drawn; None: all. The visitor's later choice holds until this changes.
        on_shown: called before the next run of the page with the heads that the visitor shows, None for all of them.
        key: the component's name, unique on the page.

    Raises:
        ValueError: shapes that don't fit, weights outside 0 to 1, or a head that isn't there.
    """
    n_heads = _check(weights, (len(queries), len(keys)), [selected, *(shown or ())])
    data = {"key": key, "queries": list(queries), "keys": list(keys), **_lines_of(weights, start)}

    def tell() -> None:
        on_shown(st.session_state[key]["shown"]["value"])

    with st.container(gap=None):
        result = _lines(key=key, data=data, on_shown_change=tell)
        given = None if shown is None else sorted(shown)
        settled = settle_in_session(key, given, result.get("shown"), about=n_heads)
        send_note(key, "heads", {"shown": settled.value, "seen": settled.seen, "selected": int(selected)})


def _lines_of(weights: NDArray[np.float32], start: int) -> dict[str, Any]:
    """Return the weights that are worth a line, and how much of each head lies on those that aren't."""
    first = 0 if start == 0 else None
    thin, sink = shares_left_out(weights, first=first)
    drawn = np.where(worth_a_line(weights), weights, 0)
    return {
        "weights": pack(np.round(drawn * FULL).clip(0, FULL).astype(np.uint16)),
        "start": start,
        "first": first,
        "least": LEAST,
        "thin": [round(float(share), 4) for share in thin],
        "sink": [round(float(share), 4) for share in sink],
    }


def _check(weights: NDArray[np.float32], shape: tuple[int, int], heads: Sequence[int]) -> int:
    """Return the number of heads, or say what doesn't fit."""
    if weights.ndim != 3 or weights.shape[1:] != shape or 0 in weights.shape:
        raise ValueError(f"weights must have shape (heads, {shape[0]}, {shape[1]}), got {weights.shape}")
    if not (weights.min() >= 0 and weights.max() <= 1.0001):
        raise ValueError(f"weights must lie between 0 and 1, got {weights.min():g} to {weights.max():g}")
    for head in heads:
        if not 0 <= head < len(weights):
            raise ValueError(f"heads are 0 to {len(weights) - 1}, got {head}")
    return len(weights)


_lines = st.components.v2.component(
    "attnviz_head_lines",
    html=HTML,
    css=read_asset("token_strip/token_strip.css") + read_asset("head_lines/head_lines.css"),
    js=read_script("bridge/token_lines.js", "head_lines/head_lines.js"),
)
