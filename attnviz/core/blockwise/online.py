"""The same attention in blocks, with a running maximum and a running sum: the whole map is never held. NumPy only.

A softmax divides by a sum over all keys, so it seems to need all scores at once. It doesn't: keep the largest score so
far and the sums relative to it; when a larger score turns up, shrink the old sums by exp(old maximum - new maximum).

Source: Milakov & Gimelshein 2018 (softmax with a running maximum and sum), Rabe & Staats 2021 (attention without O(n^2)
memory), Dao et al. 2022 (FlashAttention: blocks of queries and keys that fit the fast memory of a GPU).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnviz.core.attention.checks import (
    FloatArray,
    additive_mask,
    as_floats,
    check_mask,
    check_row_maxima,
    check_values,
)
from attnviz.core.attention.textbook import attention_scores, causal_mask
from attnviz.core.threads import one_thread


@dataclass(frozen=True, eq=False)
class Running:
    """What a block of queries remembers of the keys it has seen: as much after a million keys as after one.

    Attributes:
        maximum: (..., queries) the largest score so far, -inf before the first allowed key.
        total: (..., queries) sum of exp(score - maximum) over the keys so far.
        weighted: (..., queries, d_value) sum of exp(score - maximum) * value over the keys so far.
        rescale: (..., queries) exp(old maximum - maximum), by which the last block shrank the older sums: from 0
            (nothing came before, or nothing that still counts) to 1 (the maximum stayed).
    """

    maximum: FloatArray
    total: FloatArray
    weighted: FloatArray
    rescale: FloatArray

    @property
    def output(self) -> FloatArray:
        """Attention over the keys so far, (..., queries, d_value); 0 for a query that has seen no allowed key."""
        return self.weighted / np.where(self.total > 0, self.total, 1)[..., None]


class Asked(NamedTuple):
    """What attention is asked for: q, k and v as floats, the mask in full shape, `scale` as it came.

    `offset` is how far the queries start behind the keys; None if it isn't causal.
    """

    q: FloatArray
    k: FloatArray
    v: FloatArray
    mask: NDArray[Any] | None
    offset: int | None
    scale: float | None

    @property
    def dtype(self) -> DTypeLike:
        """Of the output."""
        return np.result_type(self.q, self.k, self.v)

    def tile(self, queries: slice, keys: slice) -> NDArray[Any] | None:
        """Return what mask and causal rule say about one block, None if it is all allowed."""
        tile = None if self.mask is None else self.mask[..., queries, keys]  # (..., block, block)
        offset = self.offset
        if offset is None or keys.stop - 1 <= queries.start + offset:  # not causal, or the whole block is in the past
            return tile
        if keys.start > queries.stop - 1 + offset:  # the whole block is in the future
            return np.asarray(-np.inf)
        shape = (queries.stop - queries.start, keys.stop - keys.start)
        future = causal_mask(*shape, offset=queries.start + offset - keys.start, dtype=np.float64)
        return future if tile is None else additive_mask(tile, np.float64) + future

    def merge(self, running: Running, queries: slice, keys: slice, tile: Any) -> tuple[Running, FloatArray]:
        """Return what the queries know after one more block of keys, and the scores of that block."""
        scores = attention_scores(self.q[..., queries, :], self.k[..., keys, :], mask=tile, scale=self.scale)
        return merge_block(running, scores, self.v[..., keys, :]), scores


@dataclass(frozen=True, eq=False)
class BlockStep:
    """What one block of queries knows after one more block of keys.

    Attributes:
        queries, keys: the rows and columns of the block.
        skipped: True if the mask forbids the whole block and it was left out.
        maximum: (queries,) the largest score so far, -inf before the first allowed key.
        total: (queries,) sum of exp(score - maximum) over the keys so far.
        output: (queries, d_value) attention over the keys so far, 0 before the first allowed key; the result after the
            last block of keys.
        rescale: (queries,) the factor, from 0 to 1, by which this block shrank the older sums.
    """

    queries: slice
    keys: slice
    skipped: bool
    maximum: FloatArray
    total: FloatArray
    output: FloatArray
    rescale: FloatArray


def blockwise_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    mask: ArrayLike | None = None,
    scale: float | None = None,
    block_size: int = 64,
    skip_masked_blocks: bool = True,
) -> FloatArray:
    """Return the output of `scaled_dot_product_attention` without ever holding its (queries, keys) weights.

    Beside the output it needs block_size * block_size scores at a time, and a few numbers for each query.

    Args:
        q: (..., queries, d_head).
        k: (..., keys, d_head).
        v: (..., keys, d_value); the leading axes of q, k and v broadcast.
        causal: forbid every key after the query; the queries are the last ones of the sequence.
        mask: broadcasts to (..., queries, keys); boolean (True = allowed) or additive (0, -inf or a bias).
        scale: the factor in front, 1 / sqrt(d_head) unless told otherwise.
        block_size: queries, and keys, in a block.
        skip_masked_blocks: leave out blocks that the mask forbids altogether: under a causal mask nearly half of them.

    Returns:
        (..., queries, d_value).

    Raises:
        ValueError: shapes that don't fit, scores that are NaN or +inf, or a query with nothing to attend to.

    Source: Dao et al. 2022, algorithm 1, with the queries in the outer loop.

    >>> blockwise_attention([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]], causal=True, block_size=1).tolist()
    [[4.0], [6.0]]
    """
    asked = check_blocks(q, k, v, mask, causal, scale, block_size)
    q, k, v = asked.q, asked.k, asked.v
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    output = np.empty((*batch, q.shape[-2], v.shape[-1]), asked.dtype)  # (..., queries, d_value)
    for queries in blocks_of(q.shape[-2], block_size):
        running = nothing_seen(output[..., queries, :].shape, output.dtype)
        for keys in blocks_of(k.shape[-2], block_size):
            tile = asked.tile(queries, keys)  # (..., block, block), or None: all allowed
            if not (skip_masked_blocks and forbids_all(tile)):
                running, _ = asked.merge(running, queries, keys, tile)
        output[..., queries, :] = finish(running, queries)
    return output


def nothing_seen(shape: tuple[int, ...], dtype: DTypeLike) -> Running:
    """Return the state before the first block of keys, for an output of `shape` (..., queries, d_value).

    >>> nothing_seen((1, 2), np.float32).maximum.tolist()
    [-inf]
    """
    rows = shape[:-1]
    return Running(np.full(rows, -np.inf, dtype), np.zeros(rows, dtype), np.zeros(shape, dtype), np.ones(rows, dtype))


def merge_block(running: Running, scores: FloatArray, values: FloatArray) -> Running:
    """Take one more block of keys into the running softmax.

    Args:
        running: what the queries know so far.
        scores: (..., queries, block), -inf where forbidden.
        values: (..., block, d_value).

    Returns:
        What they know afterwards, in new arrays.

    Raises:
        ValueError: a score is NaN or +inf.

    Source: Milakov & Gimelshein 2018, algorithm 3; Dao et al. 2022, section 3.1.

    >>> before = merge_block(nothing_seen((1, 1), np.float64), np.array([[0.0]]), np.array([[4.0]]))
    >>> after = merge_block(before, np.array([[np.log(2)]]), np.array([[1.0]]))
    >>> after.rescale.tolist(), after.total.tolist(), after.output.tolist()
    ([0.5], [1.5], [[2.0]])
    """
    highest = scores.max(axis=-1)  # (..., queries)
    check_row_maxima(highest)
    maximum = np.maximum(running.maximum, highest)
    reference = np.where(np.isneginf(maximum), 0, maximum)  # no allowed key yet: -inf - -inf would be NaN
    rescale = np.exp(running.maximum - reference)  # (..., queries), exp(-inf) = 0
    exps = np.exp(scores - reference[..., None])  # (..., queries, block)
    total = running.total * rescale + exps.sum(axis=-1)
    with one_thread():
        weighted = running.weighted * rescale[..., None] + exps @ values  # (..., queries, d_value)
    return Running(maximum, total, weighted, rescale)


def finish(running: Running, queries: slice) -> FloatArray:
    """Return the output of a block of queries, each of which must have seen a key."""
    empty = np.argwhere(running.total == 0)
    if len(empty):
        row = (*empty[0][:-1].tolist(), queries.start + int(empty[0][-1]))
        raise ValueError(f"nothing to attend to: expected an allowed key for every query, got none in row {row}")
    return running.output


def blocks_of(length: int, block_size: int) -> list[slice]:
    """Cut 0 .. length into slices of block_size, the last one shorter if need be."""
    return [slice(start, min(start + block_size, length)) for start in range(0, length, block_size)]


def forbids_all(tile: NDArray[Any] | None) -> bool:
    """Return True if no cell of the block is allowed."""
    return tile is not None and not bool(np.any(tile if tile.dtype == bool else tile != -np.inf))


def check_blocks(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None, causal: bool, scale: float | None, size: int
) -> Asked:
    """Return what was asked for in arrays that fit each other, or raise ValueError."""
    if size < 1:
        raise ValueError(f"expected a block_size of at least 1, got {size}")
    v = check_values(q, k, v)
    q, k = as_floats(q, "q"), as_floats(k, "k")
    shape = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])  # (..., queries, keys)
    mask = None if mask is None else check_mask(mask, shape)
    return Asked(q, k, v, mask, k.shape[-2] - q.shape[-2] if causal else None, scale)
