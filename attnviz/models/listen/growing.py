"""q, k and v of a text that grows: new rows are put below the old ones, and no row is written twice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnviz.core.attention.masks import Mask
from attnviz.core.trace.records import LayerRecord


class Growing:
    """An array that grows along its second axis.

    A buffer of twice the size replaces a full one, so that a row is copied a few times in all, however many come. What
    `first` gave stays true: the rows it shows are never written again.
    """

    def __init__(self) -> None:
        self._buffer = np.empty((0, 0))
        self._used = 0

    def append(self, rows: np.ndarray) -> None:
        """Put (n, new, ...) below what is there."""
        end = self._used + rows.shape[1]
        if end > self._buffer.shape[1]:
            larger = np.empty((rows.shape[0], 2 * end, *rows.shape[2:]), rows.dtype)
            if self._used:
                larger[:, : self._used] = self._buffer[:, : self._used]
            self._buffer = larger
        self._buffer[:, self._used : end] = rows
        self._used = end

    def first(self, n_rows: int) -> np.ndarray:
        """Return the first rows, (n, n_rows, ...), read-only, without a copy."""
        found = self._buffer[:, :n_rows]
        found.flags.writeable = False
        return found


@dataclass(frozen=True, eq=False)
class _Layer:
    """What grows, and what all rows share."""

    rest: Mapping[str, Any]  # scale, soft-cap, sinks
    q: Growing = field(default_factory=Growing)
    k: Growing = field(default_factory=Growing)
    v: Growing = field(default_factory=Growing)
    bounds: Growing = field(default_factory=Growing)  # (2, queries): the first and the last key that each may see


class GrowingRecords:
    """The `LayerRecord` of every layer of a text that grows."""

    def __init__(self) -> None:
        self._layers: dict[int, _Layer] = {}

    def append(self, layer: int, record: LayerRecord, n_new: int) -> None:
        """Put the last `n_new` rows of q, k, v and the mask below those of the same layer.

        Raises:
            ValueError: the layer has a position bias, or a rule that isn't one run of keys a query.
        """
        if record.bias is not None or record.mask.table is not None:
            raise ValueError("its attention can't be put together row by row")
        if layer not in self._layers:
            self._layers[layer] = _Layer({"scale": record.scale, "softcap": record.softcap, "sinks": record.sinks})
        kept = self._layers[layer]
        kept.q.append(record.q[:, -n_new:])
        kept.k.append(record.k[:, -n_new:])
        kept.v.append(record.v[:, -n_new:])
        kept.bounds.append(np.stack([record.mask.first[-n_new:], record.mask.last[-n_new:]]))

    def first(self, n_tokens: int) -> dict[int, LayerRecord]:
        """Return layer -> what the attention of the first tokens was computed from, without a copy."""
        return {layer: _record(self._layers[layer], n_tokens) for layer in sorted(self._layers)}


def _record(kept: _Layer, n_tokens: int) -> LayerRecord:
    q, k, v = (grown.first(n_tokens) for grown in (kept.q, kept.k, kept.v))
    first, last = kept.bounds.first(n_tokens)
    return LayerRecord(q, k, v, mask=Mask(first, last, n_tokens), **kept.rest)
