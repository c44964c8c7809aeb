"""What a head is known for: its scores on a battery of reference texts, not on the text of the moment. NumPy only.

A head that finds what came after an earlier occurrence rests on the first token of a text without repetition, so one
text says little about a head. The battery gives each pattern its occasion.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from attnviz.core.heads.measures import after_same_token, attention_entropy, same_token_before, shifted, weight_on
from attnviz.core.trace.records import Token
from attnviz.core.trace.trace import Trace

BATTERY_FILE = resources.files("attnviz.core.heads") / "battery.toml"

DELIMITERS = frozenset(".,;:!?")
CLOSING = {")": "(", "]": "[", "}": "{", "”": "“„", "“": "„", "»": "«", "«": "»", '"': '"'}
NEAR = 3  # tokens
WIDE = 8  # allowed keys from which on "nearby" and "broad" say something


@dataclass(frozen=True)
class BatteryText:
    """One reference text, and the kind of occasion it gives; the file it comes from explains the kinds."""

    kind: str
    text: str


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

_CLOSER = frozenset({"previous", "next", "own"})  # say more than "nearby" does


@dataclass(frozen=True, eq=False)
class BatteryScores:
    """The scores of all heads of a model on the battery.

    Attributes:
        patterns: keys of PATTERNS, in the order of the arrays' first axis.
        layers: numbers of the layers, in the order of the second axis.
        scores: (patterns, layers, heads) mean weight over the positions that count (for "broad" mean evenness, for
            "first" the lowest mean of any text); NaN without any, and for heads that a layer lacks.
        even: (patterns, layers) what a head with equal shares would score; 0 for "broad", where equal shares score 1.
        n: (patterns, layers) number of positions (queries) behind each score.
    """

    patterns: tuple[str, ...]
    layers: tuple[int, ...]
    scores: NDArray[np.float64]
    even: NDArray[np.float64]
    n: NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """One thing that a head is known for: the pattern's key and title, the head's score, and positions behind it."""

    pattern: str
    title: str
    score: float
    n: int


@cache
def battery_texts() -> tuple[BatteryText, ...]:
    """Return the reference texts that come with attnviz.

    >>> sorted({text.kind for text in battery_texts()})
    ['again', 'brackets', 'prose', 'punctuation', 'repeat']
    """
    entries = tomllib.loads(BATTERY_FILE.read_text(encoding="utf-8"))["text"]
    return tuple(BatteryText(entry["kind"], entry["text"]) for entry in entries)


def score_battery(traces: Iterable[tuple[str, Trace]], *, part: str | None = None) -> BatteryScores:
    """Score every head of a model on every pattern.

    Positions are queries: never the first token, never a special one such as `[SEP]`, and of the others those for which
    the pattern has a target that the layer lets them see. The first token is no target either, but for "first". What
    each pattern's targets are is in PATTERNS.

    Args:
        traces: (kind, trace) of each text of the battery, all of one model, at rest; a generator will do, none is kept.
        part: which part of a model that has several; one whose queries and keys are the same text.

    Returns:
        BatteryScores.

    Raises:
        ValueError: no traces, a kind that no pattern knows, cross-attention, or traces of several models.
    """
    layers: tuple[int, ...] = ()
    found: dict[tuple[str, int], list[_Rows]] = {}
    for kind, trace in traces:
        if not any(kind in pattern.kinds for pattern in PATTERNS.values()):
            raise ValueError(
                f"a text of the battery is of kind prose, repeat, again, punctuation or brackets, not {kind!r}"
            )
        if part == "cross":
            raise ValueError("the battery needs queries and keys of the same text, so not cross-attention")
        if layers and trace.layers_of(part) != layers:
            raise ValueError(f"expected traces of one model with layers {layers}, got layers {trace.layers_of(part)}")
        layers = trace.layers_of(part)
        for layer in layers:
            for key, rows in _score_layer(kind, trace, layer, part).items():
                found.setdefault((key, layer), []).append(rows)
    if not layers:
        raise ValueError("expected at least one trace of a text of the battery, got none")
    return _collect(found, layers)


def known_for(scores: BatteryScores, layer: int, head: int) -> list[Known]:
    """Return what a head is known for, the highest score first; nothing is a valid answer.

    A score counts if it is far enough from what equal shares would score: PATTERNS says how far for each pattern.

    Raises:
        ValueError: no such layer or head.
    """
    if layer not in scores.layers or not 0 <= head < scores.scores.shape[2]:
        raise ValueError(f"there is no L{layer} H{head} in these scores")
    i = scores.layers.index(layer)
    known = []
    for p, key in enumerate(scores.patterns):
        if stands_out(scores, key)[i, head]:
            known.append(Known(key, PATTERNS[key].title, float(scores.scores[p, i, head]), int(scores.n[p, i])))
    if _CLOSER & {entry.pattern for entry in known}:
        known = [entry for entry in known if entry.pattern != "near"]
    return sorted(known, key=lambda entry: -entry.score)


def stands_out(scores: BatteryScores, pattern: str) -> NDArray[np.bool_]:
    """Return (layers, heads), True where a score is far enough from what equal shares would score to be known for.

    Raises:
        ValueError: no such pattern in these scores.
    """
    if pattern not in scores.patterns:
        raise ValueError(f"these scores are of {', '.join(scores.patterns)}; got {pattern}")
    p = scores.patterns.index(pattern)
    even = scores.even[p][:, None]  # (layers, 1), NaN without a position, which no score reaches
    return np.asarray(scores.scores[p] - even >= PATTERNS[pattern].enough * (1 - even))


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


@dataclass(frozen=True, eq=False)
class _Rows:
    values: NDArray[np.float64]  # (heads, positions)
    even: NDArray[np.float64]  # (positions,)


def _score_layer(kind: str, trace: Trace, layer: int, part: str | None) -> dict[str, _Rows]:
    """Return the score of every position that counts, for each pattern that this kind of text gives occasion to."""
    tokens = trace.tokens_of(part)[1]
    weights = trace.layer_weights(layer, part=part)  # (heads, queries, keys)
    allowed = trace.layer_allowed(layer, part=part)[0]  # (queries, keys)
    usable = usable_rows(tokens)  # (queries,)
    rows = {}
    for key, pattern in PATTERNS.items():
        if kind not in pattern.kinds or (key == "next" and trace.causal(layer, part=part)):
            continue
        values, even, counts = score_rows(key, weights, allowed, pattern_targets(key, tokens), usable)
        rows[key] = _Rows(values[:, counts], even[counts])
    return rows


def _collect(found: dict[tuple[str, int], list[_Rows]], layers: tuple[int, ...]) -> BatteryScores:
    n_heads = max(len(rows.values) for texts in found.values() for rows in texts)
    shape = (len(PATTERNS), len(layers))
    scores, even, n = np.full((*shape, n_heads), np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for (key, layer), texts in found.items():
        place = list(PATTERNS).index(key), layers.index(layer)
        values = np.concatenate([rows.values for rows in texts], axis=1)  # (heads, positions)
        n[place] = values.shape[1]
        if not n[place]:
            continue
        even[place] = np.concatenate([rows.even for rows in texts]).mean()
        means = values.mean(axis=1)
        if key == "first":
            means = np.min([rows.values.mean(axis=1) for rows in texts if rows.values.size], axis=0)
        scores[place][: len(means)] = means
    return BatteryScores(tuple(PATTERNS), layers, scores, even, n)
