"""How far two traces of one text are apart. NumPy only."""

import numpy as np

from attnviz.core.trace.row_picks import row_blocks, spaced_rows
from attnviz.core.trace.trace import Trace

MAX_ROWS = 512


def largest_weight_difference(one: Trace, other: Trace, *, max_rows: int = MAX_ROWS) -> float:
    """Return the largest absolute difference between the weights of two traces, over all parts, layers and heads.

    Args:
        one: a trace.
        other: a trace of the same text by the same model, computed in another way.
        max_rows: above this many queries, evenly spaced rows are compared.

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
    for part, layer, n_heads in shapes[0]:
        n_queries, n_keys = (len(tokens) for tokens in one.tokens_of(part))
        for rows in row_blocks(spaced_rows(n_queries, max_rows), n_heads, n_keys):
            block = slice(rows.start, rows.stop, rows.step)
            apart = one.layer_weights(layer, part=part, queries=block) - other.layer_weights(
                layer, part=part, queries=block
            )
            largest = max(largest, float(np.abs(apart).max()))
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
