"""Two maps side by side: which tokens stand for each other, what differs, and maps of words where tokens don't fit.

NumPy only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.text.words import merge_words
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import ModelInfo, Token
from attnviz.core.trace.switches import Switches


@dataclass(frozen=True, eq=False)
class Partners:
    """Which token of one text stands where which token of another does.

    Attributes:
        place: (tokens,) position of the partner in the other text, -1 where there is none.
        same: (tokens,) True where token and partner read the same; False too where one word replaced another.
    """

    place: NDArray[np.int64]
    same: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Difference:
    """The other map minus the first, in the order of the first one's tokens; all arrays are (queries, keys).

    Attributes:
        values: 0 where nothing is compared.
        seen: True where at least one of both maps allows the look, and both have the cell.
        unpaired: True where the other map has no such cell.
    """

    values: NDArray[np.float32]
    seen: NDArray[np.bool_]
    unpaired: NDArray[np.bool_]


def same_tokens(one: Sequence[Token], other: Sequence[Token]) -> bool:
    """Return True if both texts are cut into the same tokens, whatever numbers their vocabularies give them."""
    return [_reads(token) for token in one] == [_reads(token) for token in other]


def token_partners(one: Sequence[Token], other: Sequence[Token]) -> Partners:
    """Align two texts token by token: longest runs that read the same first, then what stands between them.

    As many tokens in the place of as many others are partners too, without being the same; a special token is never
    that of a word. Others have no partner.

    Args:
        one: tokens of a text, or of a part of it.
        other: tokens of another one.

    Returns:
        For each token of `one`; places count from the first of `other`.

    >>> a, b = ([Token(i, 0, word, word, 0, 1, False) for i, word in enumerate(text)] for text in ("axb", "ayb"))
    >>> partners = token_partners(a, b)
    >>> partners.place.tolist(), partners.same.tolist()
    ([0, 1, 2], [True, False, True])
    """
    place, same = np.full(len(one), -1), np.zeros(len(one), bool)
    matcher = SequenceMatcher(None, [_reads(t) for t in one], [_reads(t) for t in other], autojunk=False)
    for kind, start, stop, start_there, stop_there in matcher.get_opcodes():
        if stop - start == stop_there - start_there:
            alike = [t.special == u.special for t, u in zip(one[start:stop], other[start_there:], strict=False)]
            place[start:stop] = np.where(alike, np.arange(start_there, stop_there), -1)
            same[start:stop] = kind == "equal"
    return Partners(place, same)


def rows_must_agree(
    one: Maps, other: Maps, n_rows: int, *, shown: tuple[Switches | None, Switches | None] = (None, None)
) -> bool:
    """Return True if the first rows of two texts that begin alike can differ by nothing but rounding.

    That is so where both ran under one rule, in which no token sees a later one: the same weights in the same engine
    and precision, and the same switches, as far as they concern those rows. A causal switch on the picture alone isn't
    enough, since earlier layers have seen what comes later; nor is a decoder that looks at another text as well.

    Args:
        one: a text as a model saw it.
        other: a text whose first `n_rows` tokens are the same.
        n_rows: how many rows are compared.
        shown: switches on the picture of each; None: those of the pass.
    """
    ran = [(*_what_ran(trace.model), _within(trace.switches, n_rows)) for trace in (one, other)]
    seen = [_within(t.switches if s is None else s, n_rows) for t, s in zip((one, other), shown, strict=True)]
    return ran[0] == ran[1] and seen[0] == seen[1] and len(one.parts) == 1 and _ran_causally(one)


def map_difference(
    one: ArrayLike,
    other: ArrayLike,
    seen: ArrayLike,
    seen_there: ArrayLike,
    queries: Partners,
    keys: Partners,
) -> Difference:
    """Return the other map minus the first wherever query and key are the same tokens in both.

    Args:
        one: (queries, keys) weights.
        other: (other's queries, other's keys) weights.
        seen: (queries, keys) bool, where the first map allows the look.
        seen_there: likewise for the other.
        queries: partners of the first map's queries among the other's.
        keys: of its keys.

    >>> pair = Partners(np.array([0, 1]), np.array([True, True]))
    >>> every = np.ones((2, 2), bool)
    >>> map_difference([[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75]], every, every, pair, pair).values.tolist()
    [[0.0, 0.0], [-0.25, 0.25]]
    """
    there = np.ix_(np.where(queries.same, queries.place, 0), np.where(keys.same, keys.place, 0))
    paired = np.outer(queries.same, keys.same)
    change = np.asarray(other, np.float32)[there] - np.asarray(one, np.float32)
    visible = np.asarray(seen, bool) | np.asarray(seen_there, bool)[there]
    return Difference(np.where(paired & visible, change, np.float32(0)), paired & visible, ~paired)


def largest_change(difference: Difference) -> tuple[int, int] | None:
    """Return (query, key) of the largest difference, above or below 0; None if nothing is compared or all is equal."""
    size = np.where(difference.seen, np.abs(np.nan_to_num(difference.values)), 0.0)
    if not size.size or not size.max() > 0:
        return None
    query, key = divmod(int(size.argmax()), size.shape[1])
    return query, key


def strongest_keys(row: ArrayLike, seen: ArrayLike, n: int) -> list[tuple[int, float]]:
    """Return (key, weight) of the n keys that a query looks at most, strongest first, without those it may not see.

    >>> strongest_keys([0.25, 0.5, 0.25, 0.0], [True, True, True, False], 2)
    [(1, 0.5), (0, 0.25)]
    """
    weights = np.asarray(row, np.float64)
    allowed = np.flatnonzero(np.asarray(seen, bool))
    best = allowed[np.argsort(-weights[allowed], kind="stable")[:n]]
    return [(int(key), float(weights[key])) for key in best]


def word_map(
    weights: ArrayLike, allowed: ArrayLike, words: ArrayLike, n_words: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return a map of words from one of tokens, and where a word may look at another at all.

    Args:
        weights: (tokens, tokens).
        allowed: (tokens, tokens) bool.
        words: (tokens,) the word of each token; tokens of none of the n_words are left out.
        n_words: number of words.

    Returns:
        (words, words) sums over a word's keys, means over its queries; (words, words) bool.

    >>> weights, seen = word_map([[1.0, 0.0], [0.25, 0.75]], np.tri(2, dtype=bool), [0, 1], 2)
    >>> weights.tolist(), seen.tolist()
    ([[1.0, 0.0], [0.25, 0.75]], [[True, False], [True, True]])
    """
    cells = np.asarray(allowed, bool)
    merged = merge_words(np.where(cells, np.asarray(weights, np.float64), 0.0), words, n_words)
    return merged.astype(np.float32), merge_words(cells, words, n_words) > 0


def _reads(token: Token) -> tuple[str, str, bool]:
    return token.label, token.text, token.special


def _what_ran(model: ModelInfo) -> tuple[str, str, str, str]:
    return model.name, model.revision, model.engine, model.dtype


def _ran_causally(trace: Maps) -> bool:
    if trace.switches.causal is not None:
        return trace.switches.causal
    return all(trace.causal(layer) for layer in trace.layers)


def _within(switches: Switches, n_rows: int) -> Switches:
    """Return the switches without the forbidden looks of later rows."""
    return replace(switches, forbid=frozenset(look for look in switches.forbid if look[2] < n_rows))
