"""The softmax as the formula writes it: where it holds, where it breaks, and what a mask of -1e9 does."""

import numpy as np
import pytest
import torch

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.attention.naive import largest_exponent, largest_product, masked_softmax, naive_softmax
from attnviz.core.attention.textbook import softmax
from attnviz.core.trace.records import LayerMaps
from tests.core.made_traces import made_layer, made_trace, random_trace

SCORES = np.random.default_rng(0).normal(size=(5, 7))


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 1e-3), (np.float32, 1e-6), (np.float64, 1e-15)])
def test_the_literal_softmax_is_the_softmax_while_nothing_overflows(dtype, atol):
    found = naive_softmax(SCORES, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, torch.softmax(torch.from_numpy(SCORES), dim=-1), atol=atol)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_it_breaks_just_above_the_largest_exponent_and_the_softmax_does_not(dtype):
    limit = largest_exponent(dtype)
    below, above = ([0.999 * limit, 0.0], [1.001 * limit, 0.0])
    np.testing.assert_allclose(naive_softmax(below, dtype), [1, 0], atol=1e-4)
    np.testing.assert_array_equal(naive_softmax(above, dtype), [np.nan, 0])
    np.testing.assert_allclose(softmax(above), [1, 0], atol=1e-4)


def test_the_largest_exponents_are_those_of_the_formats():
    for dtype, kind in ((np.float16, torch.float16), (np.float32, torch.float32), (np.float64, torch.float64)):
        assert largest_exponent(dtype) == pytest.approx(np.log(torch.finfo(kind).max))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("stand_in", [-np.inf, -1e9])
def test_both_stand_ins_agree_on_rows_with_an_allowed_key(dtype, stand_in):
    allowed = np.tri(5, 7, dtype=bool)
    expected = torch.softmax(torch.from_numpy(np.where(allowed, SCORES, -np.inf)), dim=-1)
    found = masked_softmax(SCORES, allowed, stand_in, dtype)
    np.testing.assert_allclose(found, expected, atol=2e-3 if dtype == np.float16 else 1e-6)
    assert (found[~allowed] == 0).all()


def test_a_row_without_an_allowed_key_is_nan_or_looks_like_attention():
    nothing = np.zeros(7, bool)
    for dtype in (np.float16, np.float32, np.float64):
        assert np.isnan(masked_softmax(SCORES[0], nothing, -np.inf, dtype)).all()
    np.testing.assert_allclose(masked_softmax(SCORES[0], nothing, -1e9, np.float32), np.full(7, 1 / 7), rtol=1e-6)
    assert np.isnan(masked_softmax(SCORES[0], nothing, -1e9, np.float16)).all()  # there -1e9 is -inf
    with pytest.raises(ValueError, match="nothing to attend to"):
        softmax(np.where(nothing, SCORES[0], -np.inf))


@pytest.mark.parametrize("causal", [True, False])
def test_the_largest_product_is_the_largest_of_all_heads(causal):
    trace = random_trace(6, causal=causal, seed=3)
    found = largest_product(trace)
    best = -np.inf
    for layer in trace.layers:
        for head in range(trace.heads(layer)):
            q, k, _ = trace.qkv(layer, head)
            for query in range(1 if causal else 0, 6):  # a causal map's first row has no choice
                for key in range(query + 1 if causal else 6):
                    if q[query] @ k[key] > best:
                        best, where = q[query] @ k[key], (layer, head, query, key)
    assert found.value == pytest.approx(float(best), rel=1e-6)
    assert (found.layer, found.head, found.query, found.key) == where


def test_finished_maps_and_texts_of_one_token_have_no_largest_product():
    rule = causal_rule(3, 3)
    mixed = {0: LayerMaps(np.ones((1, 3, 3), np.float32), rule), 1: made_layer(np.random.default_rng(0), 1, rule)}
    assert largest_product(made_trace(mixed)).layer == 1
    alone = made_trace({0: made_layer(np.random.default_rng(0), 1, full_mask(1, 1))})
    for trace in (made_trace({0: mixed[0]}), alone):
        with pytest.raises(ValueError, match="two keys to choose from"):
            largest_product(trace)
