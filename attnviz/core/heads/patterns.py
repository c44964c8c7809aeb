"""What a head may be known for: where each pattern says that a row should look, and what a row scores. NumPy only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.core.heads.measures import after_same_token, attention_entropy, same_token_before, shifted, weight_on
from attnviz.core.trace.records import Token

DELIMITERS = frozenset(".,;:!?")
CLOSING = {")": "(", "]": "[", "}": "{", "”": "“„", "“": "„", "»": "«", "«": "»", '"': '"'}
NEAR = 3  # tokens
WIDE = 8  # allowed keys from which on "nearby" and "broad" say something


@dataclass(frozen=True)
class Pattern:
    """Something a head may be known for.

    Attributes:
        title: what it is called.
        explanation: one sentence: what is measured, on which positions.
        kinds: the kinds of texts it is scored on.
        enough: a head is known for it from this share of the way on, between equal shares (0) and all the weight (1).
    """

    title: str
    explanation: str
    kinds: frozenset[str]
    enough: float = 0.25


_SENTENCES = frozenset({"prose", "again", "punctuation", "brackets"})
PATTERNS = {
    "previous": Pattern(
        "previous token", "The weight on the token right before, where that isn't the first one.", frozenset({"prose"})
    ),
    "next": Pattern(
        "next token", "The weight on the token right after, in layers that see later tokens.", frozenset({"prose"})
    ),
    "own": Pattern("the token itself", "The weight on the token itself.", frozenset({"prose"})),
    "induction": Pattern(
        "what came next last time",
        "The weight on what followed the same token, where words in no order come a second time.",
        frozenset({"repeat"}),
    ),
    "same": Pattern(
        "the same token before",
        "The weight on earlier occurrences of the same token, delimiters left out.",
        frozenset({"repeat", "again"}),
    ),
    "delimiters": Pattern(
        "delimiters", "The weight on . , ; : ! and ?, in rows that may see one.", frozenset({"punctuation"})
    ),
    "brackets": Pattern(
        "closing to opening",
        "The weight of a closing bracket or quotation mark on the one that opened.",
        frozenset({"brackets"}),
    ),
    "first": Pattern(
        "always the first token",
        "The weight on the first token, in the one text where it is lowest.",
        _SENTENCES | {"repeat"},
        enough=0.9,
    ),
    "near": Pattern(
        "nearby tokens",
        f"The weight on tokens at most {NEAR} away, itself included, in rows that may see {WIDE} or more.",
        _SENTENCES,
        enough=0.6,
    ),
    "broad": Pattern(
        "broad",
        f"How evenly the weight is spread (1 is equal shares), in rows that may see {WIDE} or more.",
        _SENTENCES,
        enough=0.85,
    ),
}


CLOSER = frozenset({"previous", "next", "own"})  # say more than "nearby" does


def is_delimiter(token: Token) -> bool:
    """Return True if a token is made of delimiters alone.

    >>> is_delimiter(Token(3, 28, "·.", " .", 9, 11, False)), is_delimiter(Token(4, 9, "U.S.", "U.S.", 11, 15, False))
    (True, False)
    """
    letters = token.text.strip()
    return bool(letters) and not token.special and set(letters) <= DELIMITERS


def closing_to_opening(tokens: Iterable[Token]) -> list[tuple[int, int]]:
    """Return (closing token, opening token) of each bracket and quotation mark that is opened and closed, by index.

    Pairs are matched like brackets in a formula, innermost first. A straight quotation mark closes if one is open. A
    pair within one token is left out.

    >>> text = 'a ( b ) "'
    >>> closing_to_opening([Token(i, 0, letter, letter, i, i + 1, False) for i, letter in enumerate(text)])
    [(6, 2)]
    """
    pairs: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    for token in tokens:
        for letter in token.text:
            if opened and opened[-1][0] in CLOSING.get(letter, ""):
                pairs.append((token.index, opened.pop()[1]))
            elif any(letter in openings for openings in CLOSING.values()):
                opened.append((letter, token.index))
    return [(close, start) for close, start in pairs if close != start]


def usable_rows(tokens: Sequence[Token]) -> NDArray[np.bool_]:
    """Return (queries,), True for the queries that patterns are scored on: not the first token, no special one."""
    return np.array([token.index > 0 and not token.special for token in tokens], bool)


def pattern_targets(key: str, tokens: Sequence[Token]) -> NDArray[np.bool_]:
    """Return what a pattern says a query should look at; for "broad" nothing, since its score needs no targets.

    Args:
        key: of PATTERNS.
        tokens: of the text.

    Returns:
        (queries, keys), True on the targets, whether or not a mask lets the query see them.

    Raises:
        ValueError: no such pattern.

    >>> tokens = [Token(i, id, "", "", 0, 0, False) for i, id in enumerate([5, 7, 8, 7])]
    >>> pattern_targets("same", tokens).astype(int).tolist()[3]
    [0, 1, 0, 0]
    """
    if key not in PATTERNS:
        raise ValueError(f"a pattern is one of {', '.join(PATTERNS)}; got {key}")
    ids = np.array([token.id for token in tokens])
    own = np.arange(len(tokens))
    plain = np.array([not token.special for token in tokens])  # (keys,)
    if key == "first":
        return np.tile(own == 0, (len(own), 1))
    if key in ("previous", "next", "own"):
        return shifted(own, len(own), {"previous": -1, "next": 1, "own": 0}[key]) & plain
    if key == "induction":
        return after_same_token(ids, own) & plain
    delimiters = np.array([is_delimiter(token) for token in tokens])
    if key == "same":
        return same_token_before(ids, own) & plain & ~delimiters
    if key == "delimiters":
        return np.tile(delimiters & (own > 0), (len(own), 1))
    if key == "near":
        return (np.abs(own[:, None] - own) <= NEAR) & (own > 0) & plain
    table = np.zeros((len(own), len(own)), bool)
    if key == "broad":
        return table
    for close, start in closing_to_opening(tokens):
        table[close, start] = start > 0
    return table


def score_rows(
    key: str,
    weights: NDArray[np.float32],
    allowed: NDArray[np.bool_],
    targets: NDArray[np.bool_],
    usable: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the score of each row of a map for a pattern, what equal shares would score, and which rows count.

    Args:
        key: of PATTERNS.
        weights: (heads, rows, keys).
        allowed: (rows, keys), or (1 or heads, rows, keys) where heads differ in what they may see.
        targets: (rows, keys) of `pattern_targets`.
        usable: (rows,) of `usable_rows`.

    Returns:
        Scores (heads, rows); equal shares and whether a row counts, (..., rows) as `allowed` has them.
    """
    seen = np.maximum(allowed.sum(axis=-1), 1)  # (..., rows)
    if key == "broad":
        return attention_entropy(weights, allowed), np.zeros(seen.shape), usable & (seen >= WIDE)
    goals = targets & allowed  # (..., rows, keys)
    counts = usable & goals.any(axis=-1) & ((seen >= WIDE) | (key != "near"))
    return weight_on(weights, goals), goals.sum(axis=-1) / seen, counts
