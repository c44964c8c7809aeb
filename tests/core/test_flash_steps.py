"""The film of FlashAttention against attention at once, against `blockwise`, and against its own definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.core.attention.textbook import attention_scores, scaled_dot_product_attention
from attnviz.core.blockwise.fast_memory import blockwise_steps, fast_memory, flash_steps
from attnviz.core.blockwise.online import blockwise_attention
from tests.core.made_heads import DTYPES, ONES, ROW_2, SEEDS, SIZES, close, heads, random_mask

KINDS = st.sampled_from(["none", "boolean", "additive"])
BLOCKS = st.integers(1, 8)
few = settings(max_examples=60, deadline=None)


@few
@given(SEEDS, DTYPES, SIZES, SIZES, BLOCKS, BLOCKS, KINDS, st.booleans(), st.booleans(), st.sampled_from([None, 1.0]))
def test_each_step_is_attention_over_the_keys_so_far(
    seed, dtype, queries, keys, block_q, block_k, kind, causal, skip, scale
):
    rng = np.random.default_rng(seed)
    keys = max(keys, queries) if causal else keys
    q, k, v = heads(rng, queries=queries, keys=keys, dtype=dtype)
    rule = {"causal": causal, "mask": random_mask(rng, kind, queries, keys), "scale": scale}
    scores = attention_scores(q, k, **rule)
    tolerances = close(dtype, scores)
    steps = list(flash_steps(q, k, v, **rule, blocks=(block_q, block_k), skip=skip))

    rows, columns = -(-queries // block_q), -(-keys // block_k)
    assert [(step.i, step.j) for step in steps] == [(i, j) for i in range(rows) for j in range(columns)]
    before = None
    for step in steps:
        assert (step.queries.start, step.keys.start) == (step.i * block_q, step.j * block_k)
        assert step.finished == (step.j == columns - 1)
        block, seen = scores[step.queries, step.keys], scores[step.queries, : step.keys.stop]
        assert step.skipped == (skip and np.isneginf(block).all())
        if step.skipped:
            assert step.scores is None
        else:
            np.testing.assert_allclose(step.scores, block, **tolerances)
        known = np.isfinite(seen).any(axis=1)
        np.testing.assert_allclose(step.maximum, seen.max(axis=1), **tolerances)
        exps = np.exp(seen[known] - seen[known].max(axis=1, keepdims=True))
        np.testing.assert_allclose(step.total[known], exps.sum(axis=1), rtol=tolerances["atol"])
        so_far = exps @ v[: step.keys.stop] / exps.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(step.output[known], so_far, **tolerances)
        assert not step.output[~known].any()
        if step.j > 0:
            older = np.isfinite(before.maximum)
            np.testing.assert_allclose(step.rescale[older], np.exp((before.maximum - step.maximum)[older]), rtol=1e-6)
        before = step


@few
@given(SEEDS, DTYPES, SIZES, SIZES, BLOCKS, BLOCKS, KINDS, st.booleans(), st.booleans())
def test_the_finished_rows_are_the_output(seed, dtype, queries, keys, block_q, block_k, kind, causal, skip):
    rng = np.random.default_rng(seed)
    keys = max(keys, queries) if causal else keys
    q, k, v = heads(rng, queries=queries, keys=keys, dtype=dtype)
    rule = {"causal": causal, "mask": random_mask(rng, kind, queries, keys)}
    steps = flash_steps(q, k, v, **rule, blocks=(block_q, block_k), skip=skip)
    output = np.concatenate([step.output for step in steps if step.finished])
    tolerances = close(dtype, attention_scores(q, k, **rule))
    np.testing.assert_allclose(output, scaled_dot_product_attention(q, k, v, **rule)[0], **tolerances)
    np.testing.assert_allclose(output, blockwise_attention(q, k, v, **rule, block_size=5), **tolerances)


@few
@given(SEEDS, SIZES, BLOCKS, KINDS, st.booleans(), st.booleans())
def test_equal_blocks_make_the_steps_of_blockwise(seed, length, block, kind, causal, skip):
    rng = np.random.default_rng(seed)
    q, k, v = heads(rng, queries=length, keys=length)
    rule = {"causal": causal, "mask": random_mask(rng, kind, length, length)}
    mine = list(flash_steps(q, k, v, **rule, blocks=(block, block), skip=skip))
    theirs = list(blockwise_steps(q, k, v, **rule, block_size=block, skip_masked_blocks=skip))
    for step, other in zip(mine, theirs, strict=True):
        assert (step.queries, step.keys, step.skipped) == (other.queries, other.keys, other.skipped)
        for name in ("maximum", "total", "output", "rescale"):
            np.testing.assert_array_equal(getattr(step, name), getattr(other, name))


@pytest.mark.parametrize("order", [1, -1])
def test_rising_scores_rescale_and_falling_ones_do_not(order):
    scores = np.arange(8.0)[::order]
    steps = list(flash_steps(np.ones((1, 1)), scores[:, None], np.ones((8, 2)), scale=1.0, blocks=(1, 2)))
    assert steps[0].rescale.tolist() == [0.0]  # nothing came before
    later = np.concatenate([step.rescale for step in steps[1:]])
    np.testing.assert_allclose(later, np.exp(-2.0) if order == 1 else 1.0)


@pytest.mark.parametrize(("block_q", "block_k"), [(2, 2), (4, 2), (2, 4), (8, 8)])
def test_causal_skips_what_is_wholly_above_the_diagonal(block_q, block_k):
    q, k, v = heads(np.random.default_rng(0), queries=8, keys=8)
    steps = list(flash_steps(q, k, v, causal=True, blocks=(block_q, block_k)))
    skipped = {(step.i, step.j) for step in steps if step.skipped}
    above = {(step.i, step.j) for step in steps if step.keys.start > step.queries.stop - 1}
    assert skipped == above
    mask = np.tril(np.ones((8, 8), bool))
    by_mask = flash_steps(q, k, v, mask=mask, blocks=(block_q, block_k))
    assert {(step.i, step.j) for step in by_mask if step.skipped} == above
    assert not any(step.skipped for step in flash_steps(q, k, v, causal=True, blocks=(2, 2), skip=False))


@pytest.mark.parametrize("block", [1, 2, 4, 16, 32])
def test_skipping_leaves_s_times_s_plus_block_over_two_pairs(block):
    s = 32
    q, k, v = heads(np.random.default_rng(0), queries=s, keys=s, d_head=1, d_value=1)
    steps = flash_steps(q, k, v, causal=True, blocks=(block, block))
    assert sum(step.scores.size for step in steps if not step.skipped) == s * (s + block) // 2


@few
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_fast_memory_is_that_of_the_arrays(block_q, block_k, d_head, d_value):
    q, k, v = heads(np.random.default_rng(0), queries=block_q, keys=block_k, d_head=d_head, d_value=d_value)
    (step,) = flash_steps(q, k, v, blocks=(block_q, block_k))
    needed = fast_memory(block_q, block_k, d_head, 8, d_value=d_value)
    assert (needed.queries, needed.keys, needed.values) == (q.nbytes, k.nbytes, v.nbytes)
    assert (needed.scores, needed.output) == (step.scores.nbytes, step.output.nbytes)
    assert needed.running == step.maximum.nbytes + step.total.nbytes
    parts = (q, k, v, step.scores, step.output, step.maximum, step.total)
    assert needed.total == sum(array.nbytes for array in parts)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((ONES, ONES, ONES), {"mask": ROW_2, "blocks": (2, 64)}, r"nothing to attend to: .* row \(2,\)"),
        ((ONES, ONES, ONES), {"blocks": (0, 64)}, "at least 1 query and 1 key, got 0 and 64"),
        ((ONES, ONES, ONES), {"blocks": (64, -1)}, "at least 1 query and 1 key, got 64 and -1"),
        ((ONES, ONES, ONES[:2]), {}, "one value for each key: 4 keys, got 2 values"),
        ((ONES[None], ONES, ONES), {}, r"one head, two axes each, got shapes \(1, 4, 3\)"),
        ((ONES * np.nan, ONES, ONES), {}, "finite or -inf .*, got nan"),
    ],
)
def test_refuses(arrays, options, message):
    with pytest.raises(ValueError, match=message):
        list(flash_steps(*arrays, **options))


def test_refuses_at_the_call():
    with pytest.raises(ValueError, match="same d_head"):
        flash_steps(ONES, ONES[:, :2], ONES)
    with pytest.raises(ValueError, match=r"at least 1, got \(1, 0, 1, 4, 1\)"):
        fast_memory(1, 0, 1)
