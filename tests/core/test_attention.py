"""The textbook functions against torch, against plain loops, and against what the lecture notes promise."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from attnviz.core.attention.textbook import (
    attention_scores,
    attention_step,
    causal_mask,
    merge_heads,
    multi_head_attention,
    repeat_kv,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)

DTYPES = st.sampled_from([np.float32, np.float64])
BATCHES = st.lists(st.integers(1, 3), max_size=2).map(tuple)
SIZES = st.integers(1, 7)
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


def tolerance(dtype, largest=0.0):
    """How far two correct softmaxes may lie apart: a score's rounding error grows with the score."""
    return (1e-6 if dtype == np.float32 else 1e-13) * (1 + largest)


def normal(rng, *shape, dtype=np.float64):
    return rng.normal(size=shape).astype(dtype)


def random_allowed(rng, shape):
    """Random cells, at least one in each row."""
    allowed = rng.random(shape) < 0.5
    np.put_along_axis(allowed, rng.integers(shape[-1], size=(*shape[:-1], 1)), True, axis=-1)
    return allowed


def loop_weights(scores, sink=None):
    """Softmax of one row in plain Python, the exponentials taken in double precision."""
    highest = max([*scores, -math.inf if sink is None else sink])
    exps = [math.exp(score - highest) for score in scores]
    total = math.fsum(exps) + (0.0 if sink is None else math.exp(sink - highest))
    return [e / total for e in exps]


def loop_attention(q, k, v, allowed, scale):
    """Attention of one head in plain Python: (output, weights) as lists of rows."""
    output, weights = [], []
    for i, query in enumerate(q.tolist()):
        scores = [
            scale * math.fsum(a * b for a, b in zip(query, key, strict=True)) if allowed[i][j] else -math.inf
            for j, key in enumerate(k.tolist())
        ]
        row = loop_weights(scores)
        weights.append(row)
        output.append([math.fsum(w * value for w, value in zip(row, column, strict=True)) for column in v.T.tolist()])
    return output, weights


# softmax


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, SIZES, st.integers(-2, -1), st.sampled_from([1.0, 30.0, 1e4]))
def test_softmax_equals_torch(seed, dtype, batch, rows, columns, axis, size):
    rng = np.random.default_rng(seed)
    scores = normal(rng, *batch, rows, columns, dtype=dtype) * dtype(size)
    allowed = random_allowed(rng, np.moveaxis(scores, axis, -1).shape)
    scores[~np.moveaxis(allowed, -1, axis)] = -np.inf
    given_scores = scores.copy()

    weights = softmax(scores, axis=axis)

    assert weights.dtype == dtype
    np.testing.assert_allclose(weights, torch.softmax(torch.tensor(scores), axis).numpy(), atol=tolerance(dtype))
    np.testing.assert_allclose(weights.sum(axis), 1, atol=tolerance(dtype))
    np.testing.assert_array_equal(weights[np.isneginf(scores)], 0)
    np.testing.assert_array_equal(scores, given_scores)


@few
@given(SEEDS, DTYPES, SIZES, SIZES, SIZES)
def test_softmax_with_sinks_equals_a_loop_and_one_more_column(seed, dtype, heads, rows, columns):
    rng = np.random.default_rng(seed)
    scores = 3 * normal(rng, heads, rows, columns, dtype=dtype)
    sinks = 3 * normal(rng, heads, dtype=dtype)

    weights = softmax(scores, sinks=sinks[:, None])

    loop = [
        [loop_weights(row, sink) for row in head] for head, sink in zip(scores.tolist(), sinks.tolist(), strict=True)
    ]
    column = np.broadcast_to(sinks[:, None, None], (heads, rows, 1))
    widened = torch.softmax(torch.tensor(np.concatenate([scores, column], axis=-1)), -1).numpy()
    assert weights.dtype == dtype
    np.testing.assert_allclose(weights, loop, atol=tolerance(dtype))
    np.testing.assert_allclose(weights, widened[..., :-1], atol=tolerance(dtype))
    np.testing.assert_allclose(1 - weights.sum(-1), widened[..., -1], atol=4 * tolerance(dtype))


