"""The sentence as text: point at a token and see, in the browser, where it looks."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.save_picture.save_picture import save_picture
from attnviz.app.components.token_strip.token_strip import Mask, StripLook, StripTokens, token_strip
from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell import palette
from attnviz.app.shell.examples import example_of
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose
from attnviz.core.trace.head import Head


def sentence_strip(visit: Visit) -> None:
    """Draw the tokens with the selected head's weights under the pointer, or two columns with lines."""
    _as_text_or_lines(visit)
    choice = map_choice(visit)
    part = choice.part
    head = visit.head_in(choice.view).tile(part)
    weights, allowed = head.weights[:, part], head.allowed[:, part]
    queries, keys = head.tile(part, part).tokens
    two_texts = visit.part == "cross"
    token_strip(
        StripTokens(
            [token.label for token in queries],
            texts=[token.text for token in queries],
            special=[token.special for token in queries],
            keys=[token.label for token in keys] if two_texts else None,
            start=part.start,
        ),
        np.clip(weights, 0, 1),
        masked=_mask(allowed),
        look=StripLook("lines" if two_texts else st.session_state.strip, palette=palette.chosen()),
        selected=_pointed_at(visit, choice.query, part),
        key="strip-tokens",
    )
    _say_outside(head, part)
    if not two_texts:
        st.caption(
            plain(
                "Point at a token, or walk with Tab and the arrow keys: the stronger another token's colour, the more "
                f"{visit.name} looks at it from there. Click to keep it."
            )
        )


def _as_text_or_lines(visit: Visit) -> None:
    """Show what changes the drawing, and a button that saves it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        modes = {"shade": "text", "lines": "two columns with lines"}
        choose("Draw the sentence as", "strip", modes, hide_label=True)
        save_picture("strip-tokens", f"attnviz tokens {visit.name}", key="save-strip", html=True)


def _say_outside(head: Head, part: slice) -> None:
    """Say how much weight of a part's rows lies on keys outside of it."""
    n_keys, rows = len(head.tokens[1]), head.weights
    if part.stop - part.start < n_keys:
        outside = float(rows.sum(axis=1, dtype=np.float64).mean() - rows[:, part].sum(axis=1, dtype=np.float64).mean())
        st.caption(
            f"Tokens {part.start} to {part.stop - 1} of {n_keys:,}; choose another part above the map. "
            f"{outside:.0%} of these tokens' weight lies on tokens that aren't among them."
        )


def _pointed_at(visit: Visit, query: int | None, part: slice) -> int | None:
    """Return the query to show while the pointer is elsewhere: the chosen cell's, the example's, or the last."""
    if query is None:
        example = example_of(visit.text, visit.choice.name, visit.layer, visit.head)
        words = [token.index for token in visit.after.tokens_of(visit.part)[0][part] if not token.special]
        query = example.cell(visit.rest)[0] if example else (words or [part.start])[-1]
    n_queries = len(visit.after.tokens_of(visit.part)[0])
    return query - part.start if part.start <= query < min(part.stop, n_queries) else None


def _mask(allowed: NDArray[np.bool_]) -> Mask:
    if allowed.all():
        return None
    square = allowed.shape[0] == allowed.shape[1]
    return "causal" if square and np.array_equal(allowed, np.tri(len(allowed), dtype=bool)) else ~allowed
