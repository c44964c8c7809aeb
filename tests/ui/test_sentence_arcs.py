"""What the sentence with arcs checks in Python, and how a page hears of a pick."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attnviz.app.components.sentence_arcs.sentence_arcs import sentence_arcs

SENTENCE = {"words": ["Tom", "left", ",", "he"], "weights": [0.5, 0.1, 0.1, 0.3]}
PLACES = {"pronoun": 3, "candidates": [(0,)], "answer": 0, "key": "arcs", "on_pick": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"words": [], "weights": []}, "at least one word"),
        ({"weights": [1.0]}, "weights must have 4 entries, one a word, got 1"),
        ({"weights": [0.5, 1.5, 0, 0]}, "between 0 and 1, got 0 to 1.5"),
        ({"weights": [0.5, np.nan, 0, 0]}, "between 0 and 1"),
        ({"gaps": [" "]}, "gaps must have 4 entries"),
        ({"masked": [True]}, "masked must have 4 entries"),
        ({"pronoun": 4}, "words are 0 to 3, got 4"),
        ({"candidates": [(0, -1)]}, "words are 0 to 3, got -1"),
        ({"highlight": {7}}, "words are 0 to 3, got 7"),
        ({"answer": 1}, "one of 1 candidates or None, got 1"),
        ({"names": ["Tom", "Anna"]}, "names must have 1 entries"),
    ],
)
def test_says_what_does_not_fit(change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sentence_arcs(**(SENTENCE | PLACES | change))


def test_draws_on_a_page_without_candidates_too() -> None:
    def page() -> None:
        from attnviz.app.components.sentence_arcs.sentence_arcs import sentence_arcs

        words = {"words": ["Tom", "left"], "weights": [0.5, 0.5]}
        sentence_arcs(**words, pronoun=1, candidates=[], answer=None, key="arcs", on_pick=lambda word: None)

    assert not AppTest.from_function(page).run().exception
