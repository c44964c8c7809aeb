import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.core import heads
from attnviz.core.attention.masks import Mask, causal_rule, full_mask
from attnviz.core.heads.measures import weight_on
from attnviz.core.trace.records import LayerMaps
from attnviz.core.trace.row_picks import row_blocks, spaced_rows
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from tests.core.made_traces import made_layer, made_tokens, made_trace, random_trace, random_weights

RNG = np.random.default_rng(5)
IDS = [4, 7, 9, 7, 2, 4, 7, 9, 7, 7]
SENTENCE = "The animal didn't cross the street because it was too tired."


def by_loop(weights, rule):
    """Return each row's weight on the keys for which rule(query, key) holds, NaN for rows without one."""
    n = weights.shape[-1]
    values = np.full(weights.shape[:-1], np.nan)
    for head in range(weights.shape[0]):
        for query in range(weights.shape[1]):
            keys = [key for key in range(n) if rule(query, key)]
            if keys:
                values[head, query] = sum(weights[head, query, key] for key in keys)
    return values


def is_same_before(query, key):
    return 0 < key < query and IDS[key] == IDS[query]


def is_after_same(query, key):
    return 0 < key < query and IDS[key - 1] == IDS[query]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("measure", "rule"),
    [
        (heads.previous_token_score, lambda query, key: query > 1 and key == query - 1),
        (heads.next_token_score, lambda query, key: key == query + 1),
        (heads.own_token_score, lambda query, key: query > 0 and key == query),
        (heads.first_token_weight, lambda query, key: query > 0 and key == 0),
        (lambda weights: heads.same_token_score(weights, IDS), is_same_before),
        (lambda weights: heads.induction_score(weights, IDS), is_after_same),
        (lambda weights: heads.mass_on(weights, np.array(IDS) == 7), lambda query, key: IDS[key] == 7),
    ],
    ids=["previous", "next", "own", "first", "same", "induction", "mass"],
)
def test_weight_measures_equal_a_loop(measure, rule, causal):
    weights = random_weights(RNG, 3, 10, 10, causal=causal)
    np.testing.assert_allclose(measure(weights), by_loop(weights, rule), atol=1e-12)


def test_entropy_distance_and_largest_equal_loops():
    weights = random_weights(RNG, 2, 7, 7)
    allowed = np.tri(7, dtype=bool)
    entropy, distance, largest = np.full((2, 7), np.nan), np.zeros((2, 7)), np.zeros((2, 7))
    for head in range(2):
        for query in range(7):
            row = weights[head, query, : query + 1]
            if query:
                entropy[head, query] = -sum(a * math.log(a) for a in row) / math.log(query + 1)
            distance[head, query] = sum(a * (query - key) for key, a in enumerate(row))
            largest[head, query] = max(row)
    np.testing.assert_allclose(heads.attention_entropy(weights, allowed), entropy, atol=1e-12)
    np.testing.assert_allclose(heads.mean_distance(weights), distance, atol=1e-12)
    np.testing.assert_allclose(heads.largest_weight(weights), largest)


@given(n=st.integers(2, 40), total=st.floats(0.05, 1.0))
def test_entropy_is_one_for_equal_shares_and_zero_for_one_key(n, total):
    even = np.full((1, n), total / n)
    one = np.eye(n)[:1] * total
    everywhere = np.ones((1, n), bool)
    np.testing.assert_allclose(heads.attention_entropy(even, everywhere), 1, atol=1e-6)
    np.testing.assert_allclose(heads.attention_entropy(one, everywhere), 0, atol=1e-6)


def test_sink_rows_are_measured_on_the_weight_that_falls_on_tokens():
    weights = random_weights(RNG, 2, 6, 6)
    allowed = np.tri(6, dtype=bool)
    for measure in (lambda a: heads.attention_entropy(a, allowed), heads.mean_distance):
        np.testing.assert_allclose(measure(0.3 * weights), measure(weights), atol=1e-12)
    np.testing.assert_allclose(heads.first_token_weight(0.3 * weights), 0.3 * heads.first_token_weight(weights))


