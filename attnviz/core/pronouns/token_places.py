"""Where the words of a pronoun sentence are among the tokens, and what a row of weights gives to them. NumPy only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.pronouns.items import Item, Span
from attnviz.core.trace.records import Token

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Places:
    """Where an item's words are among the tokens: the pronoun's last token, and the tokens of each candidate."""

    query: int
    candidates: tuple[tuple[int, ...], ...]  # the answer first


def tokens_of_span(tokens: Sequence[Token], span: Span) -> tuple[int, ...]:
    """Return the positions of the tokens that cover a part of a text, in order; none if it was cut or dropped.

    A token counts with its first common character: ` Tom` with its leading space belongs to "Tom", and a token that
    reaches over the edge of the span belongs to it as a whole.
    """
    start, end = span
    return tuple(i for i, token in enumerate(tokens) if token.start < end and start < token.end)


def find_places(tokens: Sequence[Token], item: Item, *, offset: int = 0) -> Places:
    """Return where an item's pronoun and candidates are among the tokens of its text.

    Args:
        tokens: of the text, special ones included.
        item: whose places in the text are looked up.
        offset: characters that were put in front of the text before it was cut into tokens.

    Raises:
        ValueError: a place has no token.
    """
    found = []
    names = ("pronoun", "answer", *("distractor" for _ in item.distractors))
    for name, (start, end) in zip(names, (item.pronoun, *item.candidates), strict=True):
        of_span = tokens_of_span(tokens, (start + offset, end + offset))
        if not of_span:
            raise ValueError(f"the {name} {item.text[start:end]!r} has no token of its own")
        found.append(of_span)
    return Places(found[0][-1], tuple(found[1:]))


def candidate_weights(weights: ArrayLike, candidates: Iterable[Sequence[int]]) -> NDArray[np.float64]:
    """Return the weight of each candidate: the sum over its tokens.

    Args:
        weights: (..., keys), rows of attention weights.
        candidates: the positions of each candidate's tokens.

    Returns:
        (..., candidates), each from 0 to 1.

    >>> candidate_weights([0.5, 0.25, 0.25], [[0], [1, 2]]).tolist()
    [0.5, 0.5]
    """
    rows = np.asarray(weights, np.float64)
    return np.stack([rows[..., list(tokens)].sum(axis=-1) for tokens in candidates], axis=-1)


def nearest_candidate(pronoun: Span, candidates: Sequence[Span]) -> int:
    """Return which candidate has the fewest characters between itself and the pronoun; of two, the earlier.

    >>> nearest_candidate((20, 23), [(0, 4), (10, 14)])
    1
    """
    gaps = [max(pronoun[0] - end, start - pronoun[1]) for start, end in candidates]
    return min(range(len(gaps)), key=lambda i: (gaps[i], candidates[i]))


def first_candidate(candidates: Sequence[Span]) -> int:
    """Return which candidate stands first in the text."""
    return min(range(len(candidates)), key=lambda i: candidates[i])
