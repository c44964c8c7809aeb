"""How far two traces are apart: of one text, or of texts with as many tokens. NumPy only."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnviz.core.trace.blocks import Block, layer_blocks, mean_over_rows, table_of_heads
from attnviz.core.trace.row_picks import spaced_rows
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

MAX_ROWS = 512


def map_change(
    before: Trace,
    after: Trace,
    *,
    part: str | None = None,
    switches_before: Switches | None = None,
    switches_after: Switches | None = None,
    max_rows: int = MAX_ROWS,
) -> NDArray[np.float64]:
    """Return how much each head's map changed: the weight that went to other keys, in the mean over rows.

    For one row that is half the sum over the keys of |before - after|, the total variation of the two rows. Rows with
    one allowed key in both maps, and rows with NaN or infinity, don't count.

    Args:
        before: one trace.
        after: another one of the same model, with as many tokens; or the same one, with switches.
        part: which part of a model that has several.
        switches_before: on the picture of `before`, instead of those of the pass.
        switches_after: on the picture of `after`, instead of those of the pass.
        max_rows: above this many queries, evenly spaced rows are used.

    Returns:
        (n_layers, n_heads), from 0 (nothing moved) to 1 (all of it); NaN for heads that a layer lacks.

    Raises:
        ValueError: traces of different layers, heads or token counts, or a switch that can't act.
    """
    rows = spaced_rows(_n_queries(before, after, part), max_rows)
    change = table_of_heads(before, part)
    for i, layer in enumerate(before.layers_of(part)):
        blocks = _both((before, switches_before), (after, switches_after), layer, rows, part)
        means = mean_over_rows(np.concatenate([_moved(one, other) for one, other in blocks], axis=1))[0]
        change[i, : len(means)] = means
    return change


def largest_weight_difference(one: Trace, other: Trace) -> float:
    """Return the largest absolute difference between the weights of two traces, over all parts, layers and heads.

    Of texts with more than MAX_ROWS queries evenly spaced rows are compared.

    Args:
        one: a trace.
        other: a trace of the same text by the same model, computed in another way.

    Raises:
        ValueError: the traces don't have the same tokens, parts, layers and heads.
    """
    shapes = [
        [(part, layer, t.heads(layer, part=part)) for part in t.parts for layer in t.layers_of(part)]
        for t in (one, other)
    ]
    if shapes[0] != shapes[1] or [t.id for t in one.tokens] != [t.id for t in other.tokens]:
        raise ValueError("expected two traces of the same text by the same model, with equal tokens, layers and heads")
    largest = 0.0
    for part, layer, _ in shapes[0]:
        rows = spaced_rows(len(one.tokens_of(part)[0]), MAX_ROWS)
        for a, b in _both((one, None), (other, None), layer, rows, part):
            largest = max(largest, float(np.abs(a.weights - b.weights).max()))
    return largest


def largest_probability_difference(one: Trace, other: Trace) -> float:
    """Return the largest absolute difference between the next-token probabilities of two traces.

    Raises:
        ValueError: a model that predicts no next token, or vocabularies of different size.
    """
    a, b = one.next_probabilities(), other.next_probabilities()
    if a.shape != b.shape:
        raise ValueError(f"expected vocabularies of the same size, got {len(a)} and {len(b)}")
    return float(np.abs(a - b).max())


def _both(
    one: tuple[Trace, Switches | None], other: tuple[Trace, Switches | None], layer: int, rows: range, part: str | None
) -> Iterator[tuple[Block, Block]]:
    """Yield the same rows of a layer in two traces, each under its switches."""
    sides = [layer_blocks(trace, layer, rows, part=part, switches=switches) for trace, switches in (one, other)]
    return zip(*sides, strict=True)


def _moved(one: Block, other: Block) -> NDArray[np.float64]:
    """Return (heads, rows) half the L1 distance of two maps, NaN for rows that don't count."""
    counts = (one.allowed.sum(axis=-1) > 1) | (other.allowed.sum(axis=-1) > 1)
    moved = np.abs(one.weights - other.weights).sum(axis=-1).astype(np.float64) / 2  # (heads, rows)
    return np.where(counts & ~one.broken & ~other.broken, moved, np.nan)


def _n_queries(before: Trace, after: Trace, part: str | None) -> int:
    """Return the number of queries that two traces have in common, or raise ValueError."""
    heads = [[(n, trace.heads(n, part=part)) for n in trace.layers_of(part)] for trace in (before, after)]
    sizes = [[len(tokens) for tokens in trace.tokens_of(part)] for trace in (before, after)]
    if heads[0] != heads[1]:
        raise ValueError("expected two traces of one model, got models with different layers or heads")
    if sizes[0] != sizes[1]:
        raise ValueError(f"expected two texts with as many tokens, got {sizes[0][-1]} and {sizes[1][-1]}")
    return sizes[0][0]
