import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.softmax.row_sharpness import (
    LARGEST_NORM,
    Histogram,
    histogram,
    jacobian_norm,
    saturated_share,
)
from attnviz.core.softmax.sharpness import heads_in_scope, measure_saturation, saturation_report
from attnviz.core.trace.records import LayerMaps, LayerRecord
from attnviz.core.trace.switches import Switches
from tests.core.made_traces import made_layer, made_tokens, made_trace, random_trace, random_weights

RNG = np.random.default_rng(3)
MAPS_ALONE = LayerMaps(np.ones((1, 1, 1), np.float32), causal_rule(1, 1))
SENTENCE = "The animal didn't cross the street because it was too tired."


@pytest.mark.parametrize("sharp", [0.1, 1.0, 10.0, 40.0])
def test_jacobian_norm_equals_autograd(sharp):
    scores = sharp * torch.randn(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = [
        torch.autograd.functional.jacobian(lambda row: torch.softmax(row, dim=-1), row).norm().item() for row in scores
    ]
    np.testing.assert_allclose(jacobian_norm(torch.softmax(scores, dim=-1).numpy()), expected, rtol=1e-9, atol=1e-8)


def test_jacobian_norm_equals_the_matrix_also_for_rows_below_one():
    rows = random_weights(RNG, 5, 8, causal=False) * RNG.uniform(0.2, 1, size=(5, 1))
    expected = [np.linalg.norm(np.diag(a) - np.outer(a, a)) for a in rows]
    np.testing.assert_allclose(jacobian_norm(rows), expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10, 256])
def test_jacobian_norm_of_equal_shares_has_a_closed_form(n):
    np.testing.assert_allclose(jacobian_norm(np.full((1, n), 1 / n)), np.sqrt((n - 1) / n**2))


