"""What a head is known for: its scores on a battery of reference texts, not on the text of the moment. NumPy only.

A head that finds what came after an earlier occurrence rests on the first token of a text without repetition, so one
text says little about a head. The battery gives each pattern its occasion.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from attnviz.core.heads.patterns import CLOSER, PATTERNS, pattern_targets, score_rows, usable_rows
from attnviz.core.trace.trace import Trace

BATTERY_FILE = resources.files("attnviz.core.heads") / "battery.toml"


@dataclass(frozen=True)
class BatteryText:
    """One reference text, and the kind of occasion it gives; the file it comes from explains the kinds."""

    kind: str
    text: str


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
    if CLOSER & {entry.pattern for entry in known}:
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
