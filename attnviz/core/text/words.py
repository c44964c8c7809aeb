"""Words of a text: where they are, in another order, and a map of tokens seen as one of words. NumPy only."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.threads import one_thread
from attnviz.core.trace.records import Token

# Han, Hiragana, Katakana: scripts without spaces, in which a character is about as much as a word
_CHARACTER = r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_WORDS = {False: re.compile(r"\S+"), True: re.compile(rf"[{_CHARACTER}]|[^\s{_CHARACTER}]+")}
_ALONE = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # signs of scripts without spaces
# One of those, a word with its apostrophes and hyphens, or a punctuation mark.
_WORD_OR_SIGN = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+(?:['’\-][^\W{_ALONE}]+)*|[^\w\s]")
_JOINERS = "\u00ad\u200c\u200d"  # soft hyphen, and what ties letters or emoji together without being seen


@dataclass(frozen=True)
class Item:
    """What one row or column of a map stands for.

    Attributes:
        label: text to show.
        tokens: (tokens of it,) their places in the sequence, rising.
        kind: "word"; "special" for a special token, which is never part of a word; "space" for white space.
    """

    label: str
    tokens: tuple[int, ...]
    kind: Literal["word", "special", "space"]


def word_spans(text: str, *, characters: bool = False) -> list[tuple[int, int]]:
    """Return (start, end) of every word, what stands between white space, in characters.

    Args:
        text: any text.
        characters: True makes each Chinese or Japanese character a word of its own, since these scripts put no spaces
            between words. Others without spaces (Thai, Lao, Khmer, Burmese) stay whole runs: where their words end,
            only a dictionary knows.

    >>> word_spans("to be, or")
    [(0, 2), (3, 6), (7, 9)]
    >>> word_spans("東京 is big", characters=True)
    [(0, 1), (1, 2), (3, 5), (6, 9)]
    """
    return [match.span() for match in _WORDS[characters].finditer(text)]


def split_words(text: str) -> tuple[tuple[int, int], ...]:
    """Return (start, end) of every word and every punctuation mark of a text, in characters, end exclusive.

    Scripts that write without spaces between words count each sign as one.

    >>> [("Tom's cat, 猫は"[a:b]) for a, b in split_words("Tom's cat, 猫は")]
    ["Tom's", 'cat', ',', '猫', 'は']
    """
    found: list[tuple[int, int]] = []
    for start, end in (match.span() for match in _WORD_OR_SIGN.finditer(text)):
        if found and found[-1][1] == start and _goes_on(text[start - 1], text[start]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return tuple(found)


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


def word_of_tokens(
    tokens: Sequence[Token], text: str, spans: Sequence[tuple[int, int]] | None = None
) -> NDArray[np.int64]:
    """Return (tokens,) the number of the word that each token belongs to; -1 for special ones and white space.

    A token belongs to the word in which its last character lies, so that a leading space does no harm.

    Args:
        tokens: of the text.
        text: what they were made from.
        spans: (start, end) of the words, in characters; None: those of `word_spans`.
    """
    spans = word_spans(text) if spans is None else spans
    ends = np.array([end for _, end in spans])
    starts = np.array([start for start, _ in spans])
    words = []
    for token in tokens:
        word = int(np.searchsorted(ends, token.end)) if token.end > token.start else len(ends)
        words.append(word if word < len(ends) and token.end > starts[word] and not token.special else -1)
    return np.array(words)


def token_items(tokens: Sequence[Token]) -> tuple[Item, ...]:
    """Return an item for each token."""
    return tuple(
        Item(token.label, (place,), "special" if token.special else "word") for place, token in enumerate(tokens)
    )


def word_items(tokens: Sequence[Token]) -> tuple[Item, ...]:
    """Return the words of a text as items, in order, with special tokens and white space as items of their own.

    A word is what stands between white space or special tokens, its punctuation included; in Chinese and Japanese it is
    one character, or those that one token holds together. Every token is in exactly one item.

    Args:
        tokens: all tokens of a text.

    >>> parts = [("[CLS]", 0, 0, True), ("un", 0, 2, False), ("##do", 2, 4, False), ("it", 5, 7, False)]
    >>> tokens = [Token(i, 0, t, t[-2:], start, end, special) for i, (t, start, end, special) in enumerate(parts)]
    >>> [(item.label, item.tokens, item.kind) for item in word_items(tokens)]
    [('[CLS]', (0,), 'special'), ('undo', (1, 2), 'word'), ('it', (3,), 'word')]
    """
    text = _written(tokens)
    words = word_of_tokens(tokens, text, word_spans(text, characters=True))  # (tokens,)
    items: list[Item] = []
    places: list[int] = []  # tokens of the word that is being read
    for place, token in enumerate(tokens):
        if words[place] < 0:
            items.append(Item(token.label, (place,), "special" if token.special else "space"))
            continue
        places = [*places, place] if places and words[place] == words[places[-1]] else [place]
        label = text[tokens[places[0]].start : token.end].strip()
        if len(places) > 1:
            items.pop()
        items.append(Item(label, tuple(places), "word"))
    return tuple(items)


def item_of_tokens(items: Sequence[Item], n_tokens: int) -> NDArray[np.int64]:
    """Return (n_tokens,) the number of the item that holds each token, -1 where none does.

    >>> item_of_tokens([Item("a", (0, 1), "word"), Item("b", (3,), "word")], 4).tolist()
    [0, 0, -1, 1]
    """
    found = np.full(n_tokens, -1)
    for number, item in enumerate(items):
        found[list(item.tokens)] = number
    return found


def merge_words(
    weights: ArrayLike, words: ArrayLike, n_words: int, keys: tuple[ArrayLike, int] | None = None
) -> NDArray[np.float64]:
    """Return a map of words from a map of tokens: sums over a word's keys, means over its queries.

    Args:
        weights: (queries, keys).
        words: (queries,) the word of each query; tokens of -1 are left out.
        n_words: number of words.
        keys: the same two for the keys, where they aren't the same tokens as the queries.

    Returns:
        (words, words of the keys); the row of a word without a token is 0.

    >>> merge_words([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]], [0, 1, 1], 2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    rows, columns = (
        np.equal.outer(np.arange(n), np.asarray(of)).astype(np.float64)  # (words, tokens)
        for of, n in ((words, n_words), keys or (words, n_words))
    )
    n_tokens = np.maximum(rows.sum(axis=1, keepdims=True), 1)  # (words, 1)
    with one_thread():
        return (rows @ np.asarray(weights, np.float64) @ columns.T) / n_tokens


