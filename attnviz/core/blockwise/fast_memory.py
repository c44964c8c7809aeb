"""FlashAttention as a film: one head's attention block by block, with all that is in fast memory. NumPy only.

The arithmetic is that of `blockwise`; here blocks of queries and of keys may differ in size, and every step also shows
the scores of its block and its place in the grid.

Source: Dao et al. 2022 (FlashAttention), algorithm 1, with the queries in the outer loop as in Dao 2023.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from attnviz.core.attention.checks import FloatArray
from attnviz.core.blockwise.online import (
    Asked,
    BlockStep,
    blocks_of,
    check_blocks,
    finish,
    forbids_all,
    nothing_seen,
)


@dataclass(frozen=True, eq=False)
class FlashStep(BlockStep):
    """One block of the grid, and what its queries know after it.

    Attributes:
        queries, keys: the rows and columns of the block.
        skipped: True if the mask forbids the whole block and it was left out.
        maximum: (queries,) the largest score so far, -inf before the first allowed key.
        total: (queries,) sum of exp(score - maximum) over the keys so far.
        output: (queries, d_value) attention over the keys so far, 0 before the first allowed key.
        rescale: (queries,) the factor, from 0 to 1, by which this block shrank the older sums.
        i, j: the block's row and column in the grid of blocks.
        scores: (queries, keys) of the block alone, -inf where forbidden; None if it was skipped.
        finished: True for the last block of its row: `output` is the result.
    """

    i: int
    j: int
    scores: FloatArray | None
    finished: bool


@dataclass(frozen=True)
class FastMemory:
    """Bytes that one block of the grid needs in fast memory at once.

    Attributes:
        queries: its block of queries.
        keys, values: its block of each.
        scores: one score for each pair; the weights take the same place.
        output: the partial output of its queries.
        running: the running maximum and the running sum of its queries.
    """

    queries: int
    keys: int
    values: int
    scores: int
    output: int
    running: int

    @property
    def total(self) -> int:
        """All of it together; the length of the text is not in it."""
        return self.queries + self.keys + self.values + self.scores + self.output + self.running


def flash_steps(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    mask: ArrayLike | None = None,
    scale: float | None = None,
    blocks: tuple[int, int] = (64, 64),
    skip: bool = True,
) -> Iterator[FlashStep]:
    """Walk through the blocks of one head's attention: for each block of queries, every block of keys in turn.

    Args:
        q: (queries, d_head).
        k: (keys, d_head).
        v: (keys, d_value).
        causal: forbid every key after the query; the queries are the last ones of the sequence.
        mask: broadcasts to (queries, keys), boolean (True = allowed) or additive (0, -inf or a bias).
        scale: the factor in front, 1 / sqrt(d_head) unless told otherwise.
        blocks: queries, and keys, in a block.
        skip: leave out blocks that the mask forbids altogether; they are yielded as skipped.

    Returns:
        An iterator over the steps, one for each block of the grid.

    Raises:
        ValueError: at the call, shapes that don't fit, more than one head, or a block below 1; on the way, scores that
            are NaN or +inf, or a query with nothing to attend to (after its last block).

    >>> steps = list(flash_steps([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]], causal=True, blocks=(2, 1)))
    >>> [(step.i, step.j, step.output.tolist(), step.finished) for step in steps]
    [(0, 0, [[4.0], [4.0]], False), (0, 1, [[4.0], [6.0]], True)]
    """
    if min(blocks) < 1:
        raise ValueError(f"expected blocks of at least 1 query and 1 key, got {blocks[0]} and {blocks[1]}")
    asked = check_blocks(q, k, v, mask, causal, scale, blocks[1])
    if not asked.q.ndim == asked.k.ndim == asked.v.ndim == 2:
        shapes = ", ".join(str(array.shape) for array in (asked.q, asked.k, asked.v))
        raise ValueError(f"expected q, k and v of one head, two axes each, got shapes {shapes}")
    return _walk(asked, blocks_of(len(asked.q), blocks[0]), blocks_of(len(asked.k), blocks[1]), skip)


def _walk(asked: Asked, rows: list[slice], columns: list[slice], skip: bool) -> Iterator[FlashStep]:
    for i, queries in enumerate(rows):
        running = nothing_seen((queries.stop - queries.start, asked.v.shape[-1]), asked.dtype)
        for j, keys in enumerate(columns):
            tile, scores = asked.tile(queries, keys), None
            if skip and forbids_all(tile):
                running = replace(running, rescale=np.ones_like(running.rescale))
            else:
                running, scores = asked.merge(running, queries, keys, tile)
            state = (running.maximum, running.total, running.output, running.rescale)
            yield FlashStep(queries, keys, scores is None, *state, i, j, scores, finished=j == len(columns) - 1)
        finish(running, queries)


def blockwise_steps(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    mask: ArrayLike | None = None,
    scale: float | None = None,
    block_size: int = 64,
    skip_masked_blocks: bool = True,
) -> Iterator[BlockStep]:
    """Walk through `blockwise_attention` for one head and show what is known after each block.

    Args:
        q: (queries, d_head).
        k: (keys, d_head).
        v: (keys, d_value).
        causal: forbid every key after the query.
        mask: broadcasts to (queries, keys), boolean (True = allowed) or additive.
        scale: the factor in front, 1 / sqrt(d_head) unless told otherwise.
        block_size: queries, and keys, in a block.
        skip_masked_blocks: leave out blocks that the mask forbids altogether; they are yielded as skipped.

    Returns:
        An iterator over the blocks: for each block of queries, every block of keys from left to right.

    Raises:
        ValueError: at the call, as in `blockwise_attention`, or more than one head; on the way, scores that are NaN or
            +inf, or a query with nothing to attend to (after its last block).

    >>> steps = list(blockwise_steps([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]], causal=True, block_size=1))
    >>> [(step.queries.start, step.keys.start, step.skipped, step.output.tolist()) for step in steps]
    [(0, 0, False, [[4.0]]), (0, 1, True, [[4.0]]), (1, 0, False, [[4.0]]), (1, 1, False, [[6.0]])]
    """
    if block_size < 1:
        raise ValueError(f"expected a block_size of at least 1, got {block_size}")
    return flash_steps(
        q,
        k,
        v,
        causal=causal,
        mask=mask,
        scale=scale,
        blocks=(block_size, block_size),
        skip=skip_masked_blocks,
    )


def fast_memory(
    block_q: int, block_k: int, d_head: int, bytes_per_number: int = 4, *, d_value: int | None = None
) -> FastMemory:
    """Return what must be in fast memory at once: blocks of q, k, v, scores and output, and two numbers a query.

    Together that is block_q (d_head + d_value + 2) + block_k (d_head + d_value) + block_q block_k numbers: as much for
    a million tokens as for a hundred. Implementations keep scores and sums in float32 whatever q, k and v are in; here
    all numbers have the same size.

    Args:
        block_q: queries in a block.
        block_k: keys in a block.
        d_head: numbers in a query and a key.
        bytes_per_number: 4 in float32, 2 in float16.
        d_value: numbers in a value, d_head unless told otherwise.

    Returns:
        FastMemory, in bytes.

    Raises:
        ValueError: a size below 1.

    Source: Dao et al. 2022, algorithm 1, whose blocks are chosen so that q, k, v and output fill the fast memory.

    >>> fast_memory(2, 3, 5, 1)
    FastMemory(queries=10, keys=15, values=15, scores=6, output=10, running=4)
    """
    d_value = d_head if d_value is None else d_value
    if min(block_q, block_k, d_head, bytes_per_number, d_value) < 1:
        given = (block_q, block_k, d_head, bytes_per_number, d_value)
        raise ValueError(f"expected blocks, d_head, bytes_per_number and d_value of at least 1, got {given}")
    return FastMemory(
        queries=block_q * d_head * bytes_per_number,
        keys=block_k * d_head * bytes_per_number,
        values=block_k * d_value * bytes_per_number,
        scores=block_q * block_k * bytes_per_number,
        output=block_q * d_value * bytes_per_number,
        running=2 * block_q * bytes_per_number,
    )
