"""What every head gives to the words of a sentence, against plain loops over `trace.weights`."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.core.attention.masks import causal_rule
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.pronouns.one_sentence import Shares, all_heads_looks, margins, row_shares, word_tokens
from attnviz.core.text.words import split_words
from attnviz.core.trace.records import Token
from tests.core.made_traces import made_layer, made_tokens, made_trace, random_trace


def token(index: int, text: str, start: int, *, special: bool = False) -> Token:
    return Token(index, 0, text, text, start, start + len(text), special)


# --- words and tokens ---


def test_a_word_has_all_its_tokens_and_no_other() -> None:
    text = "Zubrowka met Tom."
    pieces = [("", 0), ("Zub", 0), ("rowka", 3), (" met", 8), (" Tom", 12), (".", 16)]
    tokens = [token(i, piece, start, special=not piece) for i, (piece, start) in enumerate(pieces)]
    assert word_tokens(tokens, split_words(text)) == ((1, 2), (3,), (4,), (5,))


def test_a_token_over_two_words_counts_with_the_first_and_the_next_has_none() -> None:
    tokens = [token(0, "don't!", 0), token(1, "?", 6)]
    assert word_tokens(tokens, [(0, 5), (5, 6), (6, 7)]) == ((0,), (), (1,))


def test_several_tokens_of_one_sign_belong_to_its_word() -> None:
    tokens = [Token(i, i, "x", "猫", 0, 1, False) for i in range(3)] + [token(3, "は", 1)]
    assert word_tokens(tokens, [(0, 1), (1, 2)]) == ((0, 1, 2), (3,))


def test_what_stands_in_front_shifts_the_words() -> None:
    tokens = [token(0, "\n", 0), token(1, "Tom", 1), token(2, " ran", 4)]
    assert word_tokens(tokens, [(0, 3), (4, 7)], offset=1) == ((1,), (2,))
    assert word_tokens([token(0, "\nTom", 0)], [(0, 3)], offset=1) == ((0,),)


@given(st.lists(st.integers(1, 4), max_size=8), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=8))
def test_every_token_goes_to_the_first_word_that_it_shares_characters_with(
    sizes: list[int], gaps_and_words: list[tuple[int, int]]
) -> None:
    edges = np.cumsum([0, *sizes]).tolist()
    tokens = [Token(i, 0, "x", "x", a, b, False) for i, (a, b) in enumerate(pairwise(edges))]
    words, end = [], 0
    for gap, size in gaps_and_words:
        words.append((end + gap, end + gap + size))
        end += gap + size
    expected: list[list[int]] = [[] for _ in words]
    for each in tokens:
        shared = [i for i, (a, b) in enumerate(words) if each.start < b and a < each.end]
        for i in shared[:1]:
            expected[i].append(each.index)
    assert word_tokens(tokens, words) == tuple(map(tuple, expected))


@pytest.mark.parametrize("text", ["Mrs Zubrowka's 猫 didn't 👩\u200d💻 राम!", "a\n\nb", "Tom  ran"])
@pytest.mark.parametrize("lead", ["", "\n"])
def test_real_tokenizers_lose_no_token_of_a_word(smollm2: Any, minilm: Any, text: str, lead: str) -> None:
    for engine in (smollm2, minilm):
        tokens = engine.trace(lead + text).tokens
        found = [place for of_word in word_tokens(tokens, split_words(text), offset=len(lead)) for place in of_word]
        assert found == sorted(set(found))
        left = [each for each in tokens if each.index not in found]
        assert all(each.special or not each.text.strip() for each in left)


# --- weights ---


@pytest.mark.parametrize("causal", [True, False])
def test_looks_are_sums_of_weights(causal: bool) -> None:
    trace, groups = random_trace(7, causal=causal), [(0,), (1, 2), (6,)]
    looks = all_heads_looks(trace, 5, groups)
    assert looks.shape == (2, 3, 3)
    for layer in range(2):
        for head in range(3):
            row = trace.weights(layer, head)[5]
            for i, group in enumerate(groups):
                assert looks[layer, head, i] == pytest.approx(sum(float(row[key]) for key in group), abs=1e-6)
    assert np.all(looks[..., 2] == 0) == causal


def test_a_layer_with_fewer_heads_has_nan_where_the_others_have_heads() -> None:
    rng, mask = np.random.default_rng(0), causal_rule(5, 5)
    trace = made_trace({3: made_layer(rng, 4, mask), 7: made_layer(rng, 2, mask)}, tokens=made_tokens(range(5)))
    looks = all_heads_looks(trace, 4, [(1,), (2,)])
    assert np.isnan(looks[1, 2:]).all() and np.isfinite(looks[0]).all() and np.isfinite(looks[1, :2]).all()
    assert looks[1, 1, 0] == pytest.approx(trace.weights(7, 1)[4, 1])
    assert all(head < 2 for layer, head, _ in strongest(margins(looks, 0), trace.layers, 99) if layer == 7)


def test_looks_and_margins_of_a_real_model_are_those_of_its_heads(smollm2: Any) -> None:
    text = "Laura met Peter at the station before he took the night train"
    trace = smollm2.trace("\n" + text)
    laura, _, peter, _, _, _, _, (he,), *_ = word_tokens(trace.tokens, split_words(text), offset=1)
    assert len(laura) > 1  # a word of several tokens
    looks = all_heads_looks(trace, he, [laura, peter])
    found = margins(looks, 1)
    assert found.shape == (30, 9)
    for layer in range(30):
        for head in range(9):
            row = trace.weights(layer, head)[he]
            expected = sum(float(row[key]) for key in peter) - sum(float(row[key]) for key in laura)
            assert found[layer, head] == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(0, 2))
def test_a_margin_is_the_answer_minus_the_best_other(rows: list[list[float]], answer: int) -> None:
    expected = [row[answer] - max(value for i, value in enumerate(row) if i != answer) for row in rows]
    np.testing.assert_allclose(margins(rows, answer), expected)


def test_a_margin_keeps_heads_that_are_not_there() -> None:
    np.testing.assert_array_equal(margins([[np.nan, np.nan], [0.5, 0.25]], 0), [np.nan, 0.25])
    np.testing.assert_array_equal(margins([[np.nan], [0.5]], 0), [np.nan, 0.5])


@given(st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, float("nan")]), min_size=6, max_size=6), st.integers(0, 8))
def test_the_clearest_are_the_largest_in_order(values: list[float], n: int) -> None:
    layers = (2, 5, 9)
    every = [(layers[i // 2], i % 2, value) for i, value in enumerate(values) if not np.isnan(value)]
    expected = sorted(every, key=lambda entry: -entry[2])[:n]  # stable: of equal ones the earlier
    assert strongest(np.reshape(values, (3, 2)), layers, n) == expected


# --- shares ---


def test_shares_say_where_the_weight_went() -> None:
    tokens = [
        token(0, "[CLS]", 0, special=True),
        token(1, "Tom", 0),
        token(2, ",", 3),
        token(3, " ran", 4),
        token(4, " he", 8),
    ]
    shares = row_shares([0.5, 0.25, 0.125, 0.0625, 0.0625], tokens, 4, {1})
    assert shares == Shares(candidates=0.25, first=0.0, special=0.5, punctuation=0.125, own=0.0625, rest=0.0625)


@pytest.mark.parametrize(
    ("first", "candidates", "name"),
    [(" w0", (), "first"), ("\n", (), "first"), (" w0", (0,), "candidates"), (".", (), "first")],
)
def test_the_first_token_counts_as_first_unless_it_is_a_candidate(
    first: str, candidates: tuple[int, ...], name: str
) -> None:
    shares = row_shares([0.75, 0.25], [token(0, first, 0), token(1, " x", 9)], 1, candidates)
    assert getattr(shares, name) == 0.75 and shares.own == 0.25


@given(st.integers(0, 6), st.sets(st.integers(0, 6)))
def test_shares_lose_no_weight(query: int, candidates: set[int]) -> None:
    tokens = made_tokens(range(7), special=(0, 6), texts=["", ".", " a", "?!", "猫", " 5", ""])
    row = random_trace(7, causal=False).weights(0, 1)[query]
    shares = row_shares(row, tokens, query, candidates)
    assert sum(vars(shares).values()) == pytest.approx(float(row.sum()), abs=1e-6)
    assert shares.candidates == pytest.approx(float(row[sorted(candidates)].sum()), abs=1e-6)


def test_a_row_that_does_not_fit_the_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter|longer"):
        row_shares([0.5, 0.5], [token(0, "a", 0)], 0, ())
