"""One sentence and arcs of made-up weights: the address says which."""

import re
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.components.sentence_arcs.sentence_arcs import Asked, Sentence, sentence_arcs

# text, the pronoun, candidates, the right one, whether words after the pronoun are hidden from it
TEXTS = {
    "animal": ("The animal didn't cross the street because it was too tired.", "it", ["animal", "street"], 0, True),
    "long": (
        "The city councilmen met in the old town hall on the first Monday in May, long before anybody heard of the "
        "march.\nThe peaceful demonstrators, who came from three villages by the river, asked for a permit politely; "
        "but after a short debate (and a cup of tea) the mayor said no, because they feared violence in the streets.",
        "they",
        ["city councilmen", "demonstrators", "villages"],
        0,
        True,
    ),
    "german": (
        "Die Lehrerin gab der Schülerin das Buch ihrer Tante zurück, weil sie es ihr versprochen hatte.",
        "sie",
        ["Lehrerin", "Schülerin", "Tante"],
        0,
        True,
    ),
    "seen": (
        "She called because Mary was late, and the bus had gone, said her old aunt Susan.",
        "She",
        ["Mary", "Susan"],
        0,
        False,
    ),
    "arabic": ("قالت ليلى لأمها إنها متعبة، ثم نامت.", "إنها", ["ليلى", "لأمها"], 0, True),
    "odd": ("<b>Tom</b> & $x$:  `he`", "he", ["Tom"], 0, True),
}


def split(name: str):
    """Return words, gaps, and the rest of a text's entry in words' indices."""
    text, pronoun, candidates, answer, causal = TEXTS[name]
    spans = [match.span() for match in re.finditer(r"\w+(?:'\w+)*|[^\w\s]", text)]
    words = [text[start:end] for start, end in spans]
    gaps = [text[end:start] for (_, end), (start, _) in zip([(0, 0), *spans], spans, strict=False)]
    places = [[words.index(part) for part in candidate.split()] for candidate in candidates]
    return words, gaps, words.index(pronoun), places, answer, causal


def show(choice: Any, visit: str) -> None:
    """Draw one sentence with arcs, and what was picked in this visit."""
    words, gaps, pronoun, candidates, answer, causal = split(choice.get("text", "animal"))
    rng = np.random.default_rng(1)
    scores = rng.normal(0.0, 1.5, len(words))
    for rank, group in enumerate(candidates):
        scores[list(group)] += 3.0 - 1.2 * rank
    if st.toggle("Other head", key=f"other-{visit}"):
        scores = rng.permutation(scores)
    allowed = np.arange(len(words)) <= pronoun if causal else np.ones(len(words), dtype=bool)
    weights = np.where(allowed, np.exp(scores), 0.0)
    weights *= 0.97 / weights.sum()
    picks = st.session_state.setdefault(f"picks-{visit}", [])
    sentence_arcs(
        Sentence(words, gaps, (~allowed).tolist(), highlight={int(word) for word in choice.get_all("highlight")}),
        Asked(pronoun, candidates, answer),
        weights.tolist(),
        label="L9 H4",
        on_pick=None if "still" in choice else picks.append,
        key=f"arcs-{visit}",
    )
    st.text(f"picked {picks}")
