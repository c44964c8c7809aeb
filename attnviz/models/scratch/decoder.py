"""Three whole language models in NumPy: from the numbers of the tokens to the logits of the next one.

`llama`, `bert` and `gpt2` below are the models, each a few lines of the functions that come after them. What training
found is in `Model`, the rest is here, in `activations` and `core.attention`. NumPy alone, float32.
Axes: tokens, d_model between the layers; heads, tokens, d_head inside attention.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.core.attention.masks import Mask, causal_rule, full_mask
from attnviz.core.attention.rotary import rotary, rotate
from attnviz.core.attention.textbook import merge_heads, repeat_kv, scaled_dot_product_attention
from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches, allowed_table
from attnviz.models.scratch.activations import ACTIVATIONS, Float, silu

Attend: TypeAlias = Callable[[Float, Float, Float, float], Float]
Keep: TypeAlias = Callable[[Float], object]
Some: TypeAlias = Any  # what only some layouts have, None in the others: each layout below knows which it has

QUERY_BLOCK = 64  # queries that attend at a time, so that no more than (heads, 64, keys) weights are held at once
CACHE_SIZED = 2**16  # numbers that are bent at a time, 256 KB


class Linear(NamedTuple):
    """Weights (n_in, n_out), and a bias (n_out,) or None."""

    weight: Float
    bias: Float | None = None


class Norm(NamedTuple):
    """Gain (d_model,), offset (d_model,) or None, and the small number that keeps the division finite."""

    gain: Float
    offset: Float | None
    epsilon: float


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one layer.

    Attributes:
        norm_1, norm_2: of attention and of the network behind it, before them or after them, as the model has it.
        qkv: (d_model, (heads + 2 kv_heads) * d_head), three projections side by side; `scale`: in front of q k^T.
        out: (heads * d_head, d_model).
        up: (d_model, d_ff), or gate and up side by side, (d_model, 2 * d_ff); `down`: (d_ff, d_model).
    """

    norm_1: Norm
    qkv: Linear
    scale: float
    out: Linear
    norm_2: Norm
    up: Linear
    down: Linear


@dataclass(frozen=True, eq=False)
class Model:
    """A model's weights.

    Attributes:
        layout: "llama", "bert" or "gpt2".
        words: (vocabulary, d_model), what each token starts as.
        norm: the last one, or BERT's first one.
        positions: (limit, d_model), added to the words, or None; `token_type`: (d_model,), added to each, or None.
        theta: base of the rotary angles, or None; `activation`: a name in `ACTIVATIONS`.
        head: (vocabulary, d_model), what each token as the next one is compared with, or None.
    """

    layout: str
    n_heads: int
    n_kv_heads: int
    words: Float
    layers: tuple[Layer, ...]
    norm: Norm
    positions: Some = None
    token_type: Some = None
    theta: Some = None
    activation: str = "silu"
    head: Some = None

    @property
    def d_head(self) -> int:
        """Numbers in one head's q, k or v."""
        return self.layers[0].out.weight.shape[0] // self.n_heads


def run(
    model: Model,
    ids: list[int],
    switches: Switches | None = None,
    on_layer: Callable[[int], None] | None = None,
) -> tuple[list[LayerRecord], Some]:
    """Run a model over a text once.

    Args:
        model: its weights.
        ids: (tokens,) numbers in its vocabulary.
        switches: what is changed about its attention.
        on_layer: called with the number of layers whose attention is done; what it raises ends the pass.

    Returns:
        What each layer's attention was computed from, and (vocabulary,) the logits of the token after the last one,
        None for a model without a head.
    """
    causal = model.layout != "bert"
    attention = Attention((causal_rule if causal else full_mask)(len(ids), len(ids)), switches or Switches(), on_layer)
    x = LAYOUTS[model.layout](model, ids, attention.attend, forget)  # (tokens, d_model)
    if model.head is None:
        return attention.records, None
    logits = model.head @ x[-1]  # (vocabulary, d_model) @ (d_model,) -> (vocabulary,)
    logits.flags.writeable = False
    return attention.records, logits


# The three models, which hand what enters each layer, and what leaves the last one, to `keep`; `past`: tokens before
# these, whose keys and values `attend` remembers


