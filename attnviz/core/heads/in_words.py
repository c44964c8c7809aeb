"""What one head does on one text, in plain words. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.heads.finder import resting_keys
from attnviz.core.heads.measures import (
    attention_entropy,
    induction_score,
    mass_on,
    next_token_score,
    own_token_score,
    previous_token_score,
    same_token_score,
)
from attnviz.core.trace.blocks import mean_over_rows
from attnviz.core.trace.records import Token

STEADY = 0.5  # more than half of the weight, in the mean over rows, is what a head does on this text
ACTIVE = 0.4  # less is enough where a head has its rare occasion, a token that was there before
AT_REST = 0.9
EVEN = 0.9
FEWEST_ROWS = 2


@dataclass(frozen=True)
class Here:
    """What a head does on one text.

    Attributes:
        kind: "nothing", "previous", "next", "own", "induction", "same", "rest", "mostly rest", "even" or "look".
        value: the figure behind it, from 0 to 1: a mean weight, for "even" the evenness, for "look" one weight.
        n: rows behind the figure; 1 for "look".
        sentence: the finding in words, labels of tokens as they are (not escaped).
        cell: (query, key) of the strongest look away from the resting place, as indices into the rows and keys given;
            None where there is none.
    """

    kind: str
    value: float
    n: int
    sentence: str
    cell: tuple[int, int] | None = None


def here(
    weights: ArrayLike,
    allowed: ArrayLike,
    tokens: Sequence[Token],
    *,
    rows: ArrayLike | None = None,
    query_tokens: Sequence[Token] | None = None,
) -> Here:
    """Say what a head does on this text, which may be nothing: a head at rest can be a specialist with no occasion.

    In this order: a head that keeps to the previous, next or own token, or goes to repetitions; a head at rest, on the
    first token or on special tokens such as `[SEP]`; even shares; else its strongest look. Rows of resting places
    themselves and rows with one allowed key don't count.

    Args:
        weights: (queries, keys) of one head.
        allowed: booleans of that shape, True where the query may see the key.
        tokens: the key tokens; the queries are the same ones unless `query_tokens` is given.
        rows: position of each query among the tokens, for a selection of rows.
        query_tokens: the query tokens of cross-attention; None says that queries and keys are the same text.

    Returns:
        A Here.

    Raises:
        ValueError: weights that aren't rows of attention, or tokens or rows that don't fit.
    """
    weights, allowed, rows, queries = _check(weights, allowed, tokens, rows, query_tokens)
    rests = resting_keys(tokens)  # (keys,)
    counted = (allowed.sum(axis=1) > 1) & ((rows < 0) | ~rests[rows])  # (queries,)
    if not counted.any():
        return Here("nothing", 0.0, 0, "No token has a choice here: each can look at itself or a resting place only.")
    resting, n_rows = _mean(mass_on(weights, rests), counted)
    place = _resting_place(tokens)
    cell = _strongest_look(weights, allowed, counted, rests)
    habit = _habit(weights, np.array([token.id for token in tokens]), rows, counted)
    if habit is not None:
        kind, value, n = habit
        return Here(kind, value, n, _habit_sentence(habit, n_rows, resting, place), cell)
    if resting >= AT_REST:
        return Here("rest", resting, n_rows, f"At rest: {percent(resting)} of its weight is on {place}.", cell)
    even, n_even = _mean(attention_entropy(weights, allowed), counted)
    if even >= EVEN:
        return Here(
            "even", even, n_even, f"Spreads its weight evenly: evenness {even:.2f}, where 1 is equal shares.", cell
        )
    look = "" if cell is None else _look_sentence(float(weights[cell]), queries[cell[0]], tokens[cell[1]])
    if resting >= STEADY or cell is None:
        start = f"Mostly at rest: {percent(resting)} of its weight is on {place}."
        return Here("mostly rest", resting, n_rows, f"{start} {look}".strip(), cell)
    return Here("look", float(weights[cell]), 1, look, cell)


_PHRASES = {
    "previous": "on the token right before",
    "next": "on the token right after",
    "own": "on the token itself",
    "induction": "on what came after the same token earlier",
    "same": "on earlier occurrences of the same token",
}


def _habit(
    weights: NDArray[np.floating[Any]], ids: NDArray[np.int64], rows: NDArray[np.int64], counted: NDArray[np.bool_]
) -> tuple[str, float, int] | None:
    """Return the first pattern that the head keeps to, as (kind, mean weight, rows that count), or None."""
    if (rows < 0).any():
        return None  # queries of another text have no token before them here
    patterns = {
        "previous": (previous_token_score(weights, rows=rows), STEADY),
        "next": (next_token_score(weights, rows=rows), STEADY),
        "own": (own_token_score(weights, rows=rows), STEADY),
        "induction": (induction_score(weights, ids, rows=rows), ACTIVE),
        "same": (same_token_score(weights, ids, rows=rows), ACTIVE),
    }
    for kind, (values, enough) in patterns.items():
        value, n = _mean(values, counted)
        if n >= FEWEST_ROWS and value >= enough:
            return kind, value, n
    return None


def _mean(values: NDArray[np.float64], counted: NDArray[np.bool_]) -> tuple[float, int]:
    mean, n = mean_over_rows(np.where(counted, values, np.nan))
    return float(mean), int(n)


def _strongest_look(
    weights: NDArray[np.floating[Any]], allowed: NDArray[np.bool_], counted: NDArray[np.bool_], rests: NDArray[np.bool_]
) -> tuple[int, int] | None:
    away = np.where(allowed & counted[:, None] & ~rests, weights, -1.0)  # (queries, keys)
    query, key = divmod(int(away.argmax()), away.shape[1])
    return (query, key) if away[query, key] > 0 else None


def _habit_sentence(habit: tuple[str, float, int], n_rows: int, resting: float, place: str) -> str:
    kind, value, n = habit
    share = f"{percent(value)} of the weight is {_PHRASES[kind]}"
    if kind not in ("induction", "same"):
        return f"{share[0].upper()}{share[1:]} ({n} rows)."
    rest = f"; over all rows {percent(resting)} rests on {place}" if resting >= ACTIVE else ""
    return f"Active in {n} of {n_rows} rows: there {share}{rest}."


def _resting_place(tokens: Sequence[Token]) -> str:
    special = list(dict.fromkeys(token.label for token in tokens if token.special))
    if not special:
        return f"the first token, “{tokens[0].label}”"
    return " and ".join(special if tokens[0].special else [f"the first token, “{tokens[0].label}”,", *special])


def _look_sentence(weight: float, query: Token, key: Token) -> str:
    return f"Strongest look: {percent(weight)} of the row of “{query.label}” is on “{key.label}”."


def percent(share: float) -> str:
    """Write a share in percent, never as 0 or 100 unless it is.

    >>> percent(0.724), percent(0.9999), percent(0.0123)
    ('72 %', 'over 99.9 %', '1.2 %')
    """
    if 0.999 < share < 1:
        return "over 99.9 %"
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{share:.1%}".replace("%", " %") if share < 0.1 or 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def _check(
    weights: ArrayLike,
    allowed: ArrayLike,
    tokens: Sequence[Token],
    rows: ArrayLike | None,
    query_tokens: Sequence[Token] | None,
) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_], NDArray[np.int64], list[Token]]:
    """Return weights, allowed, the position of each query (-1 if it is of another text) and the query tokens."""
    weights, allowed = np.asarray(weights), np.asarray(allowed, bool)
    if weights.ndim != 2 or weights.shape[1] != len(tokens) or allowed.shape != weights.shape:
        shapes = f"{weights.shape} and {allowed.shape}"
        raise ValueError(f"expected weights and allowed of shape (queries, {len(tokens)} keys), got {shapes}")
    if query_tokens is not None:
        rows = np.full(len(query_tokens), -1)
    rows = np.arange(len(weights)) if rows is None else np.asarray(rows, np.int64)
    if rows.shape != weights.shape[:1] or not (rows < len(tokens)).all():
        raise ValueError(
            f"expected a position or a query token for each of {len(weights)} queries, got {rows.tolist()}"
        )
    queries = [tokens[int(row)] for row in rows] if query_tokens is None else list(query_tokens)
    return weights, allowed, rows, queries