def test_a_sink_of_any_size_is_stable():
    scores = np.float32([[0, 0], [-5, 5]])
    np.testing.assert_array_equal(softmax(scores, sinks=1e4), np.zeros((2, 2)))
    np.testing.assert_array_equal(softmax(scores, sinks=-1e4), softmax(scores))
    np.testing.assert_array_equal(softmax(scores, sinks=-np.inf), softmax(scores))
    np.testing.assert_allclose(softmax(scores.T, axis=0, sinks=[0.0, 1.0]), softmax(scores, sinks=[0.0, 1.0]).T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_huge_scores_is_exact_where_it_is_known(dtype):
    largest = np.finfo(dtype).max
    scores = np.array([[1e4, 1e4], [1e4, -1e4], [largest, -largest], [-largest, -np.inf]], dtype)
    np.testing.assert_array_equal(softmax(scores), [[0.5, 0.5], [1, 0], [1, 0], [1, 0]])


@pytest.mark.parametrize(
    ("given_dtype", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i8", "f8"), (">f4", "f4")]
)
def test_softmax_keeps_float32_and_float64(given_dtype, kept):
    weights = softmax(np.array([1, 2, 4], given_dtype))
    assert weights.dtype == np.dtype(kept)
    np.testing.assert_allclose(weights, loop_weights([1, 2, 4]), atol=1e-7)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[0.0, 1.0], [-np.inf, -np.inf]], {}, r"nothing to attend to: expected an allowed key .* row \(1,\)"),
        ([[0.0, -np.inf], [1.0, -np.inf]], {"axis": 0}, r"nothing to attend to: .* row \(1,\)"),
        ([-np.inf, -np.inf], {"sinks": 0.0}, "nothing to attend to"),
        (np.zeros((2, 0)), {}, r"nothing to attend to: expected a score along axis -1, got shape \(2, 0\)"),
        (3.0, {}, r"got shape \(\)"),
        ([0.0, 1.0], {"axis": 1}, r"axis 1, got shape \(2,\)"),
        ([0.0, np.nan], {}, "finite or -inf .*, got nan"),
        ([0.0, np.inf], {}, r"finite or -inf .*, got inf"),
        ([[np.inf, -np.inf], [0.0, np.nan]], {}, "got inf"),
        ([0.0, 1.0], {"sinks": np.nan}, "got nan"),
        ([0.0, 1.0], {"sinks": np.inf}, "got inf"),
        ([[0.0, 1.0]], {"sinks": [1.0, 2.0]}, r"sinks: expected one for each row, .* \(1,\), got \(2,\)"),
        (["a", "b"], {}, "scores: expected real numbers, got <U1"),
        ([True, False], {}, "scores: expected real numbers, got bool"),
    ],
)
def test_softmax_refuses_what_has_no_softmax(scores, options, message):
    with pytest.raises(ValueError, match=message):
        softmax(scores, **options)


# causal mask


@few
@given(SIZES, st.one_of(st.none(), SIZES), st.one_of(st.none(), st.integers(-8, 8)), DTYPES)
def test_causal_mask_equals_a_loop(n_queries, n_keys, offset, dtype):
    columns = n_queries if n_keys is None else n_keys
    if offset is None and n_queries > columns:
        with pytest.raises(ValueError, match=f"expected at most {columns} queries, got {n_queries}"):
            causal_mask(n_queries, n_keys, offset=offset, dtype=dtype)
        return
    first = columns - n_queries if offset is None else offset
    loop = [[0.0 if key <= query + first else -math.inf for key in range(columns)] for query in range(n_queries)]
    mask = causal_mask(n_queries, n_keys, offset=offset, dtype=dtype)
    assert mask.dtype == dtype
    np.testing.assert_array_equal(mask, loop)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": -1}, "n_queries must be a whole number from 0 up, got -1"),
        ({"n_queries": 2, "n_keys": -3}, "n_keys must be a whole number from 0 up, got -3"),
        ({"n_queries": 2, "dtype": int}, "floating-point dtype, .* got int64"),
        ({"n_queries": 2, "dtype": bool}, "got bool"),
    ],
)
def test_causal_mask_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        causal_mask(**arguments)


