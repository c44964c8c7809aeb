"""Scores and weights of every head of one pass, worked out from what it left behind. NumPy only.

A layer leaves q, k and v (`LayerRecord`), or, where a model's code can't be listened to, its finished maps
(`LayerMaps`). `Maps` turns them into the scores and weights of one head, or one tile of one head, when asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.arguments import instance, one_of, tile, whole
from attnviz.core.attention.textbook import softmax
from attnviz.core.trace.layer_scores import layer_scores, layer_weights
from attnviz.core.trace.records import Float, LayerMaps, LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches, allowed_cells, allowed_table


@dataclass(frozen=True, eq=False)
class Maps:
    """What one pass left behind; see `Trace`, which adds how it is made and shown, and its view of one head."""

    text: str
    model: ModelInfo
    records: Mapping[str, Mapping[int, LayerRecord | LayerMaps]]
    part_tokens: Mapping[str, tuple[tuple[Token, ...], tuple[Token, ...]]]
    switches: Switches = Switches()
    next_logits: Float | None = None
    label_of: Callable[[int], str] = str
    n_cut: int = 0
    seconds: float = 0.0
    target: str | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the text (of the first part, in models with several)."""
        return self.part_tokens[self.parts[0]][1]

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts, one for ordinary models."""
        return tuple(self.records)

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers that have softmax attention, in any part."""
        return tuple(sorted({layer for part in self.records.values() for layer in part}))

    def layers_of(self, part: str | None = None) -> tuple[int, ...]:
        """Return the numbers of the layers of one part."""
        return tuple(self.records[self._part(part)])

    def heads(self, layer: int, *, part: str | None = None) -> int:
        """Return the number of query heads of a layer."""
        return self._record(layer, part).shape[0]

    def tokens_of(self, part: str | None = None) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Return (query tokens, key tokens) of a part."""
        return self.part_tokens[self._part(part)]

    def causal(self, layer: int, *, part: str | None = None) -> bool:
        """Return True if the model's own rule hides later keys in that layer."""
        return not self._record(layer, part).mask.looks_ahead

    def scale(self, layer: int, *, part: str | None = None) -> float:
        """Return the model's own factor in front of q k^T in a layer, usually 1 / sqrt(d_head)."""
        return float(self._qkv_record(layer, part).scale)

    def qkv(self, layer: int, head: int, *, part: str | None = None) -> tuple[Float, Float, Float]:
        """Return q (queries, d_head), k (keys, d_head), v (keys, d_head) of a query head, as they enter the product.

        `q @ k.T * scale(layer)` are the scores before soft-cap, bias and mask. The arrays are read-only.
        """
        record = self._qkv_record(layer, part)
        self._check_head(record, layer, head)
        kv = head // (record.shape[0] // record.k.shape[0])
        return record.q[head], record.k[kv], record.v[kv]

    def allowed(
        self,
        layer: int,
        head: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        keys: slice | None = None,
        switches: Switches | None = None,
    ) -> NDArray[np.bool_]:
        """Return (queries, keys), True where the rule of that head lets that query see that key."""
        record = self._record(layer, part)
        self._check_head(record, layer, head)
        rows = np.arange(record.shape[1])[tile("queries", queries)]
        columns = np.arange(record.shape[2])[tile("keys", keys)]
        return allowed_cells(record.mask, self.acting(record, switches, part), layer, head, rows, columns)

    def scores(
        self,
        layer: int,
        head: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        keys: slice | None = None,
        switches: Switches | None = None,
    ) -> Float:
        """Return (queries, keys) what enters the softmax, -inf where the rule forbids.

        Raises:
            ValueError: no such layer or head, a switch that can't act, or a model that gives finished maps only.
        """
        record = self._qkv_record(layer, part)
        self._check_head(record, layer, head)
        acting = self.acting(record, switches, part)
        scores = layer_scores(record, acting, layer, slice(head, head + 1), tile("queries", queries))
        return scores[0][:, tile("keys", keys)]

    def weights(
        self,
        layer: int,
        head: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        keys: slice | None = None,
        switches: Switches | None = None,
    ) -> Float:
        """Return (queries, keys) attention weights; each row over all keys sums to 1, less with learned sinks.

        Raises:
            ValueError: no such layer or head, or a switch that can't act.
        """
        record = self._record(layer, part)
        self._check_head(record, layer, head)
        acting, columns = self.acting(record, switches, part), tile("keys", keys)
        return layer_weights(record, acting, layer, slice(head, head + 1), tile("queries", queries))[0][:, columns]

    def layer_weights(
        self,
        layer: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        switches: Switches | None = None,
    ) -> Float:
        """Return (heads, queries, keys): the weights of all heads of a layer at once."""
        record = self._record(layer, part)
        return layer_weights(record, self.acting(record, switches, part), layer, slice(None), tile("queries", queries))

    def layer_allowed(
        self,
        layer: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        switches: Switches | None = None,
    ) -> NDArray[np.bool_]:
        """Return the cells that a layer's rule allows, (1, queries, keys), or (heads, ...) where heads differ."""
        record = self._record(layer, part)
        rows, columns = np.arange(record.shape[1])[tile("queries", queries)], np.arange(record.shape[2])
        acting = self.acting(record, switches, part)
        return allowed_table(record.mask, acting, layer, range(record.shape[0]), rows, columns)

    def next_probabilities(self) -> NDArray[np.float64]:
        """Return (vocabulary,) the probability of each token as the next one.

        Raises:
            ValueError: the model doesn't predict a next token.
        """
        if self.next_logits is None:
            raise ValueError(f"{self.model.title} has no next-token output: it is not a language model head")
        return np.asarray(softmax(self.next_logits.astype(np.float64)), np.float64)

    def next_tokens(self, n: int = 5) -> list[tuple[str, float]]:
        """Return the n likeliest next tokens after the last one, as (label, probability), likeliest first.

        Raises:
            ValueError: n below 1, or the model doesn't predict a next token.
        """
        n = whole("n", n, least=1)
        probabilities = self.next_probabilities()
        best = np.argsort(-probabilities, kind="stable")[:n]
        return [(self.label_of(int(i)), float(probabilities[i])) for i in best]

    def _part(self, part: str | None) -> str:
        if part is None and len(self.parts) == 1:
            return self.parts[0]
        return one_of("part", part, self.parts)

    def _record(self, layer: int, part: str | None) -> LayerRecord | LayerMaps:
        layers = self.records[self._part(part)]
        if whole("layer", layer) not in layers:
            raise ValueError(f"layer {layer} has no attention map; layers with one: {_spans(layers)}")
        return layers[layer]

    def _qkv_record(self, layer: int, part: str | None) -> LayerRecord:
        record = self._record(layer, part)
        if isinstance(record, LayerMaps):
            raise ValueError(self.model.cannot.get("scores", "only the finished weights of this model are known"))
        return record

    def _check_head(self, record: LayerRecord | LayerMaps, layer: int, head: int) -> None:
        if not 0 <= whole("head", head) < record.shape[0]:
            raise ValueError(f"layer {layer} has heads 0 to {record.shape[0] - 1}, got {head!r}")

    def acting(self, record: LayerRecord | LayerMaps, switches: Switches | None, part: str | None = None) -> Switches:
        """Return what acts on the picture of this record, its own or the pass's switches, after checking that it can.

        Raises:
            ValueError: a switch that can't act, or looks that aren't there.
        """
        if switches is None:
            switches = replace(self.switches, ablate=frozenset()) if self.switches.ablate else self.switches
        elif instance("switches", switches, Switches, "attnviz.Switches(...) or None").ablate:
            raise ValueError("a head's own map doesn't change when the head is off; ablate acts in engine.trace only")
        if isinstance(record, LayerMaps):
            if not switches.at_rest:
                raise ValueError(self.model.cannot.get("scores", "this model gives finished maps only"))
            return switches
        if self._part(part) == "cross" and (switches.causal is not None):
            switches = replace(switches, causal=None)
        if switches.forbid:
            switches.check_forbid(self.layers_of(part), *record.shape)
        return switches


def _spans(numbers: Any) -> str:
    numbers = sorted(numbers)
    whole = numbers == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))