def weight_on(weights: ArrayLike, columns: ArrayLike) -> float:
    """Return how much of a row goes to some columns, as the mean over the rows; 0 if there is no row.

    Args:
        weights: (queries, keys).
        columns: (keys,) True for the columns that count.

    >>> weight_on([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]], [True, False, True])
    0.75
    """
    rows = np.asarray(weights, np.float64)[:, np.asarray(columns, bool)]
    return float(rows.sum(axis=1).mean()) if len(rows) else 0.0


def _goes_on(before: str, sign: str) -> bool:
    """Return True if a sign belongs to the word before it: an accent or a vowel of its own, or a letter after one."""
    if _is_mark(sign) or before == "\u200d":
        return True
    return _is_mark(before) and sign.isalnum() and not re.match(f"[{_ALONE}]", sign)


def _is_mark(sign: str) -> bool:
    return (
        unicodedata.category(sign)[0] == "M" or sign in _JOINERS or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )  # skin tones


def _written(tokens: Sequence[Token]) -> str:
    """Return the text that ordinary tokens cover, with spaces where special ones or none are."""
    characters = [" "] * max((token.end for token in tokens), default=0)
    for token in tokens:
        if not token.special:
            room = token.end - token.start
            characters[token.start : token.end] = token.text[:room].ljust(room)
    return "".join(characters)