# scaled dot-product attention


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, SIZES, SIZES, SIZES, st.data())
def test_attention_equals_torch(seed, dtype, batch, n_queries, n_keys, d_head, d_value, data):
    rng = np.random.default_rng(seed)
    causal = data.draw(st.booleans()) and n_queries <= n_keys
    kind = data.draw(st.sampled_from(["none", "boolean", "additive"]))
    scale = data.draw(st.sampled_from([None, 1.0, 0.3]))
    # each of the three may lack leading axes, or have 1 where the others have more
    cut = [data.draw(st.integers(0, len(batch))) for _ in range(3)]
    leading = [tuple(data.draw(st.sampled_from([1, n])) for n in batch[c:]) for c in cut]
    q = normal(rng, *leading[0], n_queries, d_head, dtype=dtype)
    k = normal(rng, *leading[1], n_keys, d_head, dtype=dtype)
    v = normal(rng, *leading[2], n_keys, d_value, dtype=dtype)
    allowed = np.ones((n_queries, n_keys), bool)
    if causal:
        allowed = np.tril(allowed, n_keys - n_queries)
    bias = normal(rng, n_queries, n_keys, dtype=dtype) if kind == "additive" else np.zeros_like(allowed, dtype)
    mask = None
    if kind != "none":
        own = random_allowed(rng, allowed.shape) | (np.arange(n_keys) == 0)  # key 0 is open to all, causal or not
        mask = own if kind == "boolean" else np.where(own, bias, -np.inf)
        allowed = allowed & own

    output, weights = scaled_dot_product_attention(q, k, v, mask=mask, causal=causal, scale=scale)

    full = np.broadcast_shapes(*leading)
    tensors = [torch.tensor(np.broadcast_to(a, (*full, *a.shape[-2:])).copy()) for a in (q, k, v)]
    torch_mask = torch.tensor(np.where(allowed, bias, -np.inf).astype(dtype))
    expected = functional.scaled_dot_product_attention(*tensors, attn_mask=torch_mask, scale=scale)
    assert output.dtype == weights.dtype == dtype
    assert weights.shape == (*np.broadcast_shapes(*leading[:2]), n_queries, n_keys)
    np.testing.assert_allclose(output, expected.numpy(), atol=tolerance(dtype, 20), rtol=0)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=tolerance(dtype))
    np.testing.assert_array_equal(weights[..., ~allowed], 0)
    assert (weights[..., allowed] > 0).all()


@few
@given(SEEDS, DTYPES, SIZES, SIZES, SIZES, SIZES, st.booleans())
def test_attention_equals_a_loop(seed, dtype, n_queries, n_keys, d_head, d_value, scaled):
    rng = np.random.default_rng(seed)
    q, k = normal(rng, n_queries, d_head, dtype=dtype), normal(rng, n_keys, d_head, dtype=dtype)
    v = normal(rng, n_keys, d_value, dtype=dtype)
    allowed = random_allowed(rng, (n_queries, n_keys))
    output, weights = scaled_dot_product_attention(q, k, v, mask=allowed, scale=None if scaled else 1.0)
    loop = loop_attention(q, k, v, allowed, 1 / math.sqrt(d_head) if scaled else 1.0)
    np.testing.assert_allclose(output, loop[0], atol=tolerance(dtype, 20), rtol=0)
    np.testing.assert_allclose(weights, loop[1], atol=tolerance(dtype, 20), rtol=0)


