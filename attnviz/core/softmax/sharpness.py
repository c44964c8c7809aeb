"""How near attention rows are to all-or-nothing, and what that does to softmax's gradient. NumPy only.

Only allowed cells count: the zeros of a mask are no unsaturated weights. A row with one allowed key, such as the first
of a causal map, always has the weight 1 and is never called saturated. A row whose large weight sits on the first token
or on a special one such as `[SEP]` is at rest, not dying, so those rows are counted apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnviz.core.heads.finder import resting_keys
from attnviz.core.softmax.row_sharpness import (
    BINS,
    SATURATED,
    Histogram,
    SaturatedShare,
    jacobian_norm,
    saturated_share,
)
from attnviz.core.trace.records import LayerMaps
from attnviz.core.trace.row_picks import as_slice, row_blocks, spaced_rows
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

Scope = Literal["head", "layer", "all"]
Head = tuple[int, int]

MAX_ROWS = 256
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, eq=False)
class Saturation:
    """The rows of some heads, under one setting of the switches.

    Attributes:
        weights: Histogram of the weights of all allowed cells, over 0 to 1; its `n_not_finite` counts cells.
        n_single: cells that are the only choice of their row, so 1 without learned sinks; `weights` counts them, too.
        maxima: (rows,) the largest weight of each row with a choice.
        at_rest: (rows,) True where that is on the first token or a special one.
        norms: (rows,) the Frobenius norm of softmax's Jacobian, from 0 to LARGEST_NORM.
        n_broken: rows left out everywhere because they, or the q and k they come from, hold NaN or infinity.
        n_rows, n_rows_used: queries of the text, and how many of them, evenly spaced, were used.
    """

    weights: Histogram
    n_single: int
    maxima: NDArray[np.float64]
    at_rest: NDArray[np.bool_]
    norms: NDArray[np.float64]
    n_broken: int
    n_rows: int
    n_rows_used: int

    def saturated(self, limit: float = SATURATED) -> SaturatedShare:
        """Return the share of rows whose largest weight is above the limit, split by where it is."""
        return saturated_share(self.maxima, self.at_rest, limit=limit)

    def norm_quantiles(self, levels: Sequence[float] = QUANTILES) -> NDArray[np.float64]:
        """Return quantiles of the Jacobian's norm, NaN without rows."""
        return np.quantile(self.norms, levels) if len(self.norms) else np.full(len(levels), np.nan)


@dataclass(frozen=True, eq=False)
class SaturationReport:
    """The same heads on the same q and k, before and after a switch.

    Attributes:
        heads: (layer, head) of each head in scope.
        before, after: what is measured, and `switches_before`, `switches_after` under what (None: those of the pass).
    """

    heads: tuple[Head, ...]
    before: Saturation
    after: Saturation
    switches_before: Switches | None
    switches_after: Switches | None


def saturation_report(
    trace: Trace,
    scope: Scope = "all",
    layer: int | None = None,
    head: int | None = None,
    *,
    part: str | None = None,
    before: Switches | None = None,
    after: Switches | None = None,
) -> SaturationReport:
    """Measure saturation with and without the model's own factor in front of q k^T, on the same q and k.

    Args:
        trace: a text as a model saw it.
        scope: one head, one layer, or all heads; `layer` and `head` say which.
        layer: its number, unless the scope is "all".
        head: its number, if the scope is "head".
        part: which part of a model that has several.
        before: None for the switches of the pass.
        after: None for the same without the factor.

    Returns:
        A SaturationReport.

    Raises:
        ValueError: no such layer, head or scope, or a switch that can't act on this model.
    """
    heads = heads_in_scope(trace, scope, layer, head, part=part)
    if after is None:
        own = trace.switches if before is None else before
        after = Switches(own.causal, False, own.temperature, forbid=own.forbid)
    measured = [measure_saturation(trace, heads, switches=switches, part=part) for switches in (before, after)]
    return SaturationReport(heads, measured[0], measured[1], before, after)


def heads_in_scope(
    trace: Trace, scope: Scope, layer: int | None = None, head: int | None = None, *, part: str | None = None
) -> tuple[Head, ...]:
    """Return (layer, head) of one head, of all heads of a layer, or of all heads.

    Raises:
        ValueError: an unknown scope, or no such layer or head.
    """
    if scope == "all":
        return tuple((n, h) for n in trace.layers_of(part) for h in range(trace.heads(n, part=part)))
    if scope not in ("head", "layer"):
        raise ValueError(f"scope must be head, layer or all, got {scope!r}")
    if layer is None or (head is None and scope == "head"):
        raise ValueError(f"the scope {scope!r} needs a layer{' and a head' if scope == 'head' else ''}")
    n_heads = trace.heads(layer, part=part)
    if scope == "layer":
        return tuple((layer, h) for h in range(n_heads))
    if head is None or not 0 <= head < n_heads:
        raise ValueError(f"layer {layer} has heads 0 to {n_heads - 1}, got {head!r}")
    return ((layer, head),)


