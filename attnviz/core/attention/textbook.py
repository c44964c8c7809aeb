"""Attention as the textbooks write it, in NumPy alone: short enough to be read beside the picture it makes.

Axes always in this order: heads, queries, keys, d_head. Rows are queries (who looks), columns keys (who is looked at).
A mask says what a query may look at: boolean (True = allowed) or additive (0 = allowed, -inf = forbidden, else a bias).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from attnviz.core.arguments import number, truth, whole
from attnviz.core.attention.checks import (
    FloatArray,
    additive_mask,
    as_floats,
    check_floating,
    check_mask,
    check_projections,
    check_q_and_k,
    check_row_maxima,
    check_values,
)


def softmax(scores: ArrayLike, *, axis: int = -1, sinks: ArrayLike | None = None) -> FloatArray:
    """Turn each row of scores into weights: exp(score) divided by the sum of exp(score) over the row.

    The row's largest score is taken off first: it cancels in the fraction, and exp would overflow (float32: above 88).

    Args:
        scores: (..., queries, keys), float32 or float64 kept; -inf marks a forbidden cell and gets weight exactly 0.
        axis: the axis whose weights sum to 1; the last one, the keys, unless told otherwise.
        sinks: learned attention sinks, one more logit for each row, which takes weight but has no column, so that rows
            sum to less than 1. Broadcasts to the shape of `scores` without `axis`; one sink a head is (heads, 1).

    Returns:
        Weights in the shape of `scores`, from 0 to 1.

    Raises:
        ValueError: a score is NaN or +inf, a row has nothing to attend to (all -inf, or empty), or `sinks` doesn't fit.

    Source: the sinks are those of GPT-OSS (OpenAI 2025, gpt-oss model card).

    >>> softmax([[0.0, 0.0], [1e4, -np.inf]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    >>> softmax([[0.0, 0.0]], sinks=np.log(2)).tolist()
    [[0.25, 0.25]]
    """
    scores = as_floats(scores, "scores")  # (..., queries, keys)
    highest = _row_maxima(scores, axis)  # (..., queries, 1)
    sink = _sink_column(sinks, highest, axis)  # (..., queries, 1), -inf without sinks
    highest = np.maximum(highest, sink)
    with np.errstate(over="ignore"):  # a gap beyond the largest float is -inf, and exp(-inf) = 0
        exps = np.exp(scores - highest)  # (..., queries, keys), no exponent above 0
    total = exps.sum(axis=axis, keepdims=True) + np.exp(sink - highest)  # (..., queries, 1)
    return np.asarray(exps / total)  # (..., queries, keys)


def causal_mask(
    n_queries: int, n_keys: int | None = None, *, offset: int | None = None, dtype: DTypeLike = np.float32
) -> FloatArray:
    """Return the additive mask that hides the future: -inf where key > query + offset, 0 elsewhere.

    Args:
        n_queries: number of queries (rows).
        n_keys: number of keys (columns), as many as queries unless told otherwise.
        offset: position of the first query minus that of the first key. The default, n_keys - n_queries, makes the
            queries the last ones of the sequence, as in decoding with a KV cache.
        dtype: a floating-point type.

    Returns:
        (queries, keys), to be added to the scores.

    Raises:
        ValueError: a negative count, more queries than keys without an offset, or a dtype that cannot hold -inf.

    >>> causal_mask(3).tolist()
    [[0.0, -inf, -inf], [0.0, 0.0, -inf], [0.0, 0.0, 0.0]]
    >>> causal_mask(1, 3).tolist()
    [[0.0, 0.0, 0.0]]
    """
    n_queries = whole("n_queries", n_queries, least=0)
    n_keys = n_queries if n_keys is None else whole("n_keys", n_keys, least=0)
    if offset is None and n_queries > n_keys:
        raise ValueError(f"the queries are the last of the keys: expected at most {n_keys} queries, got {n_queries}")
    check_floating(dtype)
    offset = n_keys - n_queries if offset is None else whole("offset", offset)
    query, key = np.arange(n_queries)[:, None], np.arange(n_keys)  # (queries, 1), (keys,)
    mask = np.zeros((n_queries, n_keys), dtype)  # (queries, keys)
    mask[key > query + offset] = -np.inf
    return mask


def attention_scores(
    q: ArrayLike, k: ArrayLike, *, mask: ArrayLike | None = None, causal: bool = False, scale: float | None = None
) -> FloatArray:
    """Return how well each key answers each query, before the softmax: scale * (q . k) + mask.

    Args:
        q: (..., queries, d_head).
        k: (..., keys, d_head); its leading axes broadcast with those of `q`.
        mask: broadcasts to (..., queries, keys); boolean (True = allowed) or additive (0, -inf or a bias).
        causal: also forbid every key after the query; the queries are the last ones of the sequence.
        scale: the factor in front, 1 / sqrt(d_head) unless told otherwise.

    Returns:
        (..., queries, keys), -inf where forbidden.

    Raises:
        ValueError: shapes that don't fit, a mask of whole numbers, or `causal` with more queries than keys.

    Source: Vaswani et al. 2017, section 3.2.1: for q and k of variance 1, q . k has variance d_head.

    >>> attention_scores([[2.0, 0.0]], [[3.0, 1.0], [0.0, 5.0]], scale=0.5).tolist()
    [[3.0, 0.0]]
    """
    q, k = check_q_and_k(q, k)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else number("scale", scale)
    scores = (q @ k.swapaxes(-1, -2)) * scale  # (..., queries, d_head) @ (..., d_head, keys) -> (..., queries, keys)
    if truth("causal", causal):
        scores = scores + causal_mask(*scores.shape[-2:], dtype=scores.dtype)
    if mask is not None:
        scores = scores + additive_mask(check_mask(mask, scores.shape), scores.dtype)
    return scores


def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return each query's weighted mean of the values: weights = softmax(scale q k^T + mask), output = weights v.

    Args:
        q: (..., queries, d_head); float32 and float64 kept, float16 computed in float32.
        k: (..., keys, d_head).
        v: (..., keys, d_value); the leading axes of q, k and v broadcast.
        mask: broadcasts to (..., queries, keys); boolean (True = allowed) or additive (0, -inf or a bias).
        causal: also forbid every key after the query; the queries are the last ones of the sequence.
        scale: the factor in front, 1 / sqrt(d_head) unless told otherwise.

    Returns:
        Output (..., queries, d_value) and weights (..., queries, keys); each row of weights sums to 1.

    Raises:
        ValueError: shapes that don't fit, scores that are NaN or +inf, or a query with nothing to attend to.

    Source: Vaswani et al. 2017, equation 1.

    >>> output, weights = scaled_dot_product_attention([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]], causal=True)
    >>> weights.tolist(), output.tolist()
    ([[1.0, 0.0], [0.5, 0.5]], [[4.0], [6.0]])
    """
    v = check_values(q, k, v)
    scores = attention_scores(q, k, mask=mask, causal=causal, scale=scale)  # (..., queries, keys)
    weights = softmax(scores)  # (..., queries, keys)
    return weights @ v, weights  # (..., queries, keys) @ (..., keys, d_value) -> (..., queries, d_value)


def multi_head_attention(
    x: ArrayLike,
    w_q: ArrayLike,
    w_k: ArrayLike,
    w_v: ArrayLike,
    w_o: ArrayLike,
    n_heads: int,
    *,
    causal: bool = False,
    mask: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Let n_heads heads attend side by side, each on its own slice of the projections, and mix the results with w_o.

    Args:
        x: (..., tokens, d_model).
        w_q: (d_model, heads * d_head), usually square; head h has the columns from h * d_head on.
        w_k: as w_q.
        w_v: as w_q.
        w_o: (heads * d_head, d_model).
        n_heads: number of heads; it must divide the width of the projections.
        causal: forbid every key after the query.
        mask: broadcasts to (..., heads, queries, keys), boolean or additive; one a text is (texts, 1, queries, keys).

    Returns:
        Output (..., tokens, d_model) and weights (..., heads, queries, keys).

    Raises:
        ValueError: shapes that don't fit, n_heads doesn't divide the width, or a query with nothing to attend to.

    Source: Vaswani et al. 2017, section 3.2.2.

    >>> output, weights = multi_head_attention(np.ones((5, 8)), *[np.eye(8)] * 4, n_heads=2, causal=True)
    >>> output.shape, weights.shape, weights[0, 1].tolist()
    ((5, 8), (2, 5, 5), [0.5, 0.5, 0.0, 0.0, 0.0])
    """
    x, w_q, w_k, w_v, w_o = check_projections(x, w_q, w_k, w_v, w_o)
    q = split_heads(x @ w_q, n_heads)  # (..., heads, tokens, d_head)
    k = split_heads(x @ w_k, n_heads)
    v = split_heads(x @ w_v, n_heads)
    found, weights = scaled_dot_product_attention(q, k, v, mask=mask, causal=causal)
    return merge_heads(found) @ w_o, weights  # (..., tokens, d_model), (..., heads, queries, keys)


def attention_step(
    x_new: ArrayLike,
    cache_k: ArrayLike,
    cache_v: ArrayLike,
    w_q: ArrayLike,
    w_k: ArrayLike,
    w_v: ArrayLike,
    w_o: ArrayLike,
    n_heads: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Attend from the newest token alone, with the keys and values of the earlier ones taken from a cache.

    Equal to the last row of causal `multi_head_attention` on the whole text: earlier tokens never see later ones, so
    their keys and values stay as they were. Several new tokens at once (the prompt, into an empty cache) work too.

    Args:
        x_new: (..., new, d_model), usually new = 1.
        cache_k: (..., heads, past, d_head); for the first token np.zeros((..., heads, 0, d_head)).
        cache_v: as cache_k.
        w_q: (d_model, heads * d_head), as in `multi_head_attention`.
        w_k: as w_q.
        w_v: as w_q.
        w_o: (heads * d_head, d_model).
        n_heads: number of heads.

    Returns:
        Output (..., new, d_model), weights (..., heads, new, past + new), and the two caches, grown to
        (..., heads, past + new, d_head). The caches passed in are left as they are.

    Raises:
        ValueError: shapes that don't fit, or n_heads doesn't divide the width of the projections.

    >>> empty = np.zeros((2, 0, 4))
    >>> output, weights, cache_k, cache_v = attention_step(np.ones((1, 8)), empty, empty, *[np.eye(8)] * 4, n_heads=2)
    >>> output.shape, weights.tolist(), cache_k.shape
    ((1, 8), [[[1.0]], [[1.0]]], (2, 1, 4))
    """
    x_new, w_q, w_k, w_v, w_o = check_projections(x_new, w_q, w_k, w_v, w_o)
    q = split_heads(x_new @ w_q, n_heads)  # (..., heads, new, d_head)
    cache_k = _grow(cache_k, split_heads(x_new @ w_k, n_heads), "cache_k")  # (..., heads, past + new, d_head)
    cache_v = _grow(cache_v, split_heads(x_new @ w_v, n_heads), "cache_v")
    found, weights = scaled_dot_product_attention(q, cache_k, cache_v, causal=True)
    return merge_heads(found) @ w_o, weights, cache_k, cache_v


def split_heads(x: ArrayLike, n_heads: int) -> FloatArray:
    """Cut the last axis into n_heads equal slices, one a head: (..., tokens, d_model) -> (..., heads, tokens, d_head).

    Raises:
        ValueError: n_heads doesn't divide d_model.

    >>> split_heads([[1.0, 2.0, 3.0, 4.0]], 2).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    x = as_floats(x, "x", "(..., tokens, d_model)")
    *batch, n_tokens, width = x.shape
    if whole("n_heads", n_heads) < 1 or width < 1 or width % n_heads:
        raise ValueError(f"expected a number of heads that divides the width {width}, got {n_heads} heads")
    return x.reshape(*batch, n_tokens, n_heads, width // n_heads).swapaxes(-2, -3)  # (..., heads, tokens, d_head)


def merge_heads(x: ArrayLike) -> FloatArray:
    """Put the heads' slices side by side again: (..., heads, tokens, d_head) -> (..., tokens, heads * d_head).

    >>> merge_heads([[[1.0, 2.0]], [[3.0, 4.0]]]).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    x = as_floats(x, "x", "(heads, tokens, d_head)")
    *batch, n_heads, n_tokens, d_head = x.shape
    return x.swapaxes(-2, -3).reshape(*batch, n_tokens, n_heads * d_head)  # (..., tokens, d_model)


def repeat_kv(x: ArrayLike, n_groups: int) -> FloatArray:
    """Hand each key/value head to the n_groups query heads, neighbours, that share it (grouped-query attention).

    (..., kv_heads, tokens, d_head) -> (..., kv_heads * n_groups, tokens, d_head), with head h from h // n_groups.

    Raises:
        ValueError: fewer than three axes, or n_groups below 1.

    Source: Ainslie et al. 2023, section 2.2.

    >>> repeat_kv([[[1.0]], [[2.0]]], 2).ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    x = as_floats(x, "x", "(kv_heads, tokens, d_head)")
    if whole("n_groups", n_groups) < 1:
        raise ValueError(f"expected n_groups of at least 1, query heads for each key/value head, got {n_groups}")
    return np.repeat(x, n_groups, axis=-3)


def _row_maxima(scores: FloatArray, axis: int) -> FloatArray:
    """Return each row's largest score, (..., queries, 1); every row must have something to attend to."""
    if not -scores.ndim <= whole("axis", axis) < scores.ndim or scores.shape[axis] == 0:
        raise ValueError(f"nothing to attend to: expected a score along axis {axis}, got shape {scores.shape}")
    highest = np.asarray(scores.max(axis=axis, keepdims=True))
    check_row_maxima(highest)
    empty = np.argwhere(np.isneginf(highest.squeeze(axis)))
    if len(empty):
        row = tuple(empty[0].tolist())
        raise ValueError(f"nothing to attend to: expected an allowed key in every row, got -inf all along row {row}")
    return highest


def _sink_column(sinks: ArrayLike | None, highest: FloatArray, axis: int) -> FloatArray:
    """Return the sinks as one more column of scores, shaped as `highest`; no sink is a sink of -inf: no weight."""
    if sinks is None:
        return np.full_like(highest, -np.inf)
    logits = as_floats(sinks, "sinks").astype(highest.dtype, copy=False)
    check_row_maxima(logits)
    rows = highest.squeeze(axis).shape
    try:
        return np.expand_dims(np.broadcast_to(logits, rows), axis)
    except ValueError:
        raise ValueError(f"sinks: expected one for each row, a shape that fits {rows}, got {logits.shape}") from None


def _grow(cache: ArrayLike, new: FloatArray, name: str) -> FloatArray:
    """Return the cache with the new rows below the old, (..., heads, past + new, d_head), in the new rows' dtype."""
    cache = as_floats(cache, name, "(heads, past, d_head)")
    *batch, n_heads, _, d_head = new.shape
    if cache.shape[:-2] != (*batch, n_heads) or cache.shape[-1] != d_head:
        raise ValueError(f"{name}: expected shape {(*batch, n_heads, 'past', d_head)}, got {cache.shape}")
    return np.concatenate([cache.astype(new.dtype, copy=False), new], axis=-2)
