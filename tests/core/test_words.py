"""Words and their tokens, words in another order, and what patterns follow when words move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.core.heads.shuffled import Followed, followed, followed_by_heads, overlap
from attnviz.core.text.words import (
    item_of_tokens,
    merge_words,
    shuffle_words,
    token_items,
    weight_on,
    word_items,
    word_of_tokens,
    word_spans,
)
from attnviz.core.trace.records import Token

TEXT = "Mary bought a car,  although she\ncould not drive it "


def token(index, start, end, special=False):
    return Token(index, 0, "", "", start, end, special)


@given(st.lists(st.text("abc,é東", min_size=1, max_size=4), min_size=3, max_size=12), st.integers(0, 999))
def test_shuffling_keeps_the_words_and_the_first_one_and_changes_the_order(words, seed):
    text = "  ".join(words) + "\n"
    shuffled, order = shuffle_words(text, seed)
    assert shuffled.split() == [words[i] for i in order]
    assert sorted(order) == list(range(len(words))) and list(order) != sorted(order)
    assert order[0] == 0
    assert len(shuffled) == len(text) and shuffled.endswith("\n")
    assert shuffle_words(text, seed)[0] == shuffled


def test_white_space_stays_where_it_is():
    shuffled, order = shuffle_words(TEXT, 1)
    spaces = [piece for piece in TEXT.split("x")[0] if piece.isspace()]
    assert [c for c in shuffled if c.isspace()] == spaces
    assert len(order) == 10


@pytest.mark.parametrize("text", ["", "one two", "東京は大きい"])
def test_too_few_words(text):
    with pytest.raises(ValueError, match="at least three words"):
        shuffle_words(text)


def test_tokens_belong_to_the_word_in_which_they_end():
    text = " ab cde f"  # words at 1-3, 4-7, 8-9
    tokens = [
        token(0, 0, 0, special=True),
        token(1, 0, 3),
        token(2, 3, 5),
        token(3, 5, 7),
        token(4, 7, 8),
        token(5, 8, 9),
    ]
    assert word_of_tokens(tokens, text).tolist() == [-1, 0, 1, 1, -1, 2]
    assert word_spans(text) == [(1, 3), (4, 7), (8, 9)]


@pytest.mark.parametrize("name", ["smollm2", "minilm"])
def test_real_tokens_have_the_words_that_they_spell(name, request):
    trace = request.getfixturevalue(name).trace(TEXT + "unbelievably")
    words = word_of_tokens(trace.tokens, trace.text)
    spans = word_spans(trace.text)
    assert set(words) - {-1} == set(range(len(spans)))
    for each, word in zip(trace.tokens, words, strict=True):
        if word >= 0:
            start, end = spans[word]
            assert start < each.end <= end
        else:
            assert each.special or not each.text.strip()


def test_merged_rows_keep_their_weight():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(7), size=7)
    words = np.array([0, 0, 1, 2, 2, 2, 3])
    merged = merge_words(weights, words, 4)
    np.testing.assert_allclose(merged.sum(axis=1), 1)
    np.testing.assert_allclose(merged[2, 0], weights[3:6, :2].sum() / 3)
    partly = merge_words(weights, np.where(words == 1, -1, words), 4)
    np.testing.assert_allclose(partly[1], 0)
    np.testing.assert_allclose(partly[:, 1], 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京 is big", ["東", "京", "is", "big"]),
        ("ひらがな", list("ひらがな")),
        ("東京。大阪", ["東", "京", "。", "大", "阪"]),
        ("서울은 크다", ["서울은", "크다"]),  # Korean has spaces
        ("กรุงเทพ ใหญ่", ["กรุงเทพ", "ใหญ่"]),  # Thai has none between words: a run stays whole
        ("naïve, 𠀀!", ["naïve,", "𠀀", "!"]),
    ],
)
def test_words_of_scripts_without_spaces(text, words):
    assert [text[start:end] for start, end in word_spans(text, characters=True)] == words


@pytest.mark.parametrize("name", ["smollm2", "minilm"])
@pytest.mark.parametrize("text", [TEXT + "unbelievably", "東京は big 大きい city", "a\n\nb  c😀d"])
def test_every_token_is_in_one_item_and_special_ones_stay_alone(name, text, request):
    tokens = request.getfixturevalue(name).trace(text).tokens
    items = word_items(tokens)
    assert [token for item in items for token in item.tokens] == list(range(len(tokens)))
    for item in items:
        here = [tokens[i] for i in item.tokens]
        assert (item.kind == "special") == here[0].special
        if item.kind == "word":
            assert item.label == text[here[0].start : here[-1].end].strip() != ""
        else:
            assert len(here) == 1 and (here[0].special or not here[0].text.strip())
    words = [item.label for item in items if item.kind == "word"]
    if text.startswith(TEXT):
        assert words == text.split()


@pytest.mark.parametrize(("name", "layer", "head"), [("smollm2", 13, 8), ("minilm", 2, 3)])
def test_merged_weights_are_those_of_a_plain_loop(name, layer, head, request):
    trace = request.getfixturevalue(name).trace("Unbelievably, the antidisestablishmentarian's\ncar broke")
    items = word_items(trace.tokens)
    weights = trace.weights(layer, head)
    places = item_of_tokens(items, len(trace.tokens))
    merged = merge_words(weights, places, len(items))
    assert max(len(item.tokens) for item in items) > 2
    for row, query in enumerate(items):
        for column, key in enumerate(items):
            total = 0.0
            for q in query.tokens:
                for k in key.tokens:
                    total += float(weights[q, k])
            assert merged[row, column] == pytest.approx(total / len(query.tokens), abs=1e-6)
    np.testing.assert_allclose(merged.sum(axis=1), 1, atol=1e-5)
    space = [item.kind != "word" for item in items]
    np.testing.assert_allclose(merged[:, np.logical_not(space)].sum(axis=1).mean() + weight_on(merged, space), 1)
    # some of the queries, all of the keys
    part = merge_words(weights[3:6], [0, 1, 1], 2, (places, len(items)))
    np.testing.assert_allclose(part[1].sum(), 1, atol=1e-5)
    np.testing.assert_allclose(part[1] * 2, merge_words(weights[4:6], [0, 0], 1, (places, len(items)))[0] * 2)


def test_tokens_as_items(minilm):
    tokens = minilm.trace("one two").tokens
    assert [(item.label, item.tokens, item.kind) for item in token_items(tokens)] == [
        ("[CLS]", (0,), "special"),
        ("one", (1,), "word"),
        ("two", (2,), "word"),
        ("[SEP]", (3,), "special"),
    ]
    assert item_of_tokens(token_items(tokens)[1:3], 4).tolist() == [-1, 0, 1, -1]


def test_a_special_token_parts_a_word():
    tokens = [
        Token(0, 0, "a", "a", 0, 1, False),
        Token(1, 0, "<s>", "<s>", 1, 4, True),
        Token(2, 0, "b", "b", 4, 5, False),
    ]
    assert [(item.label, item.tokens) for item in word_items(tokens)] == [("a", (0,)), ("<s>", (1,)), ("b", (2,))]


def test_weight_on_columns():
    assert weight_on([[0.2, 0.8], [0.6, 0.4]], [True, False]) == pytest.approx(0.4)
    assert weight_on(np.zeros((0, 2)), [True, False]) == 0


def moved_with_words(weights, order):
    """Return the map that a head shows on the shuffled text if its pattern goes with the words."""
    return weights[np.ix_(order, order)]


@given(st.integers(0, 999))
def test_a_pattern_that_stays_and_one_that_goes_with_the_words(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    order = np.concatenate([[0], 1 + rng.permutation(n - 1)])
    weights = rng.dirichlet(np.full(n, 0.3), size=n)
    if weights[:, 1:].sum() < 0.2 * n:
        return
    stays = followed(weights, weights, order, causal=False)
    goes = followed(weights, moved_with_words(weights, order), order, causal=False)
    assert stays.positions == pytest.approx(1) and goes.words == pytest.approx(1)
    assert 0 <= stays.words <= 1 and 0 <= goes.positions <= 1
    if list(order) != sorted(order) and stays.words < 0.999:
        assert stays.lead > 0 > goes.lead


def test_under_a_mask_only_pairs_in_the_same_order_count():
    order = [0, 2, 1]  # the last two words change places
    before = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.1, 0.9, 0]])
    after = np.array([[1, 0, 0], [0.2, 0.8, 0], [0.3, 0.3, 0.4]])
    # word 2 -> word 1 can't be seen in the new text, where word 1 comes later; left are 1 -> 1 and 2 -> 2
    assert followed(before, after, order, causal=True).words == pytest.approx((0.4 + 0) / (0.5 + 0.8))


def test_a_head_at_rest_has_no_number():
    resting = np.zeros((4, 4))
    resting[:, 0] = 1
    assert np.isnan(followed(resting, resting, [0, 2, 1, 3], causal=True)).all()
    assert np.isnan(Followed(np.nan, np.nan).lead)


def test_overlap_is_a_share():
    assert overlap([1.0, 0.0], [1.0, 0.0]) == 1
    assert overlap([1.0, 0.0], [0.0, 1.0]) == 0
    assert np.isnan(overlap([0.0], [0.0]))


def test_previous_token_head_stays_at_its_places_most_of_all(smollm2):
    text = "The letters from my friend in Boston were lost."
    before, leads = smollm2.trace(text), []
    for seed in range(4):
        shuffled, order = shuffle_words(text, seed)
        found = followed_by_heads(before, smollm2.trace(shuffled), order)
        assert found.shape == (30, 9, 2)
        leads.append(found[..., 0] - found[..., 1])
    mean = np.nan_to_num(np.mean(leads, axis=0), nan=-1)
    assert divmod(int(mean.argmax()), 9) == (16, 0)