@few
@given(SEEDS, DTYPES, SIZES, SIZES, SIZES)
def test_scores_are_scaled_products_plus_mask(seed, dtype, n_queries, n_keys, d_head):
    rng = np.random.default_rng(seed)
    q, k = normal(rng, n_queries, d_head, dtype=dtype), normal(rng, n_keys, d_head, dtype=dtype)
    bias = normal(rng, n_queries, n_keys)
    scores = attention_scores(q, k, mask=bias, scale=0.5)
    loop = [[0.5 * math.fsum(a * b for a, b in zip(x, y, strict=True)) for y in k.tolist()] for x in q.tolist()]
    assert scores.dtype == dtype  # a float64 mask doesn't widen float32 scores
    np.testing.assert_allclose(scores, np.add(loop, bias), atol=tolerance(dtype, 20), rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scores_neither_overflow_nor_hide_a_key(dtype):
    rng = np.random.default_rng(3)
    q, k, v = normal(rng, 6, 16, dtype=dtype), normal(rng, 9, 16, dtype=dtype), normal(rng, 9, 4, dtype=dtype)
    scale = 1e4 / np.abs(q @ k.T).max()
    output, weights = scaled_dot_product_attention(q, k, v, scale=scale)
    loop = loop_attention(q, k, v, np.ones((6, 9), bool), scale)
    np.testing.assert_allclose(weights, loop[1], atol=tolerance(dtype, 1e4), rtol=0)
    np.testing.assert_allclose(output, loop[0], atol=3 * tolerance(dtype, 1e4), rtol=0)


def test_float16_is_computed_in_float32():
    rng = np.random.default_rng(0)
    q, k, v = (normal(rng, 5, 64, dtype=np.float16) * np.float16(30) for _ in range(3))  # q . k overflows float16
    halves = scaled_dot_product_attention(q, k, v, causal=True)
    singles = scaled_dot_product_attention(*(x.astype(np.float32) for x in (q, k, v)), causal=True)
    for half, single in zip(halves, singles, strict=True):
        assert half.dtype == np.float32
        np.testing.assert_array_equal(half, single)


def test_causal_queries_are_the_last_of_the_sequence():
    rng = np.random.default_rng(0)
    q, k, v = (normal(rng, 6, 4) for _ in range(3))
    whole = scaled_dot_product_attention(q, k, v, causal=True)
    tail = scaled_dot_product_attention(q[4:], k, v, causal=True)
    for all_rows, last_rows in zip(whole, tail, strict=True):
        np.testing.assert_allclose(last_rows, all_rows[4:], atol=1e-14)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((3,), (2, 4), (2, 4)), {}, r"q: expected shape \(..., queries, d_head\), got \(3,\)"),
        (((3, 4), (2, 5), (2, 4)), {}, "same d_head of at least 1, got 4 and 5"),
        (((3, 0), (2, 0), (2, 4)), {}, "same d_head of at least 1, got 0 and 0"),
        (((3, 4), (2, 4), (5, 4)), {}, "one value for each key: 2 keys, got 5 values"),
        (((2, 3, 4), (3, 2, 4), (2, 4)), {}, r"leading axes .* broadcast, got .*'q': \(2,\), 'k': \(3,\)"),
        (((2, 3, 4), (2, 2, 4), (3, 2, 4)), {}, r"leading axes .* broadcast, got .*'v': \(3,\)"),
        (((3, 4), (0, 4), (0, 4)), {}, r"nothing to attend to: .* got shape \(3, 0\)"),
        (((3, 4), (2, 4), (2, 4)), {"causal": True}, "expected at most 2 queries, got 3"),
        (((3, 4), (2, 4), (2, 4)), {"mask": np.ones((2, 3), bool)}, r"broadcasts to .*\(3, 2\), got \(2, 3\)"),
        (((1, 4), (2, 4), (2, 4)), {"mask": np.ones((3, 2), bool)}, r"broadcasts to .*\(1, 2\), got \(3, 2\)"),
        (((3, 4), (2, 4), (2, 4)), {"mask": [1, 0]}, r"mask: expected booleans .*, got int64"),
        (((3, 4), (2, 4), (2, 4)), {"mask": [[True, True], [False, False], [True, True]]}, r"nothing .* row \(1,\)"),
        (((3, 4), (2, 4), (2, 4)), {"mask": [-np.inf, -np.inf]}, "nothing to attend to"),
        (((2, 4), (2, 4), (2, 4)), {"causal": True, "mask": [False, True]}, r"nothing to attend to: .* row \(0,\)"),
        (((3, 4), (2, 4), (2, 4)), {"mask": [0.0, np.inf]}, "got inf"),
        (((3, 4), (2, 4), (2, 4)), {"scale": math.nan}, "got nan"),
    ],
)
def test_attention_refuses(shapes, options, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*(np.ones(shape) for shape in shapes), **options)


def test_attention_refuses_a_nan_in_q():
    with pytest.raises(ValueError, match="finite or -inf .*, got nan"):
        scaled_dot_product_attention([[np.nan]], [[1.0]], [[1.0]])


