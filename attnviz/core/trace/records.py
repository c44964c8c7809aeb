"""What a pass leaves: its tokens, the model, and for each layer what attention was computed from. NumPy only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.core.attention.masks import Mask

Float: TypeAlias = NDArray[np.float32]


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