@given(hnp.arrays(np.float64, (4, 6), elements=st.floats(-30, 30)))
def test_jacobian_norm_has_its_range(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    norms = jacobian_norm(weights / weights.sum(axis=1, keepdims=True))
    assert (norms >= 0).all() and (norms <= LARGEST_NORM + 1e-12).all()


@given(
    values=hnp.arrays(np.float64, st.integers(0, 30), elements=st.floats(0, 1)),
    odd=st.lists(st.sampled_from([np.nan, np.inf, -np.inf])),
    bins=st.integers(1, 20),
)
def test_histogram_counts_and_names_what_is_not_finite(values, odd, bins):
    found = histogram([*values, *odd], bins=bins)
    counts, edges = np.histogram(values, bins=bins, range=(0, 1))
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(found.edges, edges)
    assert found.n == len(values) and found.n_not_finite == len(odd)


def assert_counts(found: Histogram, values) -> None:
    counts, _ = np.histogram(np.asarray(values, np.float64), bins=len(found.counts), range=(0, 1))
    np.testing.assert_array_equal(found.counts, counts)


@pytest.mark.parametrize("bins", [7, 20, 50])
@pytest.mark.parametrize("causal", [True, False])
def test_weight_counts_equal_numpy_on_allowed_cells(causal, bins, monkeypatch):
    monkeypatch.setattr("attnviz.core.trace.row_picks.BLOCK_CELLS", 100)
    trace = random_trace(17, causal=causal, sharp=4.0)
    heads = heads_in_scope(trace, "all")
    cells = np.concatenate([trace.weights(*place)[trace.allowed(*place)] for place in heads])
    found = measure_saturation(trace, heads, bins=bins).weights
    assert found.n == 6 * (17 * 18 // 2 if causal else 17**2)
    assert_counts(found, cells)


def test_weights_next_to_an_edge_go_to_their_own_side():
    weights = np.array([[[0.7, 0.3], [0.1, 0.9]]], np.float32)  # 0.7 in float32 is below 7/10, and so on
    trace = made_trace({0: LayerMaps(weights, full_mask(2, 2))})
    assert_counts(measure_saturation(trace, [(0, 0)], bins=10).weights, weights)


def test_weight_counts_of_some_heads_with_a_look_forbidden():
    trace = random_trace(9)
    switches = Switches(forbid=frozenset({(1, 0, 5, 2), (0, 1, 1, 0)}), temperature=0.5)
    heads = [(1, 2), (0, 1), (1, 0)]
    cells = [trace.weights(*h, switches=switches)[trace.allowed(*h, switches=switches)] for h in heads]
    found = measure_saturation(trace, heads, switches=switches)
    assert_counts(found.weights, np.concatenate(cells))
    assert found.weights.n == 3 * 45 - 2 and found.n_single == 4  # row 1 of L0 H1 is left with one key


def test_thirteen_causal_tokens_have_91_cells_a_head_and_90_with_a_choice():
    trace = random_trace(13)
    assert measure_saturation(trace, [(0, 1)]).weights.n == 91
    assert measure_saturation(trace, [(0, 1)]).n_single == 1
    found = measure_saturation(trace, heads_in_scope(trace, "layer", 1))
    assert found.weights.n == 3 * 91 and found.n_single == 3 and len(found.maxima) == 3 * 12


def test_rows_are_measured_as_a_loop_does():
    trace = random_trace(12, sharp=5.0)
    found = measure_saturation(trace, heads_in_scope(trace, "all"))
    rows = [trace.weights(layer, head)[row] for layer in (0, 1) for head in range(3) for row in range(1, 12)]
    np.testing.assert_allclose(np.sort(found.maxima), np.sort([row.max() for row in rows]))
    np.testing.assert_allclose(np.sort(found.norms), np.sort([float(jacobian_norm(row[None])[0]) for row in rows]))
    share = found.saturated(0.8)
    above = [row for row in rows if row.max() > 0.8]
    at_rest = sum(row.argmax() == 0 for row in above)
    assert 0 < at_rest < len(above)
    np.testing.assert_allclose([share.at_rest, share.elsewhere], [at_rest / 66, (len(above) - at_rest) / 66])
    np.testing.assert_allclose(share.share, len(above) / 66)
    np.testing.assert_allclose(found.norm_quantiles([0.5]), np.median(found.norms))


def test_special_tokens_are_resting_places():
    weights = np.full((1, 4, 4), 0.001, np.float32)
    weights[0, range(4), [0, 3, 2, 3]] = 0.997
    trace = made_trace({0: LayerMaps(weights, full_mask(4, 4))}, tokens=made_tokens(range(4), special=(0, 3)))
    share = measure_saturation(trace, [(0, 0)]).saturated()
    np.testing.assert_allclose([share.at_rest, share.elsewhere], [0.75, 0.25])


def test_weights_that_are_not_finite_are_counted_not_fatal():
    weights = random_weights(RNG, 2, 6, 6).astype(np.float32)
    weights[0, 3, 1] = np.nan
    weights[1, 5, 0] = np.inf
    found = measure_saturation(made_trace({0: LayerMaps(weights, causal_rule(6, 6))}), [(0, 0), (0, 1)])
    assert found.n_broken == 2 and found.weights.n_not_finite == 4 + 6 and found.weights.n == 2 * 21 - 10
    assert len(found.maxima) == 8 and np.isfinite(found.norms).all()


def test_heads_whose_q_or_k_overflowed_are_counted_and_the_others_measured():
    layer = made_layer(RNG, 4, causal_rule(5, 5), kv_heads=2)
    q, k = layer.q.copy(), layer.k.copy()
    q[0, 2, 3], k[1, 0, 0] = np.inf, np.nan  # head 0, and heads 2 and 3, which share key head 1
    broken = made_trace({0: LayerRecord(q, k, layer.v, layer.scale, layer.mask)})
    sound = made_trace({0: layer})
    found = measure_saturation(broken, heads_in_scope(broken, "all"))
    expected = measure_saturation(sound, [(0, 1)])
    assert found.n_broken == 3 * 5 and found.weights.n_not_finite == 3 * 15
    np.testing.assert_array_equal(found.weights.counts, expected.weights.counts)
    np.testing.assert_allclose(found.norms, expected.norms)
    report = saturation_report(broken, "head", 0, 0)
    assert report.before.weights.n == 0 and np.isnan(report.before.norm_quantiles()).all()
    assert report.before.saturated().share == 0 and report.before.saturated().n == 0


def test_report_compares_with_and_without_the_factor():
    trace = random_trace(14, sharp=6.0)
    report = saturation_report(trace, "layer", 1)
    assert report.heads == ((1, 0), (1, 1), (1, 2))
    unscaled = np.concatenate([trace.weights(1, h, switches=Switches(scaled=False))[1:].max(axis=1) for h in range(3)])
    np.testing.assert_allclose(np.sort(report.after.maxima), np.sort(unscaled))
    assert report.after.saturated().share > report.before.saturated().share
    same = saturation_report(trace, "layer", 1, after=Switches(temperature=trace.scale(1)))
    np.testing.assert_allclose(np.sort(same.after.norms), np.sort(report.after.norms), atol=1e-5)


def test_report_keeps_the_other_switches_of_the_pass():
    trace = random_trace(8, switches=Switches(causal=False, temperature=2.0, forbid=frozenset({(None, None, 3, 1)})))
    report = saturation_report(trace)
    assert report.switches_after == Switches(False, False, 2.0, forbid=trace.switches.forbid)
    assert report.before.weights.n == report.after.weights.n == 6 * 63


def test_memory_stays_small_on_a_long_text():
    trace = random_trace(6000, n_layers=1, n_heads=2)
    tracemalloc.start()
    measure_saturation(trace, heads_in_scope(trace, "all"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6  # all of the two maps would take 288 MB


def test_long_texts_use_spaced_rows():
    trace = random_trace(100, n_layers=1)
    found = measure_saturation(trace, [(0, 0)], max_rows=30)
    assert (found.n_rows, found.n_rows_used) == (100, 25)
    np.testing.assert_allclose(np.sort(found.maxima), np.sort(trace.weights(0, 0)[3::4].max(axis=1)), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: heads_in_scope(random_trace(3), "some"), "scope must be"),
        (lambda: heads_in_scope(random_trace(3), "layer"), "needs a layer"),
        (lambda: heads_in_scope(random_trace(3), "head", 1), "needs a layer and a head"),
        (lambda: heads_in_scope(random_trace(3), "head", 1, 9), "heads 0 to 2"),
        (lambda: measure_saturation(random_trace(3), []).weights, "1 head"),
        (lambda: measure_saturation(random_trace(3), [(0, 0)], bins=0).weights, "1 bin"),
        (lambda: measure_saturation(random_trace(3), [(7, 0)]).weights, "layer 7"),
        (lambda: measure_saturation(random_trace(3), [(0, 0), (0, 1), (0, 3)]).weights, "heads 0 to 2"),
        (lambda: saturated_share([0.5], [True, False]), "one mark for each row"),
        (lambda: histogram([2.0]), "values from 0"),
        (lambda: saturation_report(made_trace({0: MAPS_ALONE})), "maps"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_saturation_of_a_real_model(smollm2):
    report = saturation_report(smollm2.trace(SENTENCE))
    assert report.before.weights.n == 270 * 91 and len(report.before.maxima) == 270 * 12
    before, after = report.before.saturated(), report.after.saturated()
    np.testing.assert_allclose([before.share, after.share], [0.059, 0.807], atol=0.005)
    np.testing.assert_allclose([before.elsewhere, after.elsewhere], [0.0003, 0.092], atol=0.003)
