"""Measures of attention rows: how much weight a query gives to what. Pure functions on arrays, NumPy only.

Each measure takes weights (..., queries, keys) and returns one number a query, (..., queries), NaN where the row says
nothing (the first token can't look at a token before it). `mean_over_rows` makes one number a head of them and says how
many rows are behind it. Rows may sum to less than 1, as learned sinks leave them.

`rows=` gives the position of each query among the keys, for blocks of rows; -1 for a query that isn't one of the keys,
as in cross-attention. Without it, the weights must be square and row i is token i.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import FloatArray, as_floats

Rows = NDArray[np.float64]
Table = NDArray[np.bool_]

ROW_SUM_SLACK = 0.01  # rows of models in half precision add up to as much as 1.002


def attention_entropy(weights: ArrayLike, allowed: ArrayLike) -> Rows:
    """Return how evenly each query spreads its weight over the keys it may see, from 0 to 1.

    A row with weights a_1 .. a_K has entropy -sum_k a_k log a_k, at most log K. K is the number of allowed keys, so an
    early row of a causal map can reach 1 too. A row that sums to less than 1 is brought to 1 first: what counts is how
    the weight that falls on tokens is spread.

    Args:
        weights: (..., queries, keys).
        allowed: booleans that broadcast to it, True where the query may see the key.

    Returns:
        (..., queries), 0 for all weight on one key, 1 for even shares; NaN for rows with fewer than two allowed keys.

    Raises:
        ValueError: weights that aren't rows of attention, or `allowed` of another shape.

    Source: Shannon 1948, section 6; for attention heads, Clark et al. 2019, section 3.

    >>> attention_entropy([[1.0, 0.0], [0.5, 0.5]], [[True, False], [True, True]]).round(6).tolist()
    [nan, 1.0]
    """
    weights, totals = _check_weights(weights)
    n_allowed = _check_table(allowed, weights, "allowed").sum(axis=-1)  # (..., queries)
    tiny = np.finfo(weights.dtype).tiny
    logs = np.log(np.maximum(weights, tiny))  # finite at weight 0, where 0 log 0 = 0
    entropy = -np.einsum("...k,...k->...", weights, logs)  # (..., queries)
    counts = (n_allowed > 1) & (totals > 0)
    safe = np.where(counts, totals, 1.0)
    ceiling = np.log(np.where(counts, n_allowed, 2))
    even = (entropy / safe + np.log(safe)) / ceiling
    return np.where(counts, np.clip(even, 0.0, 1.0), np.nan)  # rounding leaves -1e-8 or 1 + 1e-7


def mean_distance(weights: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return how far each query looks, in tokens: the sum of weight times |query - key|, over the sum of weight.

    Returns:
        (..., queries), from 0 (itself) to keys - 1; NaN for queries that aren't among the keys, or rows without weight.

    Raises:
        ValueError: weights that aren't rows of attention, or `rows` that don't fit.

    >>> mean_distance([[1.0, 0.0], [0.75, 0.25]]).tolist()
    [0.0, 0.75]
    """
    weights, totals = _check_weights(weights)
    rows = _check_rows(rows, weights)
    distances = np.abs(rows[:, None] - np.arange(weights.shape[-1])).astype(weights.dtype)  # (queries, keys)
    far = np.einsum("...qk,qk->...q", weights, distances)
    return np.where((totals > 0) & (rows >= 0), far / np.where(totals > 0, totals, 1.0), np.nan)


