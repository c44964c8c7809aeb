"""A sentence with an arc from its pronoun to each word it looks at, as wide as the weight. Needs streamlit."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain
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


@dataclass(frozen=True)
class Sentence:
    """A sentence as it was typed.

    Attributes:
        words: words and punctuation marks in their order, at most some 80.
        gaps: the white space in front of each word, as in the text; None: one space.
        masked: True for each word that the pronoun may not see.
        highlight: words to outline, such as those that differ from another sentence's.
    """

    words: Sequence[str]
    gaps: Sequence[str] | None = None
    masked: Sequence[bool] | None = None
    highlight: Collection[int] = ()


@dataclass(frozen=True)
class Asked:
    """What is asked about a sentence.

    Attributes:
        pronoun: the word that looks.
        candidates: the words of each candidate; words side by side are marked as one.
        answer: the candidate that is right, None if nobody said.
        names: what to call each candidate; None: by its words.
    """

    pronoun: int
    candidates: Sequence[Sequence[int]] = ()
    answer: int | None = None
    names: Sequence[str] | None = None


def sentence_arcs(
    sentence: Sentence,
    asked: Asked,
    weights: Sequence[float],
    *,
    label: str = "",
    on_pick: Callable[[int], None] | None,
    key: str,
) -> None:
    """Draw a sentence as it was typed, with an arc from the pronoun to every word that it gives more than 0.005.

    Arcs to candidates have the candidate's colour, all others are grey. Walking with the arrow keys and pointing happen
    in the browser. New weights are drawn over the same words, so the focus stays where it was.

    Args:
        sentence: the words.
        asked: which of them looks, and at which it could look.
        weights: (words,) what the pronoun gives to each word, from 0 to 1.
        label: whose weights these are, such as "L9 H4", written above the sentence.
        on_pick: called with a word's index before the next run of the page when the visitor clicks it or presses Enter
            or space on it; None: words can't be picked.
        key: the component's name, unique on the page.

    Raises:
        ValueError: lists of different lengths, a weight outside 0 to 1, or an index of no word.
    """
    values = np.asarray(weights, dtype=np.float64)
    n_words = len(sentence.words)
    _check_lengths(n_words, weights=weights, gaps=sentence.gaps, masked=sentence.masked)
    if not np.all((values >= 0) & (values <= 1.0001)):
        raise ValueError(f"weights must lie between 0 and 1, got {values.min():g} to {values.max():g}")
    _check_places(n_words, [asked.pronoun, *chain(*asked.candidates), *sentence.highlight])
    _check_candidates(len(asked.candidates), asked.answer, asked.names)
    drawn = {"weights": [round(weight, 5) for weight in values.tolist()], "label": label}
    _mount(key, {**_words(sentence), **_question(asked), **drawn, "pickable": on_pick is not None}, on_pick)


def _words(sentence: Sentence) -> dict[str, Any]:
    words, gaps, masked = sentence.words, sentence.gaps, sentence.masked
    return {
        "words": list(words),
        "gaps": ["", *[" "] * (len(words) - 1)] if gaps is None else list(gaps),
        "masked": [place for place, hidden in enumerate(masked or ()) if hidden],
        "highlight": sorted(int(word) for word in sentence.highlight),
    }


def _question(asked: Asked) -> dict[str, Any]:
    return {
        "pronoun": int(asked.pronoun),
        "candidates": [sorted(int(word) for word in group) for group in asked.candidates],
        "answer": None if asked.answer is None else int(asked.answer),
        "names": None if asked.names is None else list(asked.names),
    }


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
