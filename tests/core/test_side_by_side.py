"""Two maps side by side: partners of tokens, differences against a plain loop, and maps of words."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz import Switches
from attnviz.core.compare.side_by_side import (
    Difference,
    largest_change,
    map_difference,
    rows_must_agree,
    same_tokens,
    strongest_keys,
    token_partners,
    word_map,
)
from attnviz.core.trace.records import Token
from tests.core.made_traces import random_weights


def tokens(text: str, special: str = "") -> list[Token]:
    """Return a token for each word, numbered differently from text to text as two vocabularies would."""
    return [Token(i, i + len(text), word, word, 0, 1, word in special) for i, word in enumerate(text.split())]


@pytest.mark.parametrize(
    ("one", "other", "place", "same"),
    [
        ("a b c", "a b c", [0, 1, 2], [1, 1, 1]),
        ("a b c", "a x b c", [0, 2, 3], [1, 1, 1]),
        ("a x b c", "a b c", [0, -1, 1, 2], [1, 0, 1, 1]),
        ("a x b", "a y b", [0, 1, 2], [1, 0, 1]),
        ("a x b", "a y z b", [0, -1, 3], [1, 0, 1]),
        ("the the cat", "the cat", [-1, 0, 1], [0, 1, 1]),
        ("a b", "c d e", [-1, -1], [0, 0]),
    ],
)
def test_partners(one: str, other: str, place: list[int], same: list[int]) -> None:
    found = token_partners(tokens(one), tokens(other))
    np.testing.assert_array_equal(found.place, place)
    np.testing.assert_array_equal(found.same, np.array(same, bool))


def test_a_special_token_is_no_word_of_the_same_spelling() -> None:
    assert same_tokens(tokens("a b"), tokens("a b"))
    assert not same_tokens(tokens("a b"), tokens("a b", special="b"))
    assert not token_partners(tokens("a b"), tokens("a b", special="b")).same[1]
    assert token_partners(tokens("a x y"), tokens("a z S", special="S")).place.tolist() == [0, 1, -1]


def test_the_difference_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    texts = tokens("a b x c d e"), tokens("a y z b c e d")
    maps = [random_weights(rng, len(text), len(text)) for text in texts]
    seen = [each > 0 for each in maps]
    partners = token_partners(*texts)
    found = map_difference(*maps, *seen, partners, partners)
    there = {"a": 0, "b": 3, "c": 4, "d": 6, "e": 5}
    compared = [token.text for token, same in zip(texts[0], partners.same, strict=True) if same]
    assert compared[:3] == ["a", "b", "c"] and len(compared) == 4  # d and e changed places: one of them keeps its own
    for i, query in enumerate(texts[0]):
        for j, key in enumerate(texts[0]):
            paired = query.text in compared and key.text in compared
            assert found.unpaired[i, j] == (not paired)
            if paired:
                row, column = there[query.text], there[key.text]
                assert found.values[i, j] == pytest.approx(maps[1][row, column] - maps[0][i, j], abs=1e-6)
                assert found.seen[i, j] == (seen[0][i, j] or seen[1][row, column])
            else:
                assert found.values[i, j] == 0 and not found.seen[i, j]


def test_the_largest_change_is_the_largest_either_way() -> None:
    every = np.ones((2, 2), bool)
    values = np.array([[0.1, -0.5], [0.4, 0.9]], np.float32)
    assert largest_change(Difference(values, every, ~every)) == (1, 1)
    seen = np.array([[True, True], [True, False]])
    assert largest_change(Difference(values, seen, ~every)) == (0, 1)
    assert largest_change(Difference(0 * values, every, ~every)) is None


def test_the_strongest_keys_are_allowed_ones() -> None:
    row, seen = [0.1, 0.4, 0.0, 0.5], [True, True, False, False]
    assert strongest_keys(row, seen, 5) == [(1, 0.4), (0, 0.1)]
    assert strongest_keys([0.5, 0.5], [True, True], 1) == [(0, 0.5)]  # the first of equals


def test_a_map_of_words_is_that_of_a_plain_loop() -> None:
    weights = random_weights(np.random.default_rng(1), 6, 6)
    words = np.array([-1, 0, 0, 1, 2, 5])  # the last one lies outside
    found, seen = word_map(weights, weights > 0, words, 3)
    assert found.shape == (3, 3)
    for query in range(3):
        rows = np.flatnonzero(words == query)
        for key in range(3):
            columns = np.flatnonzero(words == key)
            expected = np.mean([sum(weights[row, column] for column in columns) for row in rows])
            assert found[query, key] == pytest.approx(expected, abs=1e-6)
            assert seen[query, key] == any(weights[row, column] > 0 for row in rows for column in columns)


REST, EARLY, LATE = Switches(), Switches(forbid={(0, 1, 2, 0)}), Switches(forbid={(0, 1, 4, 0)})
OFF, ON, UNSCALED = Switches(causal=False), Switches(causal=True), Switches(scaled=False)
NO_HEAD = Switches(ablate={(0, 1)})


@pytest.mark.parametrize(
    ("model", "passes", "shown", "must"),
    [
        ("llama", (REST, REST), (None, None), True),
        ("llama", (EARLY, REST), (None, None), False),
        ("llama", (EARLY, EARLY), (None, None), True),
        ("llama", (LATE, REST), (None, None), True),  # of a row that isn't compared
        ("llama", (UNSCALED, REST), (None, None), False),
        ("llama", (NO_HEAD, REST), (None, None), False),
        ("llama", (NO_HEAD, NO_HEAD), (None, None), True),
        ("llama", (OFF, OFF), (None, None), False),
        ("llama", (REST, REST), (EARLY, REST), False),
        ("llama", (REST, REST), (LATE, REST), True),
        ("llama", (REST, REST), (UNSCALED, UNSCALED), True),
        ("llama", (UNSCALED, UNSCALED), (REST, REST), True),
        ("llama", (OFF, OFF), (ON, ON), False),  # earlier layers saw what comes later
        ("bert", (REST, REST), (None, None), False),
        ("bert", (REST, REST), (ON, ON), False),
        ("bert", (ON, ON), (None, None), True),
    ],
)
def test_rows_that_must_agree_do_and_others_are_not_said_to(tiny_folder, model, passes, shown, must):
    engine = attnviz.load(tiny_folder(model))
    traces = [
        engine.trace(text, switches=s)
        for text, s in zip(("w1 w2 w3 w4 w5 w6", "w1 w2 w3 w7 w8 w9 w10"), passes, strict=True)
    ]
    assert rows_must_agree(*traces, 3, shown=shown) == must
    for layer in engine.info.layers:
        maps = [
            np.stack([trace.weights(layer, head, switches=s)[:3, :3] for head in range(4)])
            for trace, s in zip(traces, shown, strict=True)
        ]
        if must:
            np.testing.assert_allclose(*maps, atol=1e-6)


@pytest.mark.parametrize("other", [{"revision": "b"}, {"dtype": "bfloat16"}, {"engine": "numpy"}, {"name": "b"}])
def test_rows_of_other_weights_engines_or_digits_need_not_agree(tiny_folder, other):
    trace = attnviz.load(tiny_folder("llama")).trace("w1 w2 w3")
    assert rows_must_agree(trace, trace, 3)
    assert not rows_must_agree(trace, replace(trace, model=replace(trace.model, **other)), 3)


def test_a_decoder_that_looks_at_another_text_need_not_agree(tiny_folder):
    engine = attnviz.load(tiny_folder("t5"))
    assert not rows_must_agree(engine.trace("w1 w2", target="w3"), engine.trace("w1 w4", target="w3"), 1)
