"""Words or positions: what a head's pattern follows when the words of a text are put into another order. NumPy only."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.text.words import merge_words, word_of_tokens, word_spans
from attnviz.core.trace.blocks import table_of_heads
from attnviz.core.trace.trace import Trace

AT_REST = 0.05  # of a row's weight: a head that gives less than that to words other than the first rests


class Followed(NamedTuple):
    """How much of a head's pattern stayed where it was, and how much went with the words; each from 0 to 1."""

    positions: float
    words: float

    @property
    def lead(self) -> float:
        """From -1, the pattern went with the words alone, to 1, it stayed at its positions alone."""
        return self.positions - self.words


def overlap(one: ArrayLike, other: ArrayLike) -> float:
    """Return how much two patterns have in common: the sum of the smaller weights over the sum of the larger ones.

    Args:
        one: weights, at least 0, any shape.
        other: weights of the same cells.

    Returns:
        From 0, no cell has weight in both, to 1, equal; NaN if neither has any weight.

    >>> overlap([0.5, 0.5, 0.0], [0.5, 0.0, 0.5])
    0.3333333333333333
    """
    larger = np.maximum(one, other).sum()
    return float(np.minimum(one, other).sum() / larger) if larger > 0 else float("nan")


def followed(before: ArrayLike, after: ArrayLike, order: ArrayLike, *, causal: bool) -> Followed:
    """Compare a map of words with that of the shuffled text, place by place and word by word.

    The first word, which stays where it is, is no evidence either way and doesn't count as a key. Under a causal mask
    only pairs of words that stand in the same order in both texts are compared.

    Args:
        before: (words, words) weights, queries down and keys across, of the text as it was.
        after: (words, words) weights of the shuffled text.
        order: (words,) which word of the old text stands at each place of the new one.
        causal: whether words can't look at later ones.

    Returns:
        Both overlaps; NaN for a head that rests, because it gives words other than the first hardly any weight.

    >>> shift = np.eye(4, k=-1)  # each word looks at the one before it, whatever the words
    >>> followed(shift, shift, [0, 2, 1, 3], causal=True)
    Followed(positions=1.0, words=0.0)
    """
    a, b, new_place = np.asarray(before, np.float64), np.asarray(after, np.float64), np.argsort(order)
    moved = b[np.ix_(new_place, new_place)]  # (words, words), rows and columns by their old places
    cells = np.ones(a.shape, bool)
    cells[:, 0] = False  # the first word as a key
    if min(a[:, 1:].sum(), b[:, 1:].sum()) < AT_REST * len(a):
        return Followed(float("nan"), float("nan"))
    same_order = np.subtract.outer(new_place, new_place) >= 0  # (words, words): the key isn't later in the new text
    seen = cells & same_order & np.tri(len(a), dtype=bool) if causal else cells
    return Followed(overlap(a[cells], b[cells]), overlap(a[seen], moved[seen]))


def followed_by_heads(before: Trace, after: Trace, order: ArrayLike, *, part: str | None = None) -> NDArray[np.float64]:
    """Return (layers, heads, 2): how far each head's pattern followed positions, and words.

    Args:
        before: the text as it was.
        after: the shuffled text, by the same model.
        order: (words,) which word of the old text stands at each place of the new one.
        part: of a model with several; not one whose queries and keys are different texts.

    Returns:
        Positions and words as in `followed`; NaN for heads at rest, and where a layer has no such head.
    """
    layers = before.layers_of(part)
    n_words = len(word_spans(before.text))
    sides = [(trace, word_of_tokens(trace.tokens_of(part)[1], trace.text)) for trace in (before, after)]
    found = table_of_heads(before, part, 2)
    for row, layer in enumerate(layers):
        maps = [(trace.layer_weights(layer, part=part), words) for trace, words in sides]  # (heads, queries, keys) each
        causal = before.causal(layer, part=part)
        for head in range(len(maps[0][0])):
            a, b = (merge_words(weights[head], words, n_words) for weights, words in maps)
            found[row, head] = followed(a, b, order, causal=causal)
    return found