def test_a_block_of_rows_gives_what_the_whole_map_gives():
    weights = random_weights(RNG, 2, 10, 10)
    rows = np.arange(3, 10, 2)
    for measure in (heads.previous_token_score, heads.mean_distance, heads.first_token_weight, heads.own_token_score):
        np.testing.assert_allclose(measure(weights[:, rows], rows=rows), measure(weights)[:, rows])
    for measure in (heads.same_token_score, heads.induction_score):
        np.testing.assert_allclose(measure(weights[:, rows], IDS, rows=rows), measure(weights, IDS)[:, rows])


def test_queries_of_another_text_have_no_position():
    weights = random_weights(RNG, 2, 3, 5, causal=False)
    nowhere = np.full(3, -1)
    for measure in (heads.previous_token_score, heads.next_token_score, heads.own_token_score, heads.mean_distance):
        assert np.isnan(measure(weights, rows=nowhere)).all()
    np.testing.assert_allclose(heads.first_token_weight(weights, rows=nowhere), weights[..., 0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: heads.largest_weight([[0.9, 0.3]]), "rows of attention"),
        (lambda: heads.largest_weight([[1.5, -0.5]]), "rows of attention"),
        (lambda: heads.largest_weight([[np.nan, 0.5]]), "rows of attention"),
        (lambda: heads.mean_distance([[0.5, 0.5]]), "say with rows="),
        (lambda: heads.mean_distance([[0.5, 0.5]], rows=[2]), "positions from 0 to 1"),
        (lambda: heads.mass_on([[0.5, 0.5]], [1, 0]), "2 booleans"),
        (lambda: heads.same_token_score(np.eye(2), [1, 2, 3]), "2 whole numbers"),
        (lambda: heads.attention_entropy(np.eye(2), np.ones((3, 3), bool)), "allowed"),
        (lambda: weight_on(np.eye(2), np.eye(2)), "booleans"),
        (lambda: heads.strongest(np.eye(2), (0, 1, 2)), "3 layers"),
        (lambda: heads.survey(random_trace(4), size=0), "size"),
        (lambda: heads.survey(random_trace(4), max_rows=0), "max_rows"),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def survey_by_loop(trace: Trace, size: int):
    """Return thumbnails and measures of every head, cell by cell, from single maps."""
    n, rows = len(trace.tokens), []
    side = min(size, n)
    edges = [i * n // side for i in range(side + 1)]
    for layer in trace.layers:
        for head in range(trace.heads(layer)):
            weights, allowed = trace.weights(layer, head), trace.allowed(layer, head)
            thumbnail = np.full((side, side), np.nan)
            for i in range(side):
                for j in range(side):
                    tile = np.ix_(range(edges[i], edges[i + 1]), range(edges[j], edges[j + 1]))
                    if allowed[tile].any():
                        thumbnail[i, j] = weights[tile].max()
            free = allowed.sum(axis=1) > 1
            entropy = [
                -sum(a * math.log(a) for a in weights[q] if a > 0) / math.log(allowed[q].sum())
                for q in np.flatnonzero(free)
            ]
            measures = {
                "entropy": np.mean(entropy),
                "distance": np.mean([sum(weights[q] * abs(q - np.arange(n))) for q in np.flatnonzero(free)]),
                "first_token": np.mean([weights[q, 0] for q in np.flatnonzero(free) if q > 0]),
                "previous_token": np.mean([weights[q, q - 1] for q in np.flatnonzero(free) if q > 1]),
                "largest": np.mean(weights[free].max(axis=1)),
            }
            rows.append((thumbnail, measures))
    return rows


@pytest.mark.parametrize(
    ("trace", "size"),
    [
        (random_trace(9), 32),
        (random_trace(23), 5),
        (random_trace(23, causal=False), 8),
        (random_trace(12, switches=Switches(forbid=frozenset({(1, 2, 8, 3), (None, None, 11, 0)}))), 12),
        (made_trace({3: made_layer(RNG, 2, Mask(np.maximum(np.arange(15) - 3, 0), np.arange(15), 15))}), 15),
    ],
    ids=["short", "pooled", "encoder", "forbidden", "window"],
)
def test_survey_equals_a_loop_over_single_maps(trace, size, monkeypatch):
    monkeypatch.setattr("attnviz.core.trace.row_picks.BLOCK_CELLS", 150)  # several blocks a layer
    found = heads.survey(trace, size=size)
    assert found.layers == trace.layers and found.n_rows == found.n_rows_used == len(trace.tokens)
    for i, (thumbnail, measures) in enumerate(survey_by_loop(trace, size)):
        place = divmod(i, found.thumbnails.shape[1])
        np.testing.assert_allclose(found.thumbnails[place], thumbnail, atol=1e-6)
        assert set(found.measures) == set(heads.MEASURES)
        for key, value in measures.items():
            np.testing.assert_allclose(found.measures[key][place], value, atol=1e-5, err_msg=key)


def test_survey_leaves_nan_for_heads_that_a_layer_lacks():
    mask = causal_rule(6, 6)
    trace = made_trace({1: made_layer(RNG, 2, mask), 5: made_layer(RNG, 4, mask, kv_heads=2)})
    found = heads.survey(trace)
    assert found.layers == (1, 5) and found.thumbnails.shape == (2, 4, 6, 6)
    assert np.isnan(found.thumbnails[0, 2:]).all() and np.isfinite(found.measures["largest"][1]).all()
    for values in found.measures.values():
        assert np.isnan(values[0, 2:]).all() and np.isfinite(values[0, :2]).all()


def test_survey_of_a_long_text_uses_spaced_rows_and_fills_every_tile():
    trace = random_trace(203, n_layers=1)
    found = heads.survey(trace, size=16, max_rows=50)
    assert found.n_rows == 203 and found.n_rows_used == 41
    whole = heads.survey(trace, size=16)
    np.testing.assert_array_equal(np.isnan(found.thumbnails), np.isnan(whole.thumbnails))
    assert (found.thumbnails <= whole.thumbnails + 1e-6)[np.isfinite(whole.thumbnails)].all()
    rows = np.asarray(spaced_rows(203, 50))
    expected = np.mean([trace.weights(0, 1)[row, 0] for row in rows if row > 0])
    np.testing.assert_allclose(found.measures["first_token"][0, 1], expected, atol=1e-6)


def test_memory_stays_small_on_a_long_text():
    trace = random_trace(6000, n_layers=1, n_heads=2)
    tracemalloc.start()
    heads.survey(trace)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6  # all of the two maps would take 288 MB


def test_the_first_token_can_be_set_aside():
    trace = random_trace(20)
    found = heads.survey(trace, size=5)
    rest = heads.without_first_token(found)
    weights = trace.weights(1, 0)
    np.testing.assert_allclose(rest[1, 0, :, 0], [weights[4 * i : 4 * i + 4, 1:4].max() for i in range(5)], atol=1e-6)
    np.testing.assert_array_equal(rest[..., 1:], found.thumbnails[..., 1:])
    fine = heads.survey(trace)
    assert np.isnan(heads.without_first_token(fine)[..., 0]).all() and np.isfinite(fine.thumbnails[..., 0]).all()


def test_survey_of_cross_attention_is_rectangular_and_has_no_distance():
    tokens, targets = made_tokens(range(9)), made_tokens(range(4))
    cross = made_layer(RNG, 2, full_mask(4, 9))
    trace = made_trace({0: made_layer(RNG, 2, full_mask(9, 9))}, tokens=tokens, part="encoder")
    trace = Trace(
        "", trace.model, trace.records | {"cross": {0: cross}}, trace.part_tokens | {"cross": (targets, tokens)}
    )
    found = heads.survey(trace, part="cross", size=6)
    assert found.thumbnails.shape == (1, 2, 4, 6)
    assert np.isnan(found.measures["distance"]).all() and np.isnan(found.measures["previous_token"]).all()
    expected = trace.weights(0, 1, part="cross")[:, 0].mean()
    np.testing.assert_allclose(found.measures["first_token"][0, 1], expected, atol=1e-6)
    with pytest.raises(ValueError, match="part"):
        heads.survey(trace)


def test_rows_with_nan_are_counted_and_left_out():
    weights = random_weights(RNG, 2, 6, 6).astype(np.float32)
    broken = weights.copy()
    broken[1, 4, 2] = np.nan
    trace = made_trace({0: LayerMaps(broken, causal_rule(6, 6))})
    found = heads.survey(trace)
    assert found.n_not_finite == 1 and np.isnan(found.thumbnails[0, 1, 4]).all()
    np.testing.assert_allclose(found.measures["largest"][0, 1], weights[1, [1, 2, 3, 5]].max(axis=1).mean(), atol=1e-6)


def test_survey_reports_progress_and_can_be_stopped():
    seen = []
    heads.survey(random_trace(5, n_layers=3), on_layer=lambda done, n: seen.append((done, n)))
    assert seen == [(1, 3), (2, 3), (3, 3)]

    def stop(done, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heads.survey(random_trace(5), on_layer=stop)


def test_map_change_is_the_total_variation_of_rows_with_a_choice():
    before, after = random_trace(11, seed=1), random_trace(11, seed=2)
    change = heads.map_change(before, after)
    for layer in (0, 1):
        for head in range(3):
            a, b = before.weights(layer, head), after.weights(layer, head)
            expected = np.mean([np.abs(a[row] - b[row]).sum() / 2 for row in range(1, 11)])
            np.testing.assert_allclose(change[layer, head], expected, atol=1e-6)


def test_map_change_is_zero_for_itself_one_for_disjoint_rows_and_the_same_both_ways():
    trace = random_trace(8)
    np.testing.assert_array_equal(heads.map_change(trace, trace), 0)
    one, other = (
        made_trace({0: LayerMaps(np.eye(6, dtype=np.float32)[None, order], full_mask(6, 6))})
        for order in ([*range(6)], [*range(5, -1, -1)])
    )
    np.testing.assert_allclose(heads.map_change(one, other), 1)
    other = random_trace(8, seed=9)
    np.testing.assert_allclose(heads.map_change(trace, other), heads.map_change(other, trace))


def test_map_change_by_switches_on_one_trace():
    trace = random_trace(8)
    change = heads.map_change(trace, trace, switches_after=Switches(causal=False))
    a, b = trace.weights(1, 2), trace.weights(1, 2, switches=Switches(causal=False))
    np.testing.assert_allclose(change[1, 2], np.abs(a - b).sum(axis=1).mean() / 2, atol=1e-6)  # row 0 has a choice now


def test_map_change_needs_traces_that_fit():
    with pytest.raises(ValueError, match="as many tokens, got 5 and 6"):
        heads.map_change(random_trace(5), random_trace(6))
    with pytest.raises(ValueError, match="different layers or heads"):
        heads.map_change(random_trace(5), random_trace(5, n_heads=2))


def test_strongest_sorts_and_leaves_nan_out():
    values = RNG.permutation(12).reshape(3, 4).astype(float)
    values[1, 2] = np.nan
    found = heads.strongest(values, (2, 4, 8), 20)
    assert len(found) == 11 and [value for _, _, value in found] == sorted((v for _, _, v in found), reverse=True)
    assert all(values[(2, 4, 8).index(layer), head] == value for layer, head, value in found)
    assert heads.strongest(values, (2, 4, 8), 0) == []


@given(n=st.integers(1, 3000), most=st.integers(1, 600), cells=st.integers(1, 40))
def test_spaced_rows_and_blocks(n, most, cells):
    rows = spaced_rows(n, most)
    assert 1 <= len(rows) <= most and rows[-1] == n - 1
    assert rows.step == 1 or n > most
    assert [row for block in row_blocks(rows, 100 * cells, 1000) for row in block] == list(rows)


def here(weights, tokens, **options):
    return heads.here(weights, np.tri(*weights.shape, dtype=bool), tokens, **options)


def test_here_names_what_a_head_does():
    tokens = made_tokens(IDS)
    n = len(IDS)
    rest = np.tile(np.eye(n)[0], (n, 1))
    assert (found := here(0.98 * rest + 0.02 * np.eye(n), tokens)).kind == "rest"
    assert "98 %" in found.sentence and tokens[0].label in found.sentence and found.cell == (1, 1)
    back = np.vstack([np.eye(n)[0], np.eye(n)[:-1]])
    assert (found := here(back, tokens)).kind == "previous" and found.value == 1 and found.n == n - 2
    assert here(np.tri(n) / np.arange(1, n + 1)[:, None], tokens).kind == "even"
    look = 0.45 * rest + 0.55 * np.eye(n)
    look[6] = 0.1 * np.eye(n)[0] + 0.81 * np.eye(n)[4] + 0.09 * np.eye(n)[6]
    look[1:6] = look[7:] = 0.45 * np.eye(n)[0] + 0.2 * np.eye(n)[1]
    found = here(look, tokens)
    assert found.kind == "look" and found.cell == (6, 4) and "81 % of the row of “‹w7›” is on “‹w2›”" in found.sentence
    look[1:6, 0] = look[7:, 0] = 0.7
    assert here(look, tokens).kind == "mostly rest"


def test_here_sees_an_active_induction_head_among_resting_rows():
    tokens = made_tokens(IDS)
    weights = np.tile(np.eye(10)[0], (10, 1))
    for query in range(10):
        targets = [key for key in range(10) if is_after_same(query, key)]
        if targets:
            weights[query] = 0.8 * np.eye(10)[targets].mean(axis=0) + 0.2 * np.eye(10)[0]
    found = here(weights, tokens)
    n = sum(any(is_after_same(query, key) for key in range(10)) for query in range(10))
    assert found.kind == "induction" and found.n == n
    np.testing.assert_allclose(found.value, 0.8)


def test_here_without_a_choice_and_with_special_tokens():
    assert here(np.ones((1, 1)), made_tokens([3])).kind == "nothing"
    weights = np.tile([0.5, 0.01, 0.01, 0.01, 0.47], (5, 1))
    found = heads.here(weights, np.ones((5, 5), bool), made_tokens(range(5), special=(0, 4)))
    assert found.kind == "rest" and found.n == 3 and "‹w0› and ‹w4›" in found.sentence
    np.testing.assert_allclose(found.value, 0.97)


def test_here_on_cross_attention_names_the_query_of_the_other_text():
    weights = np.array([[0.2, 0.1, 0.7], [0.3, 0.5, 0.2]])
    queries = made_tokens([50, 60])
    found = heads.here(weights, np.ones((2, 3), bool), made_tokens(range(3)), query_tokens=queries)
    assert found.cell == (0, 2) and "row of “‹w50›” is on “‹w2›”" in found.sentence
    with pytest.raises(ValueError, match="each of 2 queries"):
        heads.here(weights, np.ones((2, 3), bool), made_tokens(range(3)), query_tokens=queries[:1])
    with pytest.raises(ValueError, match="3 keys"):
        heads.here(weights, np.ones((2, 2), bool), made_tokens(range(3)))


def test_heads_of_a_real_decoder(smollm2):
    trace = smollm2.trace(SENTENCE)
    found = heads.survey(trace)
    assert found.thumbnails.shape == (30, 9, 13, 13)
    assert heads.strongest(found.measures["previous_token"], found.layers, 1)[0][:2] == (16, 0)
    assert heads.strongest(found.measures["first_token"], found.layers, 1)[0][:2] == (18, 8)
    np.testing.assert_allclose(
        found.thumbnails[16, 0][np.tri(13, dtype=bool)], trace.weights(16, 0)[np.tri(13, dtype=bool)], atol=1e-6
    )
    kinds = {
        place: heads.here(trace.weights(*place), trace.allowed(*place), trace.tokens).kind
        for place in ((16, 0), (18, 6))
    }
    assert kinds == {(16, 0): "previous", (18, 6): "rest"}


def test_heads_of_a_real_encoder(minilm):
    trace = minilm.trace(SENTENCE)
    found = heads.survey(trace)
    assert heads.strongest(found.measures["previous_token"], found.layers, 1)[0][:2] == (0, 2)
    kinds = {
        place: heads.here(trace.weights(*place), trace.allowed(*place), trace.tokens).kind for place in ((0, 2), (1, 8))
    }
    assert kinds == {(0, 2): "previous", (1, 8): "next"}
