"""Attention in blocks against attention at once, and what the steps on the way must satisfy."""

import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from attnviz.core.attention.textbook import attention_scores, scaled_dot_product_attention
from attnviz.core.blockwise.fast_memory import blockwise_steps
from attnviz.core.blockwise.online import blockwise_attention, merge_block, nothing_seen
from tests.cases import every
from tests.core.made_heads import DTYPES, ONES, ROW_2, SEEDS, SIZES, close, heads, random_mask

BATCHES = st.lists(st.integers(1, 2), max_size=2).map(tuple)
few = settings(max_examples=60, deadline=None)


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, SIZES, st.sampled_from([1, 2, 7, 64]), st.booleans(), st.booleans(), st.data())
def test_equals_attention_at_once(seed, dtype, batch, queries, keys, block_size, causal, skip, data):
    rng = np.random.default_rng(seed)
    keys = max(keys, queries) if causal else keys
    q, k, v = heads(rng, *batch, queries=queries, keys=keys, dtype=dtype)
    mask = random_mask(rng, data.draw(st.sampled_from(["none", "boolean", "additive"])), queries, keys)
    options = {"causal": causal, "mask": mask, "scale": data.draw(st.sampled_from([None, 1.0]))}
    expected, _ = scaled_dot_product_attention(q, k, v, **options)
    output = blockwise_attention(q, k, v, **options, block_size=block_size, skip_masked_blocks=skip)
    assert output.dtype == dtype
    np.testing.assert_allclose(output, expected, **close(dtype, attention_scores(q, k, **options)))