# heads


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, st.integers(1, 4), st.integers(1, 4))
def test_heads_are_slices_of_the_last_axis(seed, dtype, batch, n_tokens, n_heads, d_head):
    x = normal(np.random.default_rng(seed), *batch, n_tokens, n_heads * d_head, dtype=dtype)
    heads = split_heads(x, n_heads)
    assert heads.shape == (*batch, n_heads, n_tokens, d_head)
    for head in range(n_heads):
        np.testing.assert_array_equal(heads[..., head, :, :], x[..., head * d_head : (head + 1) * d_head])
    merged = merge_heads(heads)
    assert merged.dtype == dtype
    np.testing.assert_array_equal(merged, x)


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, st.integers(1, 3), st.integers(1, 3))
def test_grouped_queries_equal_torch(seed, dtype, batch, n_tokens, kv_heads, n_groups):
    rng = np.random.default_rng(seed)
    q = normal(rng, *batch, kv_heads * n_groups, n_tokens, 4, dtype=dtype)
    k, v = (normal(rng, *batch, kv_heads, n_tokens, 4, dtype=dtype) for _ in range(2))
    shared = repeat_kv(k, n_groups)
    np.testing.assert_array_equal(shared, torch.tensor(k).repeat_interleave(n_groups, -3).numpy())
    output, _ = scaled_dot_product_attention(q, shared, repeat_kv(v, n_groups), causal=True)
    tensors = [torch.tensor(x) for x in (q, k, v)]
    expected = functional.scaled_dot_product_attention(*tensors, is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(output, expected.numpy(), atol=tolerance(dtype, 20), rtol=0)


@few
@given(SEEDS, DTYPES, st.integers(1, 3), SIZES, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_multi_head_attention_equals_torch(seed, dtype, n_texts, n_tokens, n_heads, d_head, causal):
    rng = np.random.default_rng(seed)
    d_model = n_heads * d_head
    x = normal(rng, n_texts, n_tokens, d_model, dtype=dtype)
    w_q, w_k, w_v, w_o = (normal(rng, d_model, d_model, dtype=dtype) / dtype(math.sqrt(d_model)) for _ in range(4))
    layer = torch.nn.MultiheadAttention(d_model, n_heads, bias=False, batch_first=True).to(torch.tensor(x).dtype)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.tensor(np.concatenate([w_q, w_k, w_v], axis=1).T))
        layer.out_proj.weight.copy_(torch.tensor(w_o.T))
        hidden = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1) if causal else None
        expected = layer(*[torch.tensor(x)] * 3, attn_mask=hidden, average_attn_weights=False)

    output, weights = multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, causal=causal)

    assert output.dtype == weights.dtype == dtype
    np.testing.assert_allclose(output, expected[0].numpy(), atol=tolerance(dtype, 50), rtol=0)
    np.testing.assert_allclose(weights, expected[1].numpy(), atol=tolerance(dtype, 50), rtol=0)


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, st.integers(1, 3), st.integers(1, 3))
def test_multi_head_attention_is_heads_side_by_side(seed, dtype, batch, n_tokens, n_heads, d_head):
    rng = np.random.default_rng(seed)
    d_model, width = 5, n_heads * d_head  # the projections needn't be square
    x = normal(rng, *batch, n_tokens, d_model, dtype=dtype)
    w_q, w_k, w_v = (normal(rng, d_model, width, dtype=dtype) for _ in range(3))
    w_o = normal(rng, width, d_model, dtype=dtype)
    allowed = random_allowed(rng, (n_tokens, n_tokens))
    output, weights = multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, mask=allowed)
    total = np.zeros_like(x)
    for head in range(n_heads):
        own = slice(head * d_head, (head + 1) * d_head)
        found, row = scaled_dot_product_attention(x @ w_q[:, own], x @ w_k[:, own], x @ w_v[:, own], mask=allowed)
        total += found @ w_o[own]
        np.testing.assert_allclose(weights[..., head, :, :], row, atol=tolerance(dtype, 50), rtol=0)
    np.testing.assert_allclose(output, total, atol=tolerance(dtype, 100), rtol=0)


@few
@given(SEEDS, DTYPES, BATCHES, SIZES, st.integers(0, 6), st.integers(1, 3), st.integers(1, 4))
def test_steps_with_a_cache_equal_one_causal_pass(seed, dtype, batch, n_tokens, prompt, n_heads, d_head):
    rng = np.random.default_rng(seed)
    d_model = n_heads * d_head
    x = normal(rng, *batch, n_tokens, d_model, dtype=dtype)
    w = [normal(rng, d_model, d_model, dtype=dtype) / dtype(math.sqrt(d_model)) for _ in range(4)]
    output, weights = multi_head_attention(x, *w, n_heads, causal=True)
    cache_k = cache_v = np.zeros((*batch, n_heads, 0, d_head))
    prompt = min(prompt, n_tokens)
    chunks = [slice(0, prompt), *(slice(i, i + 1) for i in range(prompt, n_tokens))]
    for new in chunks[prompt == 0 :]:
        old_k = cache_k
        step, row, cache_k, cache_v = attention_step(x[..., new, :], cache_k, cache_v, *w, n_heads)
        assert cache_k.shape == cache_v.shape == (*batch, n_heads, new.stop, d_head)
        assert step.dtype == cache_k.dtype == dtype
        np.testing.assert_array_equal(cache_k[..., : new.start, :], old_k)
        np.testing.assert_allclose(step, output[..., new, :], atol=tolerance(dtype, 50), rtol=0)
        np.testing.assert_allclose(row, weights[..., new, : new.stop], atol=tolerance(dtype, 50), rtol=0)


