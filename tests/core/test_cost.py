"""Multiply-adds counted against loops over matrix products, and the checked figures."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.core.cost.formulas import (
    LayerCost,
    Shape,
    cache_bytes,
    layer_cost,
    meeting_point,
    row_sum_bytes,
    score_bytes,
    step_cost,
    step_meeting_point,
)

SMOLLM2 = Shape(576, 9, 3, 64, 1536, 30, gated=True, vocabulary=49_152)
few = settings(max_examples=60, deadline=None)


def classic(d):
    """Plain multi-head attention with an MLP of four times the width."""
    return Shape(d, n_heads=d // 64, n_kv_heads=d // 64, d_head=64, d_ff=4 * d, n_layers=12, gated=False)


@st.composite
def shapes(draw):
    n_kv_heads, share = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 40)) for _ in range(3)]
    layers, gated, vocabulary = draw(st.integers(1, 5)), draw(st.booleans()), draw(st.integers(0, 50))
    return Shape(sizes[0], n_kv_heads * share, n_kv_heads, *sizes[1:], layers, gated, vocabulary)


def products(shape, passing, keys):
    """The matrix products of one layer for `passing` tokens that look at `keys`, each (rows, inner, columns)."""
    q, kv = shape.n_heads * shape.d_head, shape.n_kv_heads * shape.d_head
    up = ["gate", "up"] if shape.gated else ["up"]
    return {
        "projections": [(passing, shape.d_model, n) for n in (q, kv, kv)] + [(passing, q, shape.d_model)],
        "attention": [(passing, shape.d_head, keys), (passing, keys, shape.d_head)] * shape.n_heads,
        "mlp": [(passing, shape.d_model, shape.d_ff) for _ in up] + [(passing, shape.d_ff, shape.d_model)],
    }


def multiply_adds(of):
    return {part: sum(math.prod(sizes) for sizes in each) for part, each in of.items()}


@few
@given(shapes(), st.integers(1, 300))
def test_a_layer_is_the_sum_of_its_matrix_products(shape, s):
    assert layer_cost(shape, s) == LayerCost(**multiply_adds(products(shape, s, s)))
    halved = layer_cost(shape, s, causal_skipped=True)
    assert 2 * halved.attention == layer_cost(shape, s).attention
    assert halved.projections + halved.attention + halved.mlp == halved.total


@few
@given(shapes(), st.integers(1, 300), st.booleans())
def test_a_step_is_the_sum_of_its_matrix_products(shape, t, cache):
    step = step_cost(shape, t, cache=cache)
    one_layer = multiply_adds(products(shape, 1 if cache else t, t))
    parts = {part: getattr(step, part) for part in one_layer}
    assert parts == {part: shape.n_layers * count for part, count in one_layer.items()}
    assert step.unembedding == shape.d_model * shape.vocabulary
    assert step.total == sum(parts.values()) + step.unembedding


def test_checked_figures():
    at_d, at_32768 = layer_cost(classic(4096), 4096), layer_cost(classic(4096), 32_768)
    assert at_d.projections == 4 * 4096**3 == pytest.approx(2.7e11, rel=0.02)
    assert at_d.attention == 2 * 4096**3 == pytest.approx(1.4e11, rel=0.02)
    assert at_d.mlp == 2 * at_d.projections
    assert at_32768.projections == pytest.approx(2.2e12, rel=0.005)
    assert at_32768.attention == pytest.approx(8.8e12, rel=0.005)
    assert at_32768.attention == 4 * at_32768.projections


@pytest.mark.parametrize("d", [64, 768, 4096])
def test_where_attention_meets_the_rest_of_a_classic_layer(d):
    assert meeting_point(classic(d), with_mlp=False) == 2 * d
    assert meeting_point(classic(d)) == 6 * d
    assert meeting_point(classic(d), with_mlp=False, causal_skipped=True) == 4 * d
    assert meeting_point(classic(d), causal_skipped=True) == 12 * d


def test_where_attention_meets_the_rest_in_smollm2():
    assert meeting_point(SMOLLM2, with_mlp=False) == 768  # 1.33 d
    assert meeting_point(SMOLLM2) == 3072  # 5.33 d
    assert layer_cost(SMOLLM2, 768).projections == pytest.approx(2.667 * 768 * 576**2, rel=2e-4)


@few
@given(shapes(), st.booleans(), st.booleans())
def test_before_the_meeting_point_attention_is_the_smaller_part(shape, with_mlp, causal_skipped):
    meets = meeting_point(shape, with_mlp=with_mlp, causal_skipped=causal_skipped)
    for s in {max(1, math.floor(meets)), math.ceil(meets) + 1}:
        cost = layer_cost(shape, s, causal_skipped=causal_skipped)
        rest = cost.projections + (cost.mlp if with_mlp else 0)
        assert cost.attention <= rest if s <= meets else cost.attention > rest


def test_a_step_of_smollm2_with_cache():
    step = step_cost(SMOLLM2, 1000, cache=True)
    assert step.attention == 34_560 * 1000  # 2 L t d
    assert step.total - step.attention == pytest.approx(134.5e6, rel=2e-4)  # every weight once, embedding included
    assert math.ceil(step_meeting_point(SMOLLM2, cache=True)) == 3892


def test_a_step_of_smollm2_without_cache():
    step = step_cost(SMOLLM2, 1000, cache=False)
    assert step.attention == 34_560 * 1000**2  # 2 L d t^2
    assert step.projections + step.mlp == 106_168_320 * 1000
    assert step_meeting_point(replace(SMOLLM2, vocabulary=0), cache=False) == 3072
    assert round(step_meeting_point(SMOLLM2, cache=False)) == 3072


@pytest.mark.parametrize("t", [16, 512, 4096])
def test_the_cache_saves_a_factor_of_t_in_both_terms(t):
    with_cache, without = step_cost(SMOLLM2, t, cache=True), step_cost(SMOLLM2, t, cache=False)
    assert without.attention == t * with_cache.attention
    assert without.projections == t * with_cache.projections
    assert without.mlp == t * with_cache.mlp


@few
@given(shapes(), st.booleans())
def test_at_the_step_meeting_point_attention_equals_the_rest(shape, cache):
    t = step_meeting_point(shape, cache=cache)
    one = step_cost(shape, 1, cache=True)
    passing = 1 if cache else t
    rest = passing * (one.projections + one.mlp) + one.unembedding
    np.testing.assert_allclose(passing * t * one.attention, rest, rtol=1e-9)


def test_cache_bytes_of_smollm2():
    assert cache_bytes(SMOLLM2, 1, 4) == 46_080
    assert cache_bytes(SMOLLM2, 4104, 4) == 189_112_320
    every_head = replace(SMOLLM2, n_kv_heads=SMOLLM2.n_heads)
    assert cache_bytes(every_head, 4104, 4) == 3 * cache_bytes(SMOLLM2, 4104, 4)  # a third remains


@few
@given(shapes(), st.integers(0, 20), st.sampled_from([np.float16, np.float32, np.float64]))
def test_cache_bytes_are_those_of_the_arrays(shape, t, dtype):
    k = np.empty((shape.n_layers, shape.n_kv_heads, t, shape.d_head), dtype)
    assert cache_bytes(shape, t, np.dtype(dtype).itemsize) == k.nbytes + np.empty_like(k).nbytes


def test_half_bytes_are_rounded_up():
    assert cache_bytes(Shape(1, 1, 1, 1, 1, 1, gated=False), 3, 0.25) == 2


def test_score_bytes():
    assert score_bytes(8192, 32, 1, 2) == pytest.approx(4.3e9, rel=0.01)
    assert score_bytes(8192, 32, 32, 2) == pytest.approx(137e9, rel=0.01)
    assert score_bytes(7, 3, 2, 4) == np.empty((2, 3, 7, 7), np.float32).nbytes
    assert row_sum_bytes(7, 3, 2, 4) == np.empty((2, 3, 7), np.float32).nbytes
    assert score_bytes(8192, 32, 32, 4) == 8192 * row_sum_bytes(8192, 32, 32, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replace(SMOLLM2, n_kv_heads=2), "multiple of n_kv_heads, got 9 query heads and 2 key/value heads"),
        (lambda: replace(SMOLLM2, d_head=0), "d_head of at least 1, got 0"),
        (lambda: replace(SMOLLM2, vocabulary=-1), "vocabulary of at least 0, got -1"),
        (lambda: layer_cost(SMOLLM2, 0), "s of at least 1, got 0"),
        (lambda: step_cost(SMOLLM2, 0, cache=True), "t of at least 1, got 0"),
        (lambda: cache_bytes(SMOLLM2, -1, 4), "t of at least 0, got -1"),
        (lambda: cache_bytes(SMOLLM2, 1, 0), "bytes_per_number above 0, .* got 0"),
        (lambda: cache_bytes(SMOLLM2, 1, math.nan), "bytes_per_number above 0, .* got nan"),
        (lambda: score_bytes(1, 0, 1, 4), "heads of at least 1, got 0"),
        (lambda: row_sum_bytes(1, 1, 0, 4), "layers of at least 1, got 0"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