@every("dtype", [np.float32, np.float64])
@every("kind", ["none", "boolean", "additive"])
@every("block_size", [1, 7, 32, 50])
def test_equals_attention_at_once_on_longer_texts(block_size, kind, dtype):
    rng = np.random.default_rng(0)
    q, k, v = heads(rng, 2, queries=50, keys=50, d_head=16, dtype=dtype)
    mask = random_mask(rng, kind, 50, 50)
    for causal in (False, True):
        expected, _ = scaled_dot_product_attention(q, k, v, mask=mask, causal=causal)
        output = blockwise_attention(q, k, v, mask=mask, causal=causal, block_size=block_size)
        np.testing.assert_allclose(output, expected, **close(dtype, attention_scores(q, k)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_torch(dtype):
    q, k, v = heads(np.random.default_rng(1), 2, 3, queries=100, keys=100, dtype=dtype)
    expected = functional.scaled_dot_product_attention(*(torch.tensor(x) for x in (q, k, v)), is_causal=True)
    output = blockwise_attention(q, k, v, causal=True, block_size=16)
    np.testing.assert_allclose(output, expected.numpy(), **close(dtype, attention_scores(q, k)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("block_size", [1, 7, 64])
def test_large_scores_rising_or_falling(block_size, order, dtype):
    # up to 1e4, far above 88, where exp overflows in float32; rising scores rescale the sums at every block
    rng = np.random.default_rng(2)
    scores = np.sort(rng.uniform(-1e4, 1e4, size=100))[::order]
    q, k, v = np.ones((3, 1), dtype), scores[:, None].astype(dtype), rng.normal(size=(100, 4)).astype(dtype)
    expected, _ = scaled_dot_product_attention(q, k, v, scale=1.0)
    output = blockwise_attention(q, k, v, scale=1.0, block_size=block_size)
    np.testing.assert_allclose(output, expected, **close(dtype, scores))
    np.testing.assert_allclose(output, np.broadcast_to(v[np.argmax(scores)], (3, 4)), atol=1e-6)


@few
@given(SEEDS, st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]), st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))
def test_leading_axes_broadcast(seed, of_queries, of_values):
    rng = np.random.default_rng(seed)
    q, k, _ = heads(rng, *of_queries, queries=5, keys=9)
    _, _, v = heads(rng, *of_values, queries=5, keys=9)
    k = k[(0,) * len(of_queries)]
    mask = rng.random((*of_queries, 5, 9)) < 0.5
    mask[..., 4] = True
    expected, _ = scaled_dot_product_attention(q, k, v, mask=mask)
    output = blockwise_attention(q, k, v, mask=mask, block_size=2)
    assert output.shape == expected.shape
    np.testing.assert_allclose(output, expected, atol=1e-12)


def test_rows_whose_first_blocks_are_masked():
    q, k, v = heads(np.random.default_rng(0), queries=6, keys=12)
    allowed = np.arange(12) >= 2 * np.arange(6)[:, None]  # query i sees keys from 2 i on
    expected, _ = scaled_dot_product_attention(q, k, v, mask=allowed)
    for skip in (True, False):
        output = blockwise_attention(q, k, v, mask=allowed, block_size=2, skip_masked_blocks=skip)
        np.testing.assert_allclose(output, expected, atol=1e-12)
        for step in blockwise_steps(q, k, v, mask=allowed, block_size=2, skip_masked_blocks=skip):
            unseen = ~allowed[step.queries, : step.keys.stop].any(axis=1)
            np.testing.assert_array_equal(step.maximum[unseen], -np.inf)
            np.testing.assert_array_equal(step.total[unseen], 0)
            np.testing.assert_array_equal(step.output[unseen], 0)
            assert (step.total[~unseen] >= 1).all()


def test_the_map_is_never_held():
    length = 1536
    q, k, v = heads(np.random.default_rng(0), queries=length, keys=length, d_head=4, d_value=4, dtype=np.float32)

    def peak(attend):
        tracemalloc.start()
        attend()
        bytes_at_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_at_most

    whole_map = length * length * 4
    assert peak(lambda: scaled_dot_product_attention(q, k, v, causal=True)) > whole_map
    for causal in (False, True):
        assert peak(lambda causal=causal: blockwise_attention(q, k, v, causal=causal)) < whole_map / 20


# the steps


@few
@given(SEEDS, DTYPES, SIZES, SIZES, st.integers(1, 8), st.booleans(), st.booleans(), st.data())
def test_each_step_is_attention_over_the_keys_so_far(seed, dtype, queries, keys, block_size, causal, skip, data):
    rng = np.random.default_rng(seed)
    keys = max(keys, queries) if causal else keys
    q, k, v = heads(rng, queries=queries, keys=keys, dtype=dtype)
    mask = random_mask(rng, data.draw(st.sampled_from(["none", "boolean", "additive"])), queries, keys)
    scores = attention_scores(q, k, causal=causal, mask=mask)
    tolerances = close(dtype, scores)
    steps = list(blockwise_steps(q, k, v, causal=causal, mask=mask, block_size=block_size, skip_masked_blocks=skip))

    starts = [(step.queries.start, step.keys.start) for step in steps]
    assert starts == [(i, j) for i in range(0, queries, block_size) for j in range(0, keys, block_size)]
    before = -np.inf
    for step in steps:
        seen = scores[step.queries, : step.keys.stop]
        known = np.isfinite(seen).any(axis=1)
        assert step.skipped == (skip and np.isneginf(scores[step.queries, step.keys]).all())
        np.testing.assert_allclose(step.maximum, seen.max(axis=1), **tolerances)
        exps = np.exp(seen[known] - seen[known].max(axis=1, keepdims=True))
        np.testing.assert_allclose(step.total[known], exps.sum(axis=1), rtol=tolerances["atol"])
        so_far = exps @ v[: step.keys.stop] / exps.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(step.output[known], so_far, **tolerances)
        if step.keys.start > 0:
            older = np.isfinite(before)
            factor = [
                math.exp(a - b) for a, b in zip(before[older].tolist(), step.maximum[older].tolist(), strict=True)
            ]
            np.testing.assert_allclose(step.rescale[older], factor, rtol=1e-6)
        before = step.maximum
    last = np.concatenate([step.output for step in steps if step.keys.stop == keys])
    options = {"causal": causal, "mask": mask, "block_size": block_size, "skip_masked_blocks": skip}
    np.testing.assert_array_equal(last, blockwise_attention(q, k, v, **options))


def test_causal_skips_the_blocks_above_the_diagonal():
    q, k, v = heads(np.random.default_rng(0), queries=8, keys=8)
    skipped = np.array([step.skipped for step in blockwise_steps(q, k, v, causal=True, block_size=2)]).reshape(4, 4)
    np.testing.assert_array_equal(skipped, np.triu(np.ones((4, 4), bool), 1))
    for step in blockwise_steps(q, k, v, causal=True, block_size=2):
        if step.skipped:
            np.testing.assert_array_equal(step.rescale, 1)
    assert not any(step.skipped for step in blockwise_steps(q, k, v, causal=True, skip_masked_blocks=False))


def test_merging_leaves_the_earlier_state_alone():
    rng = np.random.default_rng(0)
    before = merge_block(nothing_seen((3, 2), np.float64), rng.normal(size=(3, 4)), rng.normal(size=(4, 2)))
    kept = [before.maximum.copy(), before.total.copy(), before.weighted.copy()]
    merge_block(before, 10 + rng.normal(size=(3, 4)), rng.normal(size=(4, 2)))
    for array, copy in zip((before.maximum, before.total, before.weighted), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


@few
@given(SEEDS, DTYPES, st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_merging_blocks_of_any_width_is_one_softmax(seed, dtype, widths):
    rng = np.random.default_rng(seed)
    scores = 20 * rng.normal(size=(3, sum(widths))).astype(dtype)
    values = rng.normal(size=(sum(widths), 2)).astype(dtype)
    running = nothing_seen((3, 2), dtype)
    for stop, width in zip(np.cumsum(widths), widths, strict=True):
        running = merge_block(running, scores[:, stop - width : stop], values[stop - width : stop])
    weights = torch.softmax(torch.tensor(scores), -1).numpy()
    np.testing.assert_array_equal(running.maximum, scores.max(axis=1))
    np.testing.assert_allclose(running.output, weights @ values, **close(dtype, scores))


# errors


@pytest.mark.parametrize("attend", [blockwise_attention, lambda *a, **options: list(blockwise_steps(*a, **options))])
@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((ONES, ONES, ONES), {"mask": ROW_2}, r"nothing to attend to: .* row \(2,\)"),
        ((ONES, ONES, ONES), {"mask": ROW_2, "block_size": 1}, r"nothing to attend to: .* row \(2,\)"),
        ((ONES, ONES, ONES), {"mask": ROW_2, "skip_masked_blocks": False}, r"nothing to attend to: .* row \(2,\)"),
        ((ONES, ONES, ONES), {"mask": np.full((4, 4), -np.inf)}, r"nothing to attend to: .* row \(0,\)"),
        ((ONES, ONES[:2], ONES[:2]), {"causal": True}, r"nothing to attend to: .* row \(0,\)"),
        ((ONES, ONES[:0], ONES[:0]), {}, "nothing to attend to"),
        ((ONES, ONES, ONES), {"block_size": 0}, "block_size of at least 1, got 0"),
        ((ONES, ONES, ONES[:2]), {}, "one value for each key: 4 keys, got 2 values"),
        ((ONES, ONES[:, :2], ONES), {}, "same d_head of at least 1, got 3 and 2"),
        ((ONES, ONES, ONES), {"mask": np.ones((4, 3), bool)}, r"broadcasts to .*\(4, 4\), got \(4, 3\)"),
        ((ONES, ONES, ONES), {"mask": np.ones((4, 4), int)}, "mask: expected booleans"),
        ((ONES * np.nan, ONES, ONES), {}, "finite or -inf .*, got nan"),
        ((ONES, ONES, ONES), {"mask": np.full(4, np.inf)}, "got inf"),
    ],
)
def test_refuses(attend, arrays, options, message):
    with pytest.raises(ValueError, match=message):
        attend(*arrays, **options)


def test_refuses_an_empty_row_in_a_batch_by_its_place():
    mask = np.ones((2, 70, 70), bool)
    mask[1, 66] = False
    x = np.ones((2, 70, 3))
    with pytest.raises(ValueError, match=r"row \(1, 66\)"):
        blockwise_attention(x, x, x, mask=mask)


def test_steps_refuse_more_than_one_head_at_the_call():
    with pytest.raises(ValueError, match=r"one head, two axes each, got shapes \(1, 4, 3\)"):
        blockwise_steps(ONES[None], ONES, ONES)
