"""A sentence with an arc from its pronoun to each word it looks at, as wide as the weight. Needs streamlit."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.components.bridge.bridge import read_asset, read_script

HTML = """
<div class="arcs">
  <div class="name" hidden></div>
  <div class="stage">
    <svg class="drawing" aria-hidden="true">
      <g class="grounds"></g>
      <g class="others"></g>
      <g class="candidates"></g>
    </svg>
    <div class="text" dir="auto" role="group"></div>
    <div class="numbers" aria-hidden="true"></div>
    <div class="tip" aria-hidden="true" hidden></div>
  </div>
</div>
"""


def sentence_arcs(
    words: Sequence[str],
    weights: Sequence[float],
    *,
    pronoun: int,
    candidates: Sequence[Sequence[int]],
    answer: int | None,
    gaps: Sequence[str] | None = None,
    masked: Sequence[bool] | None = None,
    highlight: Collection[int] | None = None,
    names: Sequence[str] | None = None,
    key: str,
    on_pick: Callable[[int], None] | None,
    label: str = "",
) -> None:
    """Draw a sentence as it was typed, with an arc from the pronoun to every word that it gives more than 0.005.

    Arcs to candidates have the candidate's colour, all others are grey. Walking with the arrow keys and pointing happen
    in the browser. New weights are drawn over the same words, so the focus stays where it was.

    Args:
        words: words and punctuation marks in their order, at most some 80.
        weights: (words,) what the pronoun gives to each word, from 0 to 1.
        pronoun: the word that looks.
        candidates: the words of each candidate; words side by side are marked as one.
        answer: the candidate that is right, None if nobody said.
        gaps: the white space in front of each word, as in the text; None: one space.
        masked: True for each word that the pronoun may not see.
        highlight: words to outline, such as those that differ from another sentence's.
        names: what to call each candidate; None: by its words.
        key: the component's name, unique on the page.
        on_pick: called with a word's index before the next run of the page when the visitor clicks it or presses Enter
            or space on it; None: words can't be picked.
        label: whose weights these are, such as "L9 H4", written above the sentence.

    Raises:
        ValueError: lists of different lengths, a weight outside 0 to 1, or an index of no word.
    """
    values = np.asarray(weights, dtype=np.float64)
    _check_lengths(len(words), weights=weights, gaps=gaps, masked=masked)
    if not np.all((values >= 0) & (values <= 1.0001)):
        raise ValueError(f"weights must lie between 0 and 1, got {values.min():g} to {values.max():g}")
    _check_places(len(words), [pronoun, *(word for group in candidates for word in group), *(highlight or ())])
    _check_candidates(len(candidates), answer, names)
    data = {
        "words": list(words),
        "gaps": ["", *[" "] * (len(words) - 1)] if gaps is None else list(gaps),
        "weights": [round(weight, 5) for weight in values.tolist()],
        "pronoun": int(pronoun),
        "candidates": [sorted(int(word) for word in group) for group in candidates],
        "answer": None if answer is None else int(answer),
        "names": None if names is None else list(names),
        "masked": [] if masked is None else [place for place, hidden in enumerate(masked) if hidden],
        "highlight": sorted(int(word) for word in highlight or ()),
        "label": label,
        "pickable": on_pick is not None,
    }
    _mount(key, data, on_pick)


def _mount(key: str, data: dict[str, Any], on_pick: Callable[[int], None] | None) -> None:
    def tell() -> None:
        word = st.session_state[key]["pick"]
        if word is not None and on_pick is not None:
            on_pick(int(word))

    _sentence(key=key, data=data, on_pick_change=tell)


def _check_lengths(n_words: int, **lists: Sequence[Any] | None) -> None:
    if not n_words:
        raise ValueError("expected at least one word, got none")
    for name, values in lists.items():
        if values is not None and len(values) != n_words:
            raise ValueError(f"{name} must have {n_words} entries, one a word, got {len(values)}")


def _check_places(n_words: int, places: Sequence[int]) -> None:
    for place in places:
        if not 0 <= place < n_words:
            raise ValueError(f"words are 0 to {n_words - 1}, got {place}")


def _check_candidates(n_candidates: int, answer: int | None, names: Sequence[str] | None) -> None:
    if answer is not None and not 0 <= answer < n_candidates:
        raise ValueError(f"answer must be the index of one of {n_candidates} candidates or None, got {answer}")
    if names is not None and len(names) != n_candidates:
        raise ValueError(f"names must have {n_candidates} entries, one a candidate, got {len(names)}")


_sentence = st.components.v2.component(
    "attnviz_sentence_arcs",
    html=HTML,
    css=read_asset("sentence_arcs/sentence_arcs.css"),
    js=read_script("sentence_arcs/sentence_arcs.js"),
)
