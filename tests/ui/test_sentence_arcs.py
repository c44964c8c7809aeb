"""What the sentence with arcs checks in Python, and how a page hears of a pick."""

from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attnviz.app.components.sentence_arcs.sentence_arcs import Asked, Sentence, sentence_arcs

SENTENCE = Sentence(["Tom", "left", ",", "he"])
WEIGHTS = [0.5, 0.1, 0.1, 0.3]
ASKED = Asked(3, [(0,)], 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sentence": Sentence([]), "weights": []}, "at least one word"),
        ({"weights": [1.0]}, "weights must have 4 entries, one a word, got 1"),
        ({"weights": [0.5, 1.5, 0, 0]}, "between 0 and 1, got 0 to 1.5"),
        ({"weights": [0.5, np.nan, 0, 0]}, "between 0 and 1"),
        ({"sentence": replace(SENTENCE, gaps=[" "])}, "gaps must have 4 entries"),
        ({"sentence": replace(SENTENCE, masked=[True])}, "masked must have 4 entries"),
        ({"asked": replace(ASKED, pronoun=4)}, "words are 0 to 3, got 4"),
        ({"asked": replace(ASKED, candidates=[(0, -1)])}, "words are 0 to 3, got -1"),
        ({"sentence": replace(SENTENCE, highlight={7})}, "words are 0 to 3, got 7"),
        ({"asked": replace(ASKED, answer=1)}, "one of 1 candidates or None, got 1"),
        ({"asked": replace(ASKED, names=["Tom", "Anna"])}, "names must have 1 entries"),
    ],
)
def test_says_what_does_not_fit(change: dict, words: str) -> None:
    arguments = {"sentence": SENTENCE, "asked": ASKED, "weights": WEIGHTS} | change
    with pytest.raises(ValueError, match=words):
        sentence_arcs(**arguments, on_pick=None, key="arcs")


def test_draws_on_a_page_without_candidates_too() -> None:
    def page() -> None:
        from attnviz.app.components.sentence_arcs.sentence_arcs import Asked, Sentence, sentence_arcs

        sentence_arcs(Sentence(["Tom", "left"]), Asked(1), [0.5, 0.5], on_pick=lambda word: None, key="arcs")

    assert not AppTest.from_function(page).run().exception
