"""FlashAttention on one head of a trace: its grid of blocks, row after row, and how near the output comes. NumPy only.

`flash_steps` shows one head in full; here a row of blocks is worked out when it is looked at, so that a long text costs
no more than a short one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.blockwise.fast_memory import FlashStep, flash_steps
from attnviz.core.threads import one_thread
from attnviz.core.trace.head import Head

Float = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Film:
    """One head, cut into blocks.

    Attributes:
        q: (queries, d_head), k: (keys, d_head), v: (keys, d_value).
        scale: factor in front of q k^T.
        block: queries, and keys, in a block; the last ones may have fewer.
        rule: gives (rows, keys), boolean or additive, what the mask says about a slice of the queries.
        weights: gives (rows, keys), the trace's own weights of a slice of the queries.
    """

    q: Float
    k: Float
    v: Float
    scale: float
    block: int
    rule: Callable[[slice], NDArray[np.bool_] | Float]
    weights: Callable[[slice], Float]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid of blocks."""
        return -(-len(self.q) // self.block), -(-len(self.k) // self.block)

    def queries(self, i: int) -> slice:
        """Return the queries of row i of the grid."""
        return slice(i * self.block, min((i + 1) * self.block, len(self.q)))


def film_of(head: Head, *, block: int) -> Film:
    """Return one head of a trace cut into blocks.

    Args:
        head: of a model that gives q and k.
        block: queries, and keys, in a block.

    Returns:
        Film.

    Raises:
        ValueError: the model gives finished maps only, the block is below 1, or the layer has a soft-cap or sinks,
            which change the softmax itself.
    """
    if block < 1:
        raise ValueError(f"expected a block of at least 1, got {block}")
    q, k, v = head.qkv
    record: Any = head.record  # a LayerRecord, since it has q
    if not (record.softcap is None and record.sinks is None):
        extra = "a soft-cap" if record.sinks is None else "sinks"
        raise ValueError(f"layer {head.layer} of this model has {extra}, which plain FlashAttention leaves out")
    bias = record.bias

    def rule(rows: slice) -> NDArray[np.bool_] | Float:
        allowed = head.tile(rows).allowed  # (rows, keys)
        if bias is None:
            return allowed
        return np.where(allowed, bias[0 if len(bias) == 1 else head.head, rows], np.float32(-np.inf))

    return Film(q, k, v, head.scale, block, rule, lambda rows: head.tile(rows).weights)


def block_row(film: Film, i: int) -> list[FlashStep]:
    """Return the steps of one row of the grid, from its first block of keys to its last.

    Raises:
        ValueError: there is no such row, or a query has nothing to attend to.
    """
    if not 0 <= i < film.shape[0]:
        raise ValueError(f"the grid has rows 0 to {film.shape[0] - 1}, got {i}")
    rows = film.queries(i)
    with one_thread():
        blocks = (film.block, film.block)
        steps = flash_steps(film.q[rows], film.k, film.v, mask=film.rule(rows), scale=film.scale, blocks=blocks)
        return [replace(step, i=i, queries=rows) for step in steps]


def skipped_blocks(film: Film) -> NDArray[np.bool_]:
    """Return (rows, columns) of the grid, True for blocks that the mask forbids altogether."""
    starts = np.arange(0, len(film.k), film.block)
    rows = []
    for i in range(film.shape[0]):
        rule = film.rule(film.queries(i))  # (block, keys)
        allowed = rule if rule.dtype == bool else rule != -np.inf
        rows.append(~np.logical_or.reduceat(allowed.any(axis=0), starts))
    return np.array(rows)


def largest_difference(film: Film) -> float:
    """Return how far the output, block by block, is from the trace's weights times values, at most."""
    largest = 0.0
    for i in range(film.shape[0]):
        with one_thread():
            expected = film.weights(film.queries(i)) @ film.v  # (block, d_value)
        largest = max(largest, float(np.abs(block_row(film, i)[-1].output - expected).max()))
    return largest


def block_names(length: int, block: int) -> list[str]:
    """Return what each block is called, by the tokens in it.

    >>> block_names(5, 2), block_names(2, 1)
    (['0 to 1', '2 to 3', '4'], ['0', '1'])
    """
    ends = [(start, min(start + block, length) - 1) for start in range(0, length, block)]
    return [str(first) if first == last else f"{first} to {last}" for first, last in ends]
