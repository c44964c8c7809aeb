"""Heads found by their maps: those like another head, and those that look where somebody drew. NumPy only."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.core.threads import one_thread
from attnviz.core.trace.blocks import layer_blocks, table_of_heads
from attnviz.core.trace.head import Head
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import Token
from attnviz.core.trace.row_picks import as_slice, row_blocks, spaced_rows
from attnviz.core.trace.trace import Trace

Cell = tuple[int, int]  # (query, key)

RESTS = 0.05  # a head that leaves less of its weight to the keys that are compared rests: its pattern there is noise


@dataclass(frozen=True, eq=False)
class Alike:
    """How like one head all heads of a text are.

    Attributes:
        similarity: (n_layers, n_heads) from 0 to 1; NaN for heads that rest, that share no row with a choice, or that a
            layer lacks.
        free: (n_layers, n_heads) the mean weight that a head leaves to the keys that are compared; NaN for heads that
            a layer lacks, or without a row.
        n_rows: rows of the text that can be compared.
    """

    similarity: NDArray[np.float64]
    free: NDArray[np.float64]
    n_rows: int

    @property
    def n_resting(self) -> int:
        """How many heads rest."""
        return int((self.free < RESTS).sum())


def heads_like(
    head: Head,
    *,
    max_rows: int = 512,
    on_layer: Callable[[int, int], None] | None = None,
) -> Alike:
    """Return how like the map of one head the maps of all heads are, on this text.

    The measure is the weight that two heads put on the same keys, as a share of what each of them puts on keys:
    2 sum min(a, b) / sum (a + b), summed over rows and keys. The first token and special ones are left out as keys,
    because most heads rest there and would all look alike. What a head leaves there takes part all the same, since
    rows aren't brought to 1 again: two heads that look at the same keys, but from different rows, aren't alike. Where
    no weight is left out, the measure is the mean over rows of 1 minus the total variation distance.

    Rows that count are those in which both heads may see two or more of the keys that are compared.

    Args:
        head: the one to compare with; switches on its picture count for no head.
        max_rows: above this many queries, evenly spaced rows are used, the last one among them.
        on_layer: called with (finished layers, all layers); what it raises ends the work.

    Returns:
        Alike, in the order of the layers of that part.

    Raises:
        ValueError: `max_rows` below 1.

    Source: the coefficient is Dice's, for amounts (Bray and Curtis 1957); resting on the first token is Xiao et al.
    2023, section 3.1, on `[SEP]` Clark et al. 2019, section 3.2.

    >>> maps = [[[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0],
    ... [0, 0, 1, 0]]]
    >>> heads_like(Trace.from_arrays(list("abcd"), weights=[maps]).head(0, 0)).similarity.tolist()
    [[1.0, 0.5]]
    """
    trace, part, own = head.trace, head.part, _own_rows(head, max_rows)
    layers = trace.layers_of(part)
    found = Alike(table_of_heads(trace, part), table_of_heads(trace, part), int(own.counts.sum()))
    for i, layer in enumerate(layers):
        similarity, free = _layer_like(trace, part, layer, own)
        found.similarity[i, : len(free)], found.free[i, : len(free)] = similarity, free
        if on_layer is not None:
            on_layer(i + 1, len(layers))
    place = layers.index(head.layer), head.head
    found.similarity[~(found.free >= RESTS)] = np.nan
    if np.isnan(found.similarity[place]):
        found.similarity[...] = np.nan
    return found


def resting_keys(keys: Sequence[Token]) -> NDArray[np.bool_]:
    """Return (keys,), True for the tokens where heads rest: the first one, and special ones such as `[SEP]`."""
    return np.array([token.index == 0 or token.special for token in keys], bool)


def drawn_scores(trace: Trace, cells: Iterable[Cell], *, part: str | None = None) -> NDArray[np.float64]:
    """Return how much each head looks where somebody drew: a row's weight on drawn cells, in the mean over rows.

    Rows without a drawn cell don't count, nor do rows with a single allowed key, where every head scores 1, nor cells
    that no head may look at (see `scored_cells`). A row's weights sum to 1, so a head can't score by looking
    everywhere; drawing a whole row makes every head score 1 there.

    Args:
        trace: a text as a model saw it.
        cells: (query, key) of each drawn cell; those outside the text are left out.
        part: which part of a model that has several.

    Returns:
        (n_layers, n_heads) from 0 to 1; NaN without a cell that counts, and for heads that a layer lacks.

    >>> trace = Trace.from_arrays(["a", "b", "c"], weights=[[[[1, 0, 0], [1, 0, 0], [0, 0.75, 0.25]]]])
    >>> drawn_scores(trace, [(0, 0), (1, 0), (2, 1)]).tolist()
    [[0.875]]
    """
    n_queries, n_keys = (len(tokens) for tokens in trace.tokens_of(part))
    layers = trace.layers_of(part)
    drawn = np.zeros((n_queries, n_keys), np.float32)
    for cell in scored_cells(trace, cells, part=part):
        drawn[cell] = 1
    rows = np.flatnonzero(drawn.any(axis=1))
    scores = table_of_heads(trace, part)
    if not rows.size:
        return scores
    for i, layer in enumerate(layers):
        n_heads = trace.heads(layer, part=part)
        total = np.zeros(n_heads)
        for block in row_blocks(range(int(rows[0]), int(rows[-1]) + 1), n_heads, n_keys):
            if drawn[as_slice(block)].any():
                weights = trace.layer_weights(layer, part=part, queries=as_slice(block))  # (heads, rows, keys)
                total += np.einsum("hqk,qk->h", weights, drawn[as_slice(block)])
        scores[i, :n_heads] = total / rows.size
    return scores


def possible_cells(trace: Trace, cells: Iterable[Cell], *, part: str | None = None) -> list[Cell]:
    """Return the cells, in order and each once, that are in the text and that the rule of some layer allows."""
    return _allowed_cells(trace, cells, part, n_least=1)


def scored_cells(trace: Trace, cells: Iterable[Cell], *, part: str | None = None) -> list[Cell]:
    """Return those of `possible_cells` whose row has a choice: the rule allows it two keys or more.

    >>> trace = Trace.from_arrays(["a", "b"], weights=[[[[1, 0], [0.5, 0.5]]]])
    >>> scored_cells(trace, [(0, 0), (0, 1), (1, 0)])
    [(1, 0)]
    """
    return _allowed_cells(trace, cells, part, n_least=2)


def _allowed_cells(trace: Trace, cells: Iterable[Cell], part: str | None, n_least: int) -> list[Cell]:
    """Return the cells that the rule of some layer allows, in rows to which it allows `n_least` keys or more."""
    n_queries, n_keys = (len(tokens) for tokens in trace.tokens_of(part))
    inside = sorted({(q, k) for q, k in cells if q < n_queries and k < n_keys})
    rows: dict[int, NDArray[np.bool_]] = {}
    for query in {query for query, _ in inside}:
        row = slice(query, query + 1)
        rules = [trace.layer_allowed(n, part=part, queries=row)[:, 0] for n in trace.layers_of(part)]
        allowed = np.concatenate(rules)  # (rules, keys)
        rows[query] = allowed[allowed.sum(axis=1) >= n_least].any(axis=0)
    return [(query, key) for query, key in inside if rows[query][key]]


@dataclass(frozen=True, eq=False)
class _Own:
    """The head to compare with.

    Attributes:
        rows: positions of the queries that are used.
        compared: (keys,) 1 for keys that are compared, 0 for others.
        weights: (rows, keys), 0 on keys that aren't compared; `free`: (rows,) their sums.
        counts: (rows,) True for queries that aren't special and have a choice.
    """

    rows: range
    compared: NDArray[np.float32]
    weights: NDArray[np.float32]
    free: NDArray[np.float32]
    counts: NDArray[np.bool_]


def _own_rows(head: Head, max_rows: int) -> _Own:
    queries, keys = head.trace.tokens_of(head.part)
    rows = spaced_rows(len(queries), max_rows)
    compared = (~resting_keys(keys)).astype(np.float32)
    used = head.under(None).tile(as_slice(rows))
    weights = used.weights * compared
    plain = np.array([not queries[row].special for row in rows], bool)
    with one_thread():
        free = np.asarray(weights @ compared, np.float32)
    return _Own(rows, compared, weights, free, plain & _has_choice(used.allowed, compared) & np.isfinite(free))


def _layer_like(trace: Maps, part: str, layer: int, own: _Own) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (heads,) similarities and (heads,) mean weight on the compared keys."""
    shared, sums, free, n = np.zeros((4, trace.heads(layer, part=part)))  # (heads,) each
    start = 0
    for block in layer_blocks(trace, layer, own.rows, part=part):
        here, start = slice(start, start + len(block.rows)), start + len(block.rows)
        with one_thread():
            mass = block.weights @ own.compared  # (heads, rows)
            both = np.minimum(block.weights, own.weights[here]) @ own.compared
        counts = own.counts[here] & _has_choice(block.allowed, own.compared)
        shared += np.where(counts, both, 0).sum(axis=1, dtype=float)
        sums += np.where(counts, mass + own.free[here], 0).sum(axis=1, dtype=float)
        free += np.where(counts, mass, 0).sum(axis=1, dtype=float)
        n += np.broadcast_to(counts, mass.shape).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.minimum(2 * shared / np.where(sums > 0, sums, np.nan), 1.0), free / np.where(n > 0, n, np.nan)


def _has_choice(allowed: NDArray[np.bool_], compared: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return (..., rows), True where a query may see two or more of the compared keys."""
    return np.asarray((allowed & (compared > 0)).sum(axis=-1) > 1)
