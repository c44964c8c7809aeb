"""Words of a text: where they are, in another order, and a map of tokens seen as one of words. NumPy only."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.trace import Token

__all__ = ["merge_words", "shuffle_words", "word_of_tokens", "word_spans"]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of every word, what stands between white space, in characters.

    >>> word_spans("to be, or")
    [(0, 2), (3, 6), (7, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def shuffle_words(text: str, seed: int = 0) -> tuple[str, NDArray[np.int64]]:
    """Put the words of a text into another order, all but the first, where many heads rest. White space stays.

    Args:
        text: at least three words.
        seed: of the order; it is never the old one.

    Returns:
        The new text, and (words,) which word of the old text stands at each place of the new one.

    Raises:
        ValueError: there are fewer than three words with white space between them.

    >>> shuffle_words("a b c", seed=0)
    ('a c b', array([0, 2, 1]))
    """
    spans = word_spans(text)
    if len(spans) < 3:
        raise ValueError("shuffling needs at least three words with spaces between them")
    rng = np.random.default_rng(seed)
    order = old = np.arange(len(spans))  # (words,)
    while np.array_equal(order, old):
        order = np.concatenate([old[:1], 1 + rng.permutation(len(spans) - 1)])
    pieces, end = [], 0
    for place, (start, stop) in enumerate(spans):
        word_start, word_stop = spans[order[place]]
        pieces += [text[end:start], text[word_start:word_stop]]
        end = stop
    return "".join([*pieces, text[end:]]), order


def word_of_tokens(tokens: Sequence[Token], text: str) -> NDArray[np.int64]:
    """Return (tokens,) the number of the word that each token belongs to; -1 for special ones and white space.

    A token belongs to the word in which its last character lies, so that a leading space does no harm.
    """
    ends = np.array([end for _, end in word_spans(text)])
    starts = np.array([start for start, _ in word_spans(text)])
    words = []
    for token in tokens:
        word = int(np.searchsorted(ends, token.end)) if token.end > token.start else len(ends)
        words.append(word if word < len(ends) and token.end > starts[word] and not token.special else -1)
    return np.array(words)


def merge_words(weights: ArrayLike, words: ArrayLike, n_words: int) -> NDArray[np.float64]:
    """Return a map of words from a map of tokens: sums over a word's keys, means over its queries.

    Args:
        weights: (queries, keys) of the same tokens.
        words: (tokens,) the word of each token; tokens of -1 are left out.
        n_words: number of words.

    Returns:
        (words, words); the row of a word without a token is 0.

    >>> merge_words([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]], [0, 1, 1], 2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    belongs = np.equal.outer(np.arange(n_words), np.asarray(words)).astype(np.float64)  # (words, tokens)
    n_tokens = np.maximum(belongs.sum(axis=1, keepdims=True), 1)  # (words, 1)
    return (belongs @ np.asarray(weights, np.float64) @ belongs.T) / n_tokens