def llama(model: Model, ids: list[int], attend: Attend, keep: Keep, past: int = 0) -> Float:
    """Normalise before, turn q and k by their positions, share keys among heads: (tokens,) -> (tokens, d_model).

    Source: Touvron et al. 2023 (LLaMA), section 2.2.
    """
    x = model.words[ids]  # (tokens, d_model)
    cos, sin = rotary(past + len(ids), model.d_head, model.theta)  # (past + tokens, d_head / 2) each
    turns = cos[past:], sin[past:]
    for layer in model.layers:
        keep(x)
        x = x + self_attention(rms_norm(x, layer.norm_1), model, layer, attend, turns)
        x = x + swiglu(rms_norm(x, layer.norm_2), layer.up, layer.down)
    keep(x)
    return rms_norm(x, model.norm)


def bert(model: Model, ids: list[int], attend: Attend, keep: Keep) -> Float:
    """Look in both directions, add learned positions, normalise after: (tokens,) -> (tokens, d_model).

    Source: Devlin et al. 2019 (BERT), section 3; Vaswani et al. 2017, section 3.1.
    """
    x = model.words[ids] + model.token_type + model.positions[: len(ids)]  # (tokens, d_model)
    x = layer_norm(x, model.norm)
    for layer in model.layers:
        keep(x)
        x = layer_norm(x + self_attention(x, model, layer, attend), layer.norm_1)
        x = layer_norm(x + feed_forward(x, layer.up, layer.down, model.activation), layer.norm_2)
    keep(x)
    return x


def gpt2(model: Model, ids: list[int], attend: Attend, keep: Keep, past: int = 0) -> Float:
    """Add learned positions, normalise before: (tokens,) -> (tokens, d_model).

    Source: Radford et al. 2019 (GPT-2), section 2.3.
    """
    x = model.words[ids] + model.positions[past : past + len(ids)]  # (tokens, d_model)
    for layer in model.layers:
        keep(x)
        x = x + self_attention(layer_norm(x, layer.norm_1), model, layer, attend)
        x = x + feed_forward(layer_norm(x, layer.norm_2), layer.up, layer.down, model.activation)
    keep(x)
    return layer_norm(x, model.norm)


LAYOUTS: dict[str, Callable[..., Float]] = {"llama": llama, "bert": bert, "gpt2": gpt2}


def forget(x: Float) -> None:
    """Keep nothing of what goes from layer to layer: the `keep` of a pass whose attention alone is wanted."""


# Attention


def self_attention(
    x: Float, model: Model, layer: Layer, attend: Attend, turns: tuple[Float, Float] | None = None
) -> Float:
    """Let every token fetch something from the tokens it may see: (tokens, d_model) -> (tokens, d_model)."""
    n_heads, n_kv = model.n_heads, model.n_kv_heads
    qkv = linear(x, layer.qkv).reshape(len(x), -1, model.d_head)  # (tokens, heads + 2 kv_heads, d_head)
    q, k, v = np.split(qkv.swapaxes(0, 1), [n_heads, n_heads + n_kv])  # (heads or kv_heads, tokens, d_head)
    if turns is not None:
        q, k, v = rotate(q, *turns), rotate(k, *turns), v.copy()  # else v would keep the unturned q and k alive
    found = attend(q, k, v, layer.scale)  # (heads, tokens, d_head)
    return linear(merge_heads(found), layer.out)


