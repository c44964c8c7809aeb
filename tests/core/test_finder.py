"""Heads found by their maps: in closed form, beside plain loops, and the known heads of a real model."""

from itertools import product

import numpy as np
import pytest

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.compare.agreement import map_change
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.finder import RESTS, drawn_scores, heads_like, possible_cells, resting_keys, scored_cells
from attnviz.core.heads.scored_text import score_pattern
from attnviz.core.trace.records import LayerMaps
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from tests.core.made_traces import made_layer, made_tokens, made_trace, random_trace, random_weights


def plain_similarity(trace: Trace, one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return 2 sum min(a, b) / sum (a + b) by loops over rows and keys."""
    queries, keys = trace.tokens_of()
    aside = resting_keys(keys)
    maps = [trace.weights(*head).astype(float) for head in (one, other)]
    seen = [trace.allowed(*head) for head in (one, other)]
    shared = total = 0.0
    for q in range(len(queries)):
        free = [[k for k in range(len(keys)) if table[q, k] and not aside[k]] for table in seen]
        if queries[q].special or min(map(len, free)) < 2:
            continue
        for k in set(free[0]) | set(free[1]):
            shared += min(maps[0][q, k], maps[1][q, k])
            total += maps[0][q, k] + maps[1][q, k]
    return 2 * shared / total


@pytest.mark.parametrize("causal", [True, False])
def test_similarity_beside_a_plain_loop(causal):
    trace = random_trace(9, causal=causal, tokens=made_tokens(range(9), special=(0, 8)))
    found = heads_like(trace.head(1, 2))
    for layer, head in product(range(2), range(3)):
        assert found.similarity[layer, head] == pytest.approx(plain_similarity(trace, (1, 2), (layer, head)), abs=1e-6)
    assert found.n_rows == (6 if causal else 7)  # special rows, and row 1 of a causal map without a choice


def test_layers_with_another_rule_are_compared_where_both_have_a_choice():
    rng = np.random.default_rng(1)
    masks = causal_rule(8, 8), full_mask(8, 8)
    trace = made_trace({3: made_layer(rng, 2, masks[0]), 7: made_layer(rng, 2, masks[1])})
    found = heads_like(trace.head(7, 1))
    for i, layer in enumerate((3, 7)):
        for head in range(2):
            expected = plain_similarity(trace, (7, 1), (layer, head))
            assert found.similarity[i, head] == pytest.approx(expected, abs=1e-6)


def test_similarity_is_symmetric_and_1_with_itself():
    trace = random_trace(12, n_layers=3)
    heads = list(product(range(3), range(3)))
    table = np.array([heads_like(trace.head(*head)).similarity.ravel() for head in heads])  # (9, 9)
    np.testing.assert_allclose(table, table.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(table), 1, atol=1e-6)
    assert table.min() >= 0 and table[~np.eye(9, dtype=bool)].max() < 1 - 1e-3


def test_without_weight_on_the_first_token_it_is_1_minus_total_variation():
    weights = random_weights(np.random.default_rng(0), 2, 7, 6, causal=False)
    weights = np.concatenate([np.zeros((2, 7, 1)), weights], axis=2)
    trace = Trace.from_arrays(list("abcdefg"), weights=weights[None])
    expected = 1 - np.abs(weights[0] - weights[1]).sum(axis=-1).mean() / 2
    assert heads_like(trace.head(0, 0)).similarity[0, 1] == pytest.approx(expected, abs=1e-6)


def test_heads_that_rest_are_not_compared():
    n = 6
    rest = np.eye(n)[np.zeros(n, int)]  # all weight on the first token
    before = np.eye(n)[np.maximum(np.arange(n) - 1, 0)]
    nearly = (1 - 0.9 * RESTS) * rest + 0.9 * RESTS * before
    trace = Trace.from_arrays(list("abcdef"), weights=[[before, nearly, before]])
    found = heads_like(trace.head(0, 0))
    np.testing.assert_allclose(found.similarity, [[1, np.nan, 1]])
    np.testing.assert_allclose(found.free, [[1, 0.9 * RESTS, 1]], atol=1e-6)
    assert found.n_resting == 1
    assert np.isnan(heads_like(trace.head(0, 1)).similarity).all()


def test_a_pattern_in_other_rows_is_not_alike():
    """Two heads that look at the same keys, one from the rows in which the other rests."""
    rows = np.eye(5)[[0, 0, 1, 1, 1]]
    first = np.eye(5)[np.zeros(5, int)]
    weights = np.stack([np.where(np.arange(5)[:, None] % 2 == odd, rows, first) for odd in (0, 1)])
    trace = Trace.from_arrays(list("abcde"), weights=weights[None], causal=True)
    np.testing.assert_allclose(heads_like(trace.head(0, 0)).similarity, [[1, 0]])


def test_long_texts_use_spaced_rows_in_blocks(monkeypatch):
    trace = random_trace(40)
    whole, seen = heads_like(trace.head(0, 1)), []
    monkeypatch.setattr("attnviz.core.trace.row_picks.BLOCK_CELLS", 3 * 40 * 7)  # seven rows at a time
    blocks = heads_like(trace.head(0, 1), on_layer=lambda done, of: seen.append((done, of)))
    np.testing.assert_allclose(blocks.similarity, whole.similarity, atol=1e-6)
    assert seen == [(1, 2), (2, 2)]
    assert heads_like(trace.head(0, 1), max_rows=10).n_rows == 10


def test_rows_that_are_not_numbers_are_left_out():
    weights = random_weights(np.random.default_rng(0), 2, 6, 6)
    broken = weights.copy()
    broken[1, 4] = np.nan
    traces = [made_trace({0: LayerMaps(maps.astype(np.float32), causal_rule(6, 6))}) for maps in (weights, broken)]
    found = heads_like(traces[1].head(0, 0)).similarity
    assert np.isfinite(found).all() and found[0, 1] != heads_like(traces[0].head(0, 0)).similarity[0, 1]


def test_a_text_of_one_token_compares_nothing():
    found = heads_like(random_trace(1).head(0, 0))
    assert np.isnan(found.similarity).all() and found.n_rows == found.n_resting == 0


def test_drawn_cells_beside_a_plain_loop():
    trace = random_trace(9)
    cells = [(2, 1), (5, 1), (5, 4), (8, 0)]
    scores = drawn_scores(trace, cells)
    for layer, head in product(range(2), range(3)):
        weights = trace.weights(layer, head)
        assert scores[layer, head] == pytest.approx(
            np.mean([weights[2, 1], weights[5, 1] + weights[5, 4], weights[8, 0]])
        )


def test_drawing_in_blocks_far_apart(monkeypatch):
    trace = random_trace(40)
    cells = [(1, 0), (39, 3)]
    whole = drawn_scores(trace, cells)
    monkeypatch.setattr("attnviz.core.trace.row_picks.BLOCK_CELLS", 3 * 40 * 7)
    np.testing.assert_allclose(drawn_scores(trace, cells), whole, atol=1e-6)


def test_cells_above_the_diagonal_and_outside_the_text_do_not_count():
    trace = random_trace(5)
    assert possible_cells(trace, [(3, 1), (1, 3), (9, 0), (3, 1), (2, 2)]) == [(2, 2), (3, 1)]
    np.testing.assert_array_equal(drawn_scores(trace, [(3, 1), (1, 3), (9, 0)]), drawn_scores(trace, [(3, 1)]))
    assert np.isnan(drawn_scores(trace, [(1, 3)])).all() and np.isnan(drawn_scores(trace, [])).all()
    open_trace = random_trace(5, causal=False)
    assert possible_cells(open_trace, [(1, 3)]) == [(1, 3)]


def test_rows_with_a_single_key_do_not_count():
    trace = random_trace(5)
    assert scored_cells(trace, [(0, 0), (3, 1), (1, 3)]) == [(3, 1)]
    np.testing.assert_array_equal(drawn_scores(trace, [(0, 0), (3, 1)]), drawn_scores(trace, [(3, 1)]))
    assert np.isnan(drawn_scores(trace, [(0, 0)])).all()
    assert scored_cells(random_trace(5, causal=False), [(0, 0)]) == [(0, 0)]


def test_a_whole_row_is_looked_at_by_every_head():
    np.testing.assert_allclose(drawn_scores(random_trace(5, causal=False), [(2, k) for k in range(5)]), 1, atol=1e-6)


@pytest.fixture(scope="module")
def twice(smollm2):
    """Return three texts of tokens drawn at random from the vocabulary, each text twice in a row."""
    texts = []
    for seed in range(3):
        ids = np.random.default_rng(seed).integers(100, len(smollm2.tokenizer), 25)
        texts.append(2 * smollm2.tokenizer.decode(ids))
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "known"), [("induction", (18, 6)), ("previous", (16, 0))])
def test_the_known_heads_come_first_on_random_tokens_that_repeat(smollm2, twice, pattern, known):
    scores = np.array([score_pattern(smollm2.trace(text), pattern).scores for text in twice])  # (texts, layers, heads)
    for found in (scores.mean(axis=0), *scores):
        assert strongest(found, smollm2.info.layers, 1)[0][:2] == known
    assert scores.mean(axis=0)[smollm2.info.layers.index(known[0]), known[1]] > 0.8


@pytest.mark.slow
def test_l16_h0_feeds_l18_h6_on_random_tokens_that_repeat(smollm2, twice):
    off = Switches(ablate=frozenset({(16, 0)}))
    for text in twice:
        before, after = smollm2.trace(text), smollm2.trace(text, switches=off)
        assert (18, 6) in [entry[:2] for entry in strongest(map_change(before, after), before.layers, 8)]
        stripe = [score_pattern(trace, "induction").scores[18, 6] for trace in (before, after)]
        assert stripe[0] > 0.8 and stripe[1] < 0.35


@pytest.mark.slow
def test_heads_like_an_induction_head_are_induction_heads(smollm2, twice):
    trace = smollm2.trace(twice[0])
    like = strongest(heads_like(trace.head(18, 6)).similarity, trace.layers, 4)
    assert like[0] == (18, 6, pytest.approx(1))
    induction = strongest(score_pattern(trace, "induction").scores, trace.layers, 8)
    assert {entry[:2] for entry in like} <= {entry[:2] for entry in induction}


@pytest.mark.slow
def test_the_drawn_stripe_finds_the_head_that_follows_it(smollm2, twice):
    trace = smollm2.trace(twice[0])
    ids = [token.id for token in trace.tokens]
    stripe = [(q, k + 1) for q in range(len(ids)) for k in range(1, q - 1) if ids[k] == ids[q]]
    assert strongest(drawn_scores(trace, stripe), trace.layers, 1)[0][:2] == (18, 6)
