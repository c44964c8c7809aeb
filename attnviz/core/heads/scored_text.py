"""Every head scored on one text, by one pattern or measure, so that heads can be put in order. NumPy only."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnviz.core.heads.at_a_glance import MEASURES, survey
from attnviz.core.heads.patterns import PATTERNS, pattern_targets, score_rows, usable_rows
from attnviz.core.trace.blocks import Block, layer_blocks, mean_over_rows, table_of_heads
from attnviz.core.trace.row_picks import as_slice, spaced_rows
from attnviz.core.trace.trace import Trace


class Sort(NamedTuple):
    """Something to put heads in order by: what it is called, and in one sentence what is measured."""

    title: str
    explanation: str


SORTS = {key: Sort(pattern.title, pattern.explanation) for key, pattern in PATTERNS.items()}
SORTS |= {key: Sort(m.title, m.explanation) for key, m in MEASURES.items() if key in ("entropy", "distance", "largest")}


class PatternScores(NamedTuple):
    """Scores of all heads on one text: (n_layers, n_heads) scores, NaN without a position, and n positions behind."""

    scores: NDArray[np.float64]
    n: NDArray[np.int64]


def score_text(trace: Trace, sort: str, *, part: str | None = None) -> NDArray[np.float64]:
    """Return the score of every head on this text.

    A pattern of the battery is scored on the positions of the text that give it occasion; a measure is the mean over
    rows with a choice of keys, as in `heads.survey`.

    Args:
        trace: a text as a model saw it.
        sort: a key of SORTS.
        part: which part of a model that has several.

    Returns:
        (n_layers, n_heads), in the order of `trace.layers_of(part)`; NaN where the text gives no occasion, and for
        heads that a layer lacks.

    Raises:
        ValueError: no such key or part, or a pattern of cross-attention.

    >>> trace = Trace.from_arrays(["a", "b", "c"], weights=[[[[1, 0, 0], [1, 0, 0], [0, 1, 0]]]])
    >>> score_text(trace, "previous").tolist(), score_text(trace, "first").tolist()
    ([[1.0]], [[0.5]])
    """
    if sort not in SORTS:
        raise ValueError(f"heads can be sorted by {', '.join(SORTS)}; got {sort}")
    if sort in MEASURES:
        return survey(trace, part=part, size=1).measures[sort]
    return score_pattern(trace, sort, part=part).scores


def score_pattern(trace: Trace, pattern: str, *, part: str | None = None, max_rows: int = 512) -> PatternScores:
    """Return how every head scores for a pattern on this text, and on how many positions.

    Which positions count, and what their targets are, is as in `battery.score_battery`. Rows with NaN or infinity, as
    half precision can give them, don't count.

    Args:
        trace: a text as a model saw it.
        pattern: a key of PATTERNS.
        part: which part of a model that has several; one whose queries and keys are the same text.
        max_rows: above this many queries, evenly spaced rows are used, the last one among them.

    Returns:
        PatternScores, in the order of `trace.layers_of(part)`; n is 0 for heads that a layer lacks.

    Raises:
        ValueError: no such pattern or part, `max_rows` below 1, or cross-attention.
    """
    if part == "cross":
        raise ValueError("patterns need queries and keys of the same text, so not cross-attention")
    layers, tokens = trace.layers_of(part), trace.tokens_of(part)[1]
    targets = pattern_targets(pattern, tokens)  # (queries, keys)
    scores = table_of_heads(trace, part)
    found = PatternScores(scores, np.zeros(scores.shape, np.int64))
    usable = usable_rows(tokens)  # (queries,)
    rows = spaced_rows(len(tokens), max_rows)
    for i, layer in enumerate(layers):
        blocks = layer_blocks(trace, layer, rows, part=part)
        values = np.concatenate([_score_block(block, pattern, targets, usable) for block in blocks], axis=1)
        n_heads = len(values)
        found.scores[i, :n_heads], found.n[i, :n_heads] = mean_over_rows(values)
    return found


def _score_block(
    block: Block, pattern: str, targets: NDArray[np.bool_], usable: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return (heads, rows) the scores of some rows, NaN for those that don't count."""
    cut = as_slice(block.rows)
    values, _, counts = score_rows(pattern, block.weights, block.allowed, targets[cut], usable[cut])
    return np.where(counts & ~block.broken, values, np.nan)
