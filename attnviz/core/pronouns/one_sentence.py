"""What every head gives to the words of one sentence, seen from one of them. NumPy only.

Words are places in the text; a word's weight is the sum over its tokens. Axes: layers, heads, groups of tokens.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.pronouns.items import Span
from attnviz.core.pronouns.token_places import candidate_weights
from attnviz.core.trace.blocks import table_of_heads
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace


@dataclass(frozen=True)
class Shares:
    """Where a query's attention went, as shares that sum to the row's sum; a token counts in the first that fits.

    Attributes:
        candidates: the tokens of all candidates.
        first: the first token of all, if it is no candidate.
        special: tokens that the model's tokenizer added.
        punctuation: tokens without a letter or a digit.
        own: the query's own token.
        rest: all others.
    """

    candidates: float
    first: float
    special: float
    punctuation: float
    own: float
    rest: float


def word_tokens(tokens: Sequence[Token], words: Sequence[Span], *, offset: int = 0) -> tuple[tuple[int, ...], ...]:
    """Return the positions of each word's tokens; a token that reaches over two words counts with the first of them.

    Args:
        tokens: of the text, special ones included.
        words: (start, end) of each word in the text, rising.
        offset: characters that were put in front of the text before it was cut into tokens.
    """
    ends = [end + offset for _, end in words]
    found: list[list[int]] = [[] for _ in words]
    for token in tokens:
        word = bisect_right(ends, token.start)  # the first that ends behind the token's start
        if word < len(words) and words[word][0] + offset < token.end:
            found[word].append(token.index)
    return tuple(map(tuple, found))


def all_heads_looks(
    trace: Trace,
    query: int,
    groups: Sequence[Sequence[int]],
    *,
    part: str | None = None,
    switches: Switches | None = None,
) -> NDArray[np.float64]:
    """Return what every head gives to groups of tokens, seen from one query.

    Args:
        trace: of the text.
        query: position of the token that looks.
        groups: the positions of each group's tokens.
        part: which part of a model that has several.
        switches: instead of those of the pass, on the same q and k.

    Returns:
        (layers, heads, groups), sums of weights; NaN where a layer has fewer heads.
    """
    found = table_of_heads(trace, part, len(groups))
    row_of_query = slice(query, query + 1)
    for row, layer in enumerate(trace.layers_of(part)):
        weights = trace.layer_weights(layer, part=part, queries=row_of_query, switches=switches)[:, 0]  # (heads, keys)
        found[row, : len(weights)] = candidate_weights(weights, groups)
    return found


def margins(looks: ArrayLike, answer: int) -> NDArray[np.float64]:
    """Return the answer's weight minus the best other candidate's, from -1 to 1.

    Args:
        looks: (..., candidates).
        answer: which candidate is right.

    Returns:
        (...); the answer's own weight if it is the only candidate.

    >>> margins([[0.5, 0.25, 0.125]], 0).tolist(), margins([0.5], 0).tolist()
    ([0.25], 0.5)
    """
    weights = np.asarray(looks, np.float64)
    others = np.delete(weights, answer, axis=-1)
    best = others.max(axis=-1) if others.shape[-1] else 0.0
    return np.asarray(weights[..., answer] - best)


def row_shares(row: ArrayLike, tokens: Sequence[Token], query: int, candidates: Collection[int]) -> Shares:
    """Return where one query's attention went.

    Args:
        row: (keys,) its weights.
        tokens: one for each key.
        query: its own position.
        candidates: positions of the tokens of all candidates.
    """
    kinds = dict.fromkeys(Shares.__dataclass_fields__, 0.0)
    for token, weight in zip(tokens, np.asarray(row, np.float64), strict=True):
        kinds[_kind(token, query, candidates)] += float(weight)
    return Shares(**kinds)


def _kind(token: Token, query: int, candidates: Collection[int]) -> str:
    if token.index in candidates:
        return "candidates"
    if token.special:
        return "special"
    if token.index == 0:
        return "first"
    if token.index == query:
        return "own"
    return "rest" if any(sign.isalnum() for sign in token.text) else "punctuation"
