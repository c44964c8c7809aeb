"""One head of a trace, with the tile and the switches that it is seen under. NumPy only."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.arguments import tile, whole
from attnviz.core.trace.layer_scores import layer_weights
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import Float, LayerMaps, LayerRecord, Token
from attnviz.core.trace.switches import Switches


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a trace: its scores, its weights, and which query may see which key; each is worked out once.

    Attributes:
        trace: the pass; `layer`, `head`, `part`: which head of it.
        switches: on the picture alone, instead of those of the pass; None: those of the pass.
        queries, keys: the tile that `scores`, `weights` and `allowed` hold, None: all; the softmax is over all keys.
    """

    trace: Maps
    layer: int
    head: int
    part: str
    switches: Switches | None = None
    queries: slice | None = None
    keys: slice | None = None

    @property
    def name(self) -> str:
        """What the head is called, such as "L9 H4"."""
        return f"L{self.layer} H{self.head}"

    @property
    def tokens(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """(query tokens, key tokens) of the tile."""
        queries, keys = self.trace.tokens_of(self.part)
        return queries[tile("queries", self.queries)], keys[tile("keys", self.keys)]

    @cached_property
    def scores(self) -> Float:
        """(queries, keys) what enters the softmax, -inf where the rule forbids; ValueError for finished maps."""
        return self.trace.scores(self.layer, self.head, **self._where)

    @cached_property
    def weights(self) -> Float:
        """(queries, keys) attention weights."""
        acting, one = self.trace.acting(self.record, self.switches, self.part), slice(self.head, self.head + 1)
        rows = layer_weights(self.record, acting, self.layer, one, tile("queries", self.queries))
        return rows[0][:, tile("keys", self.keys)]

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """(queries, keys) True where that query may see that key."""
        return self.trace.allowed(self.layer, self.head, **self._where)

    @property
    def acting(self) -> Switches:
        """The switches that the picture is made under: its own, or those of the pass."""
        return self.trace.switches if self.switches is None else self.switches

    @property
    def record(self) -> LayerRecord | LayerMaps:
        """What the pass left of its layer."""
        return self.trace.records[self.part][self.layer]

    @property
    def finished(self) -> bool:
        """True if only its finished weights are known, neither scores nor q, k and v."""
        return isinstance(self.record, LayerMaps)

    @property
    def causal(self) -> bool:
        """True if the model's own rule hides later keys."""
        return not self.record.mask.looks_ahead

    @property
    def qkv(self) -> tuple[Float, Float, Float]:
        """Q (queries, d_head), k (keys, d_head), v (keys, d_head) of the whole text; ValueError for finished maps."""
        return self.trace.qkv(self.layer, self.head, part=self.part)

    @property
    def scale(self) -> float:
        """The model's own factor in front of q k^T; ValueError for finished maps."""
        return self.trace.scale(self.layer, part=self.part)

    def row(self, query: int) -> Float:
        """Return (keys of the tile,) the weights of one query, counted in the whole text.

        Raises:
            ValueError: there is no such query.
        """
        return self.tile(self._only("query", query, 0), self.keys).weights[0]

    def cell(self, query: int, key: int) -> float:
        """Return the weight that one query gives to one key, both counted in the whole text.

        Raises:
            ValueError: there is no such query or key.
        """
        return float(self.tile(self._only("query", query, 0), self._only("key", key, 1)).weights[0, 0])

    def tile(self, queries: slice | None = None, keys: slice | None = None) -> "Head":
        """Return the same head with another tile, counted in the whole text."""
        return replace(self, queries=queries, keys=keys)

    def under(self, switches: Switches | None) -> "Head":
        """Return the same head, on the same q and k, under other switches."""
        return replace(self, switches=switches)

    def _only(self, name: str, place: int, side: int) -> slice:
        """Return the slice that cuts one query (side 0) or one key (side 1)."""
        n = len(self.trace.tokens_of(self.part)[side])
        if not 0 <= whole(name, place) < n:
            raise ValueError(f"{name} must be from 0 to {n - 1}, got {place!r}")
        return slice(place, place + 1)

    @property
    def _where(self) -> dict[str, Any]:
        return {"part": self.part, "queries": self.queries, "keys": self.keys, "switches": self.switches}