def first_token_weight(weights: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on the first token, where most heads rest.

    Returns:
        (..., queries), from 0 to 1; NaN for the first token's own row.

    Raises:
        ValueError: weights that aren't rows of attention, or `rows` that don't fit.

    Source: Xiao et al. 2023, section 3.1.

    >>> first_token_weight([[1.0, 0.0], [0.75, 0.25]]).tolist()
    [nan, 0.75]
    """
    weights, _ = _check_weights(weights)
    return np.where(_check_rows(rows, weights) == 0, np.nan, weights[..., 0].astype(np.float64))


def largest_weight(weights: ArrayLike) -> Rows:
    """Return the largest weight of each query, (..., queries), from 1 / keys (even shares) to 1.

    Raises:
        ValueError: weights that aren't rows of attention.

    >>> largest_weight([[0.25, 0.75]]).tolist()
    [0.75]
    """
    weights, _ = _check_weights(weights)
    return weights.max(axis=-1).astype(np.float64)


def previous_token_score(weights: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on the token right before it.

    Rows 0 and 1 don't count: row 0 has nothing before it, and row 1 the first token, where heads rest.

    Returns:
        (..., queries), from 0 to 1; NaN for rows 0 and 1 and for queries that aren't among the keys.

    Raises:
        ValueError: weights that aren't rows of attention, or `rows` that don't fit.

    >>> previous_token_score([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.75, 0.25]]).tolist()
    [nan, nan, 0.75]
    """
    return _beside(weights, rows, -1)


def next_token_score(weights: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on the token right after it, (..., queries); NaN for the last token.

    Only models whose tokens see later ones (encoders) can have any.

    Raises:
        ValueError: weights that aren't rows of attention, or `rows` that don't fit.

    >>> next_token_score([[0.25, 0.75], [0.5, 0.5]]).tolist()
    [0.75, nan]
    """
    return _beside(weights, rows, 1)


def own_token_score(weights: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on itself, (..., queries); NaN for the first token, where heads rest.

    Raises:
        ValueError: weights that aren't rows of attention, or `rows` that don't fit.

    >>> own_token_score([[1.0, 0.0], [0.25, 0.75]]).tolist()
    [nan, 0.75]
    """
    return _beside(weights, rows, 0)


def same_token_score(weights: ArrayLike, token_ids: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on earlier occurrences of its own token.

    Args:
        weights: (..., queries, keys).
        token_ids: (keys,) numbers in the vocabulary.
        rows: position of each query, see the top of this module.

    Returns:
        (..., queries), from 0 to 1; NaN where the token wasn't there before. An occurrence as the first token of the
        text doesn't count: weight there may be a head at rest.

    Raises:
        ValueError: weights that aren't rows of attention, or ids or `rows` that don't fit.

    >>> same_token_score([[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0.25, 0.75, 0, 0]], [5, 7, 8, 7]).tolist()
    [nan, nan, nan, 0.75]
    """
    weights, _ = _check_weights(weights)
    return weight_on(weights, same_token_before(_check_ids(token_ids, weights), _check_rows(rows, weights)))


def induction_score(weights: ArrayLike, token_ids: ArrayLike, *, rows: ArrayLike | None = None) -> Rows:
    """Return each query's weight on the tokens that came after earlier occurrences of its own token.

    A head with a high score asks "have I seen this token before, and what came next?", which continues repetitions.

    Args:
        weights: (..., queries, keys).
        token_ids: (keys,) numbers in the vocabulary.
        rows: position of each query, see the top of this module.

    Returns:
        (..., queries), from 0 to 1; NaN where there is no such token, or where it would be the query itself.

    Raises:
        ValueError: weights that aren't rows of attention, or ids or `rows` that don't fit.

    Source: Olsson et al. 2022, "Definition of induction heads".

    >>> induction_score([[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0.25, 0, 0.75, 0]], [5, 7, 8, 7]).tolist()
    [nan, nan, nan, 0.75]
    """
    weights, _ = _check_weights(weights)
    return weight_on(weights, after_same_token(_check_ids(token_ids, weights), _check_rows(rows, weights)))


def mass_on(weights: ArrayLike, key_mask: ArrayLike, *, allowed: ArrayLike | None = None) -> Rows:
    """Return each query's weight on marked keys, such as delimiters.

    Args:
        weights: (..., queries, keys).
        key_mask: (keys,) booleans, True for the keys meant.
        allowed: booleans that broadcast to the weights; with it, a query that may see no marked key doesn't count.

    Returns:
        (..., queries), from 0 to 1; NaN where the row doesn't count.

    Raises:
        ValueError: weights that aren't rows of attention, or masks that don't fit.

    >>> mass_on([[1.0, 0.0], [0.75, 0.25]], [False, True], allowed=[[True, False], [True, True]]).tolist()
    [nan, 0.25]
    """
    weights, _ = _check_weights(weights)
    marked = np.asarray(key_mask)
    if marked.dtype != bool or marked.shape != weights.shape[-1:]:
        raise ValueError(f"key_mask: expected {weights.shape[-1]} booleans, got {marked.dtype} of shape {marked.shape}")
    return weight_on(weights, marked if allowed is None else marked & _check_table(allowed, weights, "allowed"))


def weight_on(weights: ArrayLike, targets: ArrayLike) -> Rows:
    """Return each query's weight on its targets: the sum over the keys marked in its row of a table.

    Args:
        weights: (..., queries, keys).
        targets: booleans that broadcast to it.

    Returns:
        (..., queries); NaN for a row without a target.

    Raises:
        ValueError: weights that aren't rows of attention, or targets that don't fit.
    """
    weights, _ = _check_weights(weights)
    marked = _check_table(targets, weights, "targets")
    on = np.einsum("...k,...k->...", weights, marked.astype(weights.dtype))
    return np.where(marked.any(axis=-1), on, np.nan).astype(np.float64)


def shifted(rows: ArrayLike, n_keys: int, by: int) -> Table:
    """Return the table of what stands `by` tokens after each query: -1 the one before, 0 itself, 1 the next.

    The first token is never a target: heads rest there.

    Args:
        rows: (queries,) position of each query among the keys, -1 if it isn't one of them.
        n_keys: number of keys.
        by: how many tokens further on.

    Returns:
        (queries, keys), at most one True a row.

    >>> shifted([0, 1, 2], 3, -1).astype(int).tolist()
    [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    """
    rows = np.asarray(rows)[:, None]  # (queries, 1)
    keys = np.arange(n_keys)
    return np.asarray((keys == rows + by) & (keys > 0) & (rows >= 0))


def same_token_before(token_ids: ArrayLike, rows: ArrayLike) -> Table:
    """Return (queries, keys), True on earlier occurrences of the query's token, the first token of the text left out.

    >>> same_token_before([5, 7, 5, 7], [2, 3]).astype(int).tolist()
    [[0, 0, 0, 0], [0, 1, 0, 0]]
    """
    ids, rows = np.asarray(token_ids), np.asarray(rows)
    keys = np.arange(len(ids))
    same = ids[rows][:, None] == ids  # (queries, keys)
    return np.asarray(same & (keys < rows[:, None]) & (keys > 0))


def after_same_token(token_ids: ArrayLike, rows: ArrayLike) -> Table:
    """Return (queries, keys), True on the tokens after earlier occurrences of the query's token, the query left out.

    >>> after_same_token([5, 7, 5, 7], [2, 3]).astype(int).tolist()
    [[0, 1, 0, 0], [0, 0, 1, 0]]
    """
    ids, rows = np.asarray(token_ids), np.asarray(rows)
    keys = np.arange(len(ids))
    before = np.concatenate([[-1], ids[:-1]])  # the token before each key; no id is -1
    return np.asarray((ids[rows][:, None] == before) & (keys < rows[:, None]) & (rows[:, None] >= 0))


def _beside(weights: ArrayLike, rows: ArrayLike | None, by: int) -> Rows:
    weights, _ = _check_weights(weights)
    return weight_on(weights, shifted(_check_rows(rows, weights), weights.shape[-1], by))


def _check_weights(weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return weights (..., queries, keys) and their row sums (..., queries), or raise ValueError."""
    weights = as_floats(weights, "weights", "(queries, keys)")
    if weights.shape[-1] == 0:
        raise ValueError(f"weights: expected at least one key, got shape {weights.shape}")
    totals = np.asarray(weights.sum(axis=-1))
    if totals.size and not (weights.min() >= 0 and totals.max() <= 1 + ROW_SUM_SLACK):  # NaN fails too
        raise ValueError(
            "weights: expected rows of attention, from 0 to 1 and with a sum of at most 1, "
            f"got values from {weights.min():.3g} and row sums up to {totals.max():.3g}"
        )
    return weights, totals


def _check_table(table: ArrayLike, weights: FloatArray, name: str) -> NDArray[Any]:
    """Return the table stretched over queries and keys, but not over heads, or raise ValueError."""
    table = np.asarray(table)
    if table.dtype != bool:
        raise ValueError(f"{name}: expected booleans, got {table.dtype}")
    try:
        np.broadcast_to(table, weights.shape)
        return np.broadcast_to(table, np.broadcast_shapes(table.shape, weights.shape[-2:]))
    except ValueError:
        raise ValueError(
            f"{name}: expected a shape that fits the weights' {weights.shape}, got {table.shape}"
        ) from None


def _check_rows(rows: ArrayLike | None, weights: FloatArray) -> NDArray[np.int64]:
    n_queries, n_keys = weights.shape[-2:]
    if rows is None:
        if n_queries != n_keys:
            raise ValueError(f"{n_queries} queries and {n_keys} keys: say with rows= which position each query has")
        return np.arange(n_queries)
    rows = np.asarray(rows)
    if rows.shape != (n_queries,) or rows.dtype.kind not in "iu":
        raise ValueError(f"rows: expected {n_queries} whole numbers, got {rows.dtype} of shape {rows.shape}")
    if rows.size and not (rows.min() >= -1 and rows.max() < n_keys):
        raise ValueError(f"rows: expected positions from 0 to {n_keys - 1}, or -1, got {rows.min()} to {rows.max()}")
    return rows.astype(np.int64)


def _check_ids(token_ids: ArrayLike, weights: FloatArray) -> NDArray[np.int64]:
    ids = np.asarray(token_ids)
    if ids.shape != weights.shape[-1:] or ids.dtype.kind not in "iu":
        raise ValueError(f"token_ids: expected {weights.shape[-1]} whole numbers, got {ids.dtype} of shape {ids.shape}")
    return ids.astype(np.int64)
