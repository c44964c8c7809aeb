"""What one forward pass left behind, and every number that follows from it. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnviz.core.trace.blocks import table_of_heads
from attnviz.core.trace.captured import captured
from attnviz.core.trace.head import Head
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.notebook_html import trace_html
from attnviz.core.trace.records import Float, Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.thumbnails import layer_tiles, thumbnail_grid

THUMBNAIL = 10  # tiles along a side in a notebook: few, so that its file stays small
MOST_ROWS = 512  # of a text that go into them


@dataclass(frozen=True, eq=False)
class Trace(Maps):
    """One text as one model saw it: ask it for scores and weights of any head.

    `part=` names a part of models that have several (encoder, decoder, cross) and may be left out for others.
    `queries=` and `keys=` are slices that cut a tile; the softmax always runs over all keys. `switches=None` gives
    the weights of the pass as it ran; an explicit value replaces the pass's switches on the same q and k.
    `text` is what the user typed, `target` what the decoder of an encoder-decoder model was given beside it; `n_cut`
    tokens of them were more than the model takes and left out.
    """

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
        found = captured(tokens, q, k, v, weights=weights, scale=scale, causal=causal, name=name)
        part = found.model.parts[0]
        text = "".join(token.text for token in found.tokens)
        return cls(text, found.model, {part: found.records}, {part: (found.tokens, found.tokens)})

    def __repr__(self) -> str:
        """Name the model, the number of tokens and the layers; the arrays would fill screens."""
        parts = ", ".join(f"{len(self.layers_of(part))} layers ({part})" for part in self.parts)
        return f"<Trace of {len(self.tokens)} tokens by {self.model.title}: {parts}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: facts, tokens, and all heads in small."""
        part = self.parts[0]
        return trace_html(self.model, self.tokens, self.n_cut, self.layers_of(part), self._thumbnails(part))

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

    def head(self, layer: int, head: int, *, part: str | None = None, switches: Switches | None = None) -> Head:
        """Return the one view of a head: scores, weights, who may look at whom, single rows, cells and tiles.

        Raises:
            ValueError: no such part, layer or head.
        """
        self._check_head(self._record(layer, part), layer, head)
        return Head(self, layer, head, self._part(part), switches)

    def _thumbnails(self, part: str) -> Float:
        """Return (layers, heads, rows, columns) the largest weight of each tile; NaN where masked or without a head."""
        queries, keys = self.tokens_of(part)
        grid = thumbnail_grid(len(queries), len(keys), THUMBNAIL, MOST_ROWS)
        tiles = table_of_heads(self, part, *grid.shape, dtype=np.float32)
        for i, layer in enumerate(self.layers_of(part)):
            found = [pooled for _, pooled, _ in layer_tiles(self, layer, grid, part=part)]
            tiles[i, : len(found[0])] = np.concatenate(found, axis=1)
        return tiles