EYE = np.eye(6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_heads(np.ones((2, 6)), 4), "divides the width 6, got 4 heads"),
        (lambda: split_heads(np.ones((2, 6)), 0), "divides the width 6, got 0 heads"),
        (lambda: split_heads(np.ones(6), 2), r"expected shape \(..., tokens, d_model\), got \(6,\)"),
        (lambda: merge_heads(np.ones((2, 6))), r"expected shape \(heads, tokens, d_head\), got \(2, 6\)"),
        (lambda: repeat_kv(np.ones((2, 6)), 2), r"expected shape \(kv_heads, tokens, d_head\), got \(2, 6\)"),
        (lambda: repeat_kv(np.ones((1, 2, 6)), 0), "n_groups of at least 1, .* got 0"),
        (lambda: multi_head_attention(np.ones((2, 6)), EYE, EYE, EYE, EYE, 4), "divides the width 6, got 4 heads"),
        (lambda: multi_head_attention(np.ones((2, 5)), EYE, EYE, EYE, EYE, 2), r"w_q: .*\(5, ...\).* got \(6, 6\)"),
        (lambda: multi_head_attention(np.ones((2, 6)), EYE, EYE[0], EYE, EYE, 2), r"w_k: .* two axes, got \(6,\)"),
        (lambda: multi_head_attention(np.ones((2, 6)), EYE, EYE, EYE, np.eye(4), 2), r"w_o: .*\(6, ...\).*\(4, 4\)"),
        (lambda: multi_head_attention(np.ones((2, 6)), EYE, EYE[:, :4], EYE, EYE, 2), "same d_head .* got 3 and 2"),
        (
            lambda: multi_head_attention(np.ones((2, 6)), EYE, EYE, EYE, EYE, 2, mask=[False, False]),
            r"nothing to attend to: .* row \(0, 0\)",
        ),
        (
            lambda: attention_step(np.ones((1, 6)), np.ones((3, 1, 3)), np.ones((2, 1, 3)), EYE, EYE, EYE, EYE, 2),
            r"cache_k: expected shape \(2, 'past', 3\), got \(3, 1, 3\)",
        ),
        (
            lambda: attention_step(np.ones((1, 6)), np.ones((2, 1, 3)), np.ones((2, 1, 2)), EYE, EYE, EYE, EYE, 2),
            r"cache_v: expected shape \(2, 'past', 3\), got \(2, 1, 2\)",
        ),
        (
            lambda: attention_step(np.ones((1, 6)), np.ones((2, 2, 3)), np.ones((2, 1, 3)), EYE, EYE, EYE, EYE, 2),
            "one value for each key: 3 keys, got 2 values",
        ),
    ],
)
def test_heads_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# what lecture notes promise


def test_five_tokens_two_heads_and_no_look_ahead():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 8))
    w = rng.normal(size=(4, 8, 8))
    output, weights = multi_head_attention(x, *w, 2, causal=True)
    assert output.shape == (5, 8)
    assert weights.shape == (2, 5, 5)
    changed = x.copy()
    changed[-1] = rng.normal(size=8)
    other, other_weights = multi_head_attention(changed, *w, 2, causal=True)
    np.testing.assert_array_equal(other[:-1], output[:-1])  # to the last bit
    np.testing.assert_array_equal(other_weights[:, :-1], weights[:, :-1])
    assert not np.array_equal(other[-1], output[-1])
    free, _ = multi_head_attention(x, *w, 2)
    free_other, _ = multi_head_attention(changed, *w, 2)
    assert (free[:-1] != free_other[:-1]).any(axis=-1).all()  # without the mask every row feels it


def test_six_tokens_under_a_causal_mask():
    q, k, v = np.random.default_rng(0).normal(size=(3, 6, 16))
    _, weights = scaled_dot_product_attention(q, k, v, causal=True)
    np.testing.assert_array_equal(weights[3, 4:], 0)
    assert (weights[3, :4] > 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-15)
    np.testing.assert_array_equal(weights > 0, np.tril(np.ones((6, 6), bool)))


@pytest.mark.parametrize("d_head", [1, 4, 16, 64, 128, 512])
def test_variance_of_the_scores(d_head):
    n_pairs = 20_000
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((n_pairs, 1, d_head), dtype=np.float32) for _ in range(2))
    error = math.sqrt((2 + 6 / d_head) / n_pairs)  # standard error of the variance, relative: excess kurtosis is 6 / d
    assert attention_scores(q, k, scale=1.0).var() == pytest.approx(d_head, rel=4 * error)
    assert attention_scores(q, k).var() == pytest.approx(1, rel=4 * error)
