"""What one forward pass left behind, and every number that follows from it. NumPy only.

A layer leaves q, k and v (`LayerRecord`), or, where a model's code can't be listened to, its finished maps
(`LayerMaps`). `Trace` turns them into the scores and weights of one head, or one tile of one head, when asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.arguments import instance, one_of, tile, whole
from attnviz.core.attention.masks import Mask
from attnviz.core.attention.textbook import softmax
from attnviz.core.threads import one_thread
from attnviz.core.trace.switches import Switches, allowed_cells

__all__ = ["LayerMaps", "LayerRecord", "ModelInfo", "Switches", "Token", "Trace"]

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Token:
    """One token of a text.

    Attributes:
        index: position in the sequence, from 0.
        id: number in the model's vocabulary.
        label: short form that a person can read (`·what` with its leading space, `##ing`, `東 1/3`).
        text: the part of the user's text that it covers; empty for tokens the tokenizer added.
        start, end: offsets of that part, in characters, end exclusive.
        special: True for tokens with a meaning of their own such as `[CLS]`.
    """

    index: int
    id: int
    label: str
    text: str
    start: int
    end: int
    special: bool


@dataclass(frozen=True)
class ModelInfo:
    """What can be said about a loaded model.

    Attributes:
        name: what it was loaded by; `title`: what to call it on a page; `revision`: of the weights.
        dtype: precision it runs in; `engine`: "torch" or "numpy"; `architecture`: class name in transformers.
        causal: the model's own rule hides later tokens; None for models of several parts.
        n_layers: all layers, `layers` those with softmax attention; `n_heads` query, `n_kv_heads` key/value heads.
        limit: most tokens it can take; `n_parameters`: number of weights.
        cannot: switch name -> one sentence why it can't act on this model.
        notes: sentences a page should show beside the name.
        sizes: part -> (layers, heads), for models of several parts, which may differ in both.
    """

    name: str
    title: str
    revision: str
    dtype: str
    engine: str
    architecture: str
    tokenizer: str
    causal: bool | None
    parts: tuple[str, ...]
    n_layers: int
    layers: tuple[int, ...]
    n_heads: int
    n_kv_heads: int
    limit: int
    n_parameters: int
    predicts: bool
    cannot: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """What one layer's attention was computed from.

    Attributes:
        q: (heads, queries, d_head) after rotary embedding, without the model's factor.
        k, v: (kv_heads, keys, d_head); head h uses key/value head h // (heads // kv_heads).
        scale: the model's own factor in front of q k^T.
        mask: the model's own rule.
        softcap: scores become softcap * tanh(scores / softcap), or None.
        sinks: (heads,) one learned logit a head that takes weight and has no column, or None.
        bias: (heads or 1, queries, keys) added to the scores, or None.
    """

    q: Float
    k: Float
    v: Float
    scale: float
    mask: Mask
    softcap: float | None = None
    sinks: Float | None = None
    bias: Float | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.q.shape[0], self.q.shape[1], self.k.shape[1]


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """Finished weights of one layer, (heads, queries, keys), where q and k could not be had."""

    weights: Float
    mask: Mask

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        heads, queries, keys = self.weights.shape
        return heads, queries, keys


@dataclass(frozen=True, eq=False)
class Trace:
    """One text as one model saw it: ask it for scores and weights of any head.

    `part=` names a part of models that have several (encoder, decoder, cross) and may be left out for others.
    `queries=` and `keys=` are slices that cut a tile; the softmax always runs over all keys. `switches=None` gives
    the weights of the pass as it ran; an explicit value replaces the pass's switches on the same q and k.
    `text` is what the user typed, `target` what the decoder of an encoder-decoder model was given beside it; `n_cut`
    tokens of them were more than the model takes and left out.
    """

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

    @classmethod
    def from_arrays(
        cls,
        tokens: Sequence[str | Token],
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        weights: Any = None,
        scale: float | None = None,
        causal: bool | None = None,
        name: str = "captured",
    ) -> "Trace":
        """Return a trace of arrays that were captured elsewhere: q, k and v as they enter the product, or weights.

        Each of them is a stack, a list, or a mapping from layer number to one layer's array; a batch axis of 1 may
        stand in front. Everything that `core` and `figures` do with a trace then works.

        Args:
            tokens: a string for each token, or Tokens.
            q: (layers, heads, tokens, d_head), after rotary embedding, without the factor.
            k: (layers, kv_heads, tokens, d_head); head h uses key/value head h // (heads // kv_heads). `v`: likewise.
            v: likewise.
            weights: (layers, heads, tokens, tokens) finished attention weights, instead of q, k and v.
            scale: the factor in front of q k^T; None: 1 / sqrt(d_head).
            causal: True if no token sees a later one. None: with q, k and v True; with weights, whether no head puts
                any weight on a later token.
            name: what to call the model.

        Raises:
            ValueError: neither or both ways given, shapes that don't fit, or weights that aren't weights.

        >>> trace = Trace.from_arrays(["a", "b"], weights=[[[[1.0, 0.0], [0.25, 0.75]]]])
        >>> trace.weights(0, 0).tolist(), trace.causal(0)
        ([[1.0, 0.0], [0.25, 0.75]], True)
        """
        from attnviz.core.trace.captured import trace_from_arrays

        return trace_from_arrays(tokens, q, k, v, weights=weights, scale=scale, causal=causal, name=name)

    def __repr__(self) -> str:
        """Name the model, the number of tokens and the layers; the arrays would fill screens."""
        parts = ", ".join(f"{len(self.layers_of(part))} layers ({part})" for part in self.parts)
        return f"<Trace of {len(self.tokens)} tokens by {self.model.title}: {parts}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: facts, tokens, and all heads in small."""
        from attnviz.core.trace.notebook_html import trace_html

        return trace_html(self)

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

    @property
    def nbytes(self) -> int:
        """Bytes held by arrays; what layers share counts once."""
        arrays = {
            id(array): array.nbytes
            for part in self.records.values()
            for record in part.values()
            for array in vars(record).values()
            if isinstance(array, np.ndarray)
        }
        return sum(arrays.values()) + (0 if self.next_logits is None else self.next_logits.nbytes)

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
        return allowed_cells(record.mask, self._switches(record, switches, part), layer, head, rows, columns)

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
        self._check_head(self._record(layer, part), layer, head)
        columns = tile("keys", keys)
        return self._scores(layer, slice(head, head + 1), part, queries, switches)[0][:, columns]

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
        self._check_head(self._record(layer, part), layer, head)
        columns = tile("keys", keys)
        return self._weights(layer, slice(head, head + 1), part, queries, switches)[0][:, columns]

    def layer_weights(
        self,
        layer: int,
        *,
        part: str | None = None,
        queries: slice | None = None,
        switches: Switches | None = None,
    ) -> Float:
        """Return (heads, queries, keys): the weights of all heads of a layer at once."""
        return self._weights(layer, slice(0, self.heads(layer, part=part)), part, queries, switches)

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

    def _weights(
        self, layer: int, heads: slice, part: str | None, queries: slice | None, switches: Switches | None
    ) -> Float:
        record = self._record(layer, part)
        if isinstance(record, LayerMaps):
            self._switches(record, switches, part)
            return record.weights[heads, tile("queries", queries)]
        sinks = None
        if record.sinks is not None:
            temperature = self._switches(record, switches, part).temperature
            sinks = (record.sinks[heads] / temperature)[:, None]  # (heads, 1): one for every query of a head
        return softmax(self._scores(layer, heads, part, queries, switches), sinks=sinks)

    def _scores(
        self, layer: int, heads: slice, part: str | None, queries: slice | None, switches: Switches | None
    ) -> Float:
        record = self._qkv_record(layer, part)
        switches = self._switches(record, switches, part)
        numbers = np.arange(record.shape[0])[heads]
        tiled = tile("queries", queries)
        rows, columns = np.arange(record.shape[1])[tiled], np.arange(record.shape[2])
        factor = np.float32(record.scale if switches.scaled else 1.0)
        scores = np.empty((len(numbers), len(rows), len(columns)), np.float32)  # (heads, queries, keys), as all below
        with one_thread():
            for i, head in enumerate(numbers):
                kv = head // (record.shape[0] // record.k.shape[0])
                np.matmul(record.q[head, tiled] * factor, record.k[kv].T, out=scores[i])
        if record.softcap is not None:
            scores = np.float32(record.softcap) * np.tanh(scores / np.float32(record.softcap))
        if record.bias is not None:
            own = record.bias if record.bias.shape[0] == 1 else record.bias[heads]
            scores += own[:, rows]
        if switches.temperature != 1.0:
            scores /= np.float32(switches.temperature)
        if not switches.forbid:
            np.copyto(scores, -np.inf, where=~allowed_cells(record.mask, switches, layer, 0, rows, columns))
            return scores
        for i, head in enumerate(numbers):
            scores[i][~allowed_cells(record.mask, switches, layer, head, rows, columns)] = -np.inf
        return scores

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

    def _switches(self, record: LayerRecord | LayerMaps, switches: Switches | None, part: str | None) -> Switches:
        """Return what acts on the picture of this record, after checking that it can."""
        if switches is None:
            switches = Switches(
                self.switches.causal, self.switches.scaled, self.switches.temperature, forbid=self.switches.forbid
            )
        elif instance("switches", switches, Switches, "attnviz.Switches(...) or None").ablate:
            raise ValueError("a head's own map doesn't change when the head is off; ablate acts in engine.trace only")
        if isinstance(record, LayerMaps):
            if not switches.at_rest:
                raise ValueError(self.model.cannot.get("scores", "this model gives finished maps only"))
            return switches
        if self._part(part) == "cross" and (switches.causal is not None):
            switches = Switches(None, switches.scaled, switches.temperature, forbid=switches.forbid)
        if switches.forbid:
            switches.check_forbid(self.layers_of(part), *record.shape)
        return switches


def _spans(numbers: Any) -> str:
    numbers = sorted(numbers)
    whole = numbers == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))