def measure_saturation(
    trace: Trace,
    heads: Sequence[Head],
    *,
    switches: Switches | None = None,
    part: str | None = None,
    bins: int = BINS,
    max_rows: int = MAX_ROWS,
) -> Saturation:
    """Measure weights, row maxima and the Jacobian's norm of some heads in one pass, in blocks of rows.

    Args:
        trace: a text as a model saw it.
        heads: (layer, head) of each head.
        switches: instead of those of the pass, on the same q and k.
        part: which part of a model that has several.
        bins: of the histogram of weights.
        max_rows: above this many queries, evenly spaced rows are used.

    Returns:
        A Saturation.

    Raises:
        ValueError: no heads, no such layer or head, bins or max_rows below 1, or a switch that can't act.
    """
    if bins < 1 or not heads:
        raise ValueError(f"expected at least 1 bin and 1 head, got {bins} and {len(heads)}")
    queries, keys = trace.tokens_of(part)
    rows, resting = spaced_rows(len(queries), max_rows), resting_keys(keys)
    blocks = _blocks(trace, heads, rows, len(keys), part, switches)
    found = _Counted(*zip(*(_count(weights, allowed, resting, bins) for weights, allowed in blocks), strict=True))
    cells = Histogram(np.linspace(0, 1, bins + 1), np.sum(found.counts, axis=0), sum(found.n_broken_cells))
    maxima, at_rest, norms = (np.concatenate(parts) for parts in (found.maxima, found.at_rest, found.norms))
    return Saturation(cells, sum(found.n_single), maxima, at_rest, norms, sum(found.n_broken), len(queries), len(rows))


class _Counted(NamedTuple):
    """What `Saturation` is made of, for one block, or block after block."""

    counts: Any
    n_single: Any
    n_broken: Any
    n_broken_cells: Any
    maxima: Any
    at_rest: Any
    norms: Any


def _count(weights: NDArray[np.float32], allowed: NDArray[np.bool_], resting: NDArray[np.bool_], bins: int) -> _Counted:
    """Count one block: weights (heads, queries, keys), allowed (1 or heads, queries, keys), resting (keys,)."""
    broken = ~np.isfinite(weights.sum(axis=-1))  # (heads, queries)
    n_allowed = np.broadcast_to(allowed.sum(axis=-1), broken.shape)
    chosen = weights[~broken & (n_allowed > 1)]  # (rows, keys)
    return _Counted(
        counts=_count_allowed(weights[~broken], n_allowed[~broken], bins),
        n_single=int((~broken & (n_allowed == 1)).sum()),
        n_broken=int(broken.sum()),
        n_broken_cells=int(n_allowed[broken].sum()),
        maxima=chosen.max(axis=-1).astype(np.float64),
        at_rest=resting[chosen.argmax(axis=-1)],
        norms=jacobian_norm(chosen),
    )


def _blocks(
    trace: Trace, heads: Sequence[Head], rows: range, n_keys: int, part: str | None, switches: Switches | None
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
    """Yield weights (heads, queries, keys) and allowed cells (1 or heads, queries, keys), some rows at a time."""
    for layer, group in groupby(sorted(set(heads)), key=lambda place: place[0]):
        numbers = [head for _, head in group]
        n_heads = trace.heads(layer, part=part)
        unreadable = _unreadable(trace, layer, part) & set(numbers)
        whole_layer = not unreadable and numbers == list(range(n_heads))
        for block in row_blocks(rows, len(numbers), n_keys):
            queries = as_slice(block)
            allowed = trace.layer_allowed(layer, part=part, queries=queries, switches=switches)
            if whole_layer:
                yield trace.layer_weights(layer, part=part, queries=queries, switches=switches), allowed
                continue
            weights = [
                np.full((len(block), n_keys), np.nan, np.float32)
                if head in unreadable
                else trace.weights(layer, head, part=part, queries=queries, switches=switches)
                for head in numbers
            ]
            yield np.stack(weights), allowed if len(allowed) == 1 else allowed[numbers]


def _unreadable(trace: Trace, layer: int, part: str | None) -> set[int]:
    """Return the heads whose q or k hold NaN or infinity, as overflow in half precision leaves them."""
    record = trace.records[part or trace.parts[0]][layer]
    if isinstance(record, LayerMaps):
        return set()
    group = len(record.q) // len(record.k)  # query heads that share a key head
    sound_k = np.repeat(np.isfinite(record.k).all(axis=(1, 2)), group)  # (heads,)
    return set(np.flatnonzero(~(np.isfinite(record.q).all(axis=(1, 2)) & sound_k)).tolist())


def _count_allowed(rows: NDArray[np.float32], n_allowed: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Return the counts (bins,) of the allowed cells of rows (n, keys); forbidden cells are 0 and taken off again."""
    places = np.minimum((rows.astype(np.float64) * bins).astype(np.int64), bins - 1)
    counts = np.bincount(places.ravel(), minlength=bins)
    counts[0] -= rows.size - int(n_allowed.sum())
    return counts