class Attention:
    """The attention of one pass: obeys the switches, and keeps what each layer's was computed from.

    Args:
        mask: the model's own rule.
        switches: what is changed.
        on_layer: called with the number of finished layers.
    """

    def __init__(self, mask: Mask, switches: Switches, on_layer: Callable[[int], None] | None = None) -> None:
        self.mask = mask
        self.switches = switches
        self.on_layer = on_layer
        self.records: list[LayerRecord] = []

    def attend(self, q: Float, k: Float, v: Float, scale: float) -> Float:
        """Return the weighted mean of the values for each head and query, (heads, tokens, d_head), in the next layer.

        Args:
            q: (heads, tokens, d_head), of the last ones of all tokens.
            k: (kv_heads, all tokens, d_head), shared by neighbouring heads.
            v: as k.
            scale: the model's own factor in front of q k^T.
        """
        layer = len(self.records)
        for array in (q, k, v):
            array.flags.writeable = False
        self.records.append(LayerRecord(q, k, v, scale, self.mask))
        k, v = (repeat_kv(array, len(q) // len(k)) for array in (k, v))  # (heads, all tokens, d_head)
        positions = np.arange(k.shape[1])[-q.shape[1] :]  # (tokens,)
        factor = (scale if self.switches.scaled else 1.0) / self.switches.temperature
        found = np.empty_like(q)  # (heads, tokens, d_head)
        for start in range(0, q.shape[1], QUERY_BLOCK):
            rows = slice(start, start + QUERY_BLOCK)
            mask = self._mask(layer, len(q), positions[rows])  # (1 or heads, rows, seen)
            seen = slice(mask.shape[2])
            output, _ = scaled_dot_product_attention(q[:, rows], k[:, seen], v[:, seen], mask=mask, scale=factor)
            found[:, rows] = output
        found[[head for number, head in self.switches.ablate if number == layer]] = 0.0
        if self.on_layer is not None:
            self.on_layer(len(self.records))
        return found

    def _mask(self, layer: int, n_heads: int, rows: NDArray[np.int64]) -> Float:
        """Return (1 or heads, rows, seen): 0 where allowed, else -inf, without the keys behind all that a row sees."""
        keys = np.arange(self.mask.n_keys)
        cells = allowed_table(self.mask, self.switches, layer, range(n_heads), rows, keys)  # (1 or heads, rows, keys)
        n_seen = np.flatnonzero(cells.any(axis=(0, 1)))[-1] + 1
        return np.where(cells[..., :n_seen], np.float32(0), np.float32(-np.inf))


# What else a layer is made of


def linear(x: Float, layer: Linear) -> Float:
    """Return x W + b: (tokens, n_in) -> (tokens, n_out)."""
    y = x @ layer.weight  # (tokens, n_in) @ (n_in, n_out) -> (tokens, n_out)
    if layer.bias is not None:
        y += layer.bias
    return y


def rms_norm(x: Float, norm: Norm) -> Float:
    """Divide each token by its root mean square: (tokens, d_model) -> the same.

    Source: Zhang and Sennrich 2019, equation 4.
    """
    mean_square = np.mean(x * x, axis=-1, keepdims=True)  # (tokens, 1)
    return x / np.sqrt(mean_square + np.float32(norm.epsilon)) * norm.gain


def layer_norm(x: Float, norm: Norm) -> Float:
    """Give each token mean 0 and variance 1, then gain and offset: (tokens, d_model) -> the same.

    Source: Ba et al. 2016, equation 4.
    """
    x = x - x.mean(axis=-1, keepdims=True)  # (tokens, d_model)
    variance = np.mean(x * x, axis=-1, keepdims=True)  # (tokens, 1)
    return x / np.sqrt(variance + np.float32(norm.epsilon)) * norm.gain + norm.offset


def feed_forward(x: Float, up: Linear, down: Linear, activation: str) -> Float:
    """Widen, bend, narrow, each token by itself: (tokens, d_model) -> (tokens, d_ff) -> (tokens, d_model)."""
    wide = linear(x, up)  # (tokens, d_ff)
    for rows in cache_sized(wide):
        rows[:] = ACTIVATIONS[activation](rows)
    return linear(wide, down)


def swiglu(x: Float, up: Linear, down: Linear) -> Float:
    """Widen twice, one half the gate of the other, and narrow: (tokens, d_model) -> (tokens, d_model).

    Source: Shazeer 2020, equation 6.
    """
    wide = linear(x, up)  # (tokens, 2 d_ff)
    for rows in cache_sized(wide):
        gate, value = np.split(rows, 2, axis=-1)  # (some tokens, d_ff) each
        value *= silu(gate)
    return linear(wide[:, wide.shape[1] // 2 :], down)


def cache_sized(x: Float) -> list[Float]:
    """Return x as views of some rows each that fit into the processor's cache: 4 times faster on long texts."""
    return np.array_split(x, -(-x.size // CACHE_SIZED))
