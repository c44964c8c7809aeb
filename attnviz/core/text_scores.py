"""Every head scored on one text, by one pattern or measure, so that heads can be put in order. NumPy only."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnviz.core.battery import PATTERNS, score_battery
from attnviz.core.heads import MEASURES, survey
from attnviz.core.trace import Trace

__all__ = ["SORTS", "Sort", "score_text"]


class Sort(NamedTuple):
    """Something to put heads in order by: what it is called, and in one sentence what is measured."""

    title: str
    explanation: str


SORTS = {key: Sort(pattern.title, pattern.explanation) for key, pattern in PATTERNS.items()}
SORTS |= {key: Sort(m.title, m.explanation) for key, m in MEASURES.items() if key in ("entropy", "distance", "largest")}


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
    kind = min(PATTERNS[sort].kinds)  # any of them: on one text they all give the same score
    scores = score_battery([(kind, trace)], part=part)
    return scores.scores[scores.patterns.index(sort)]
