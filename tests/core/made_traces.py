"""Traces from random q and k, for tests of what follows from them; no model behind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnviz.core.attention.masks import Mask, causal_rule, full_mask
from attnviz.core.trace.records import LayerMaps, LayerRecord, ModelInfo, Token
from attnviz.core.trace.trace import Trace

D_HEAD = 8


def made_tokens(
    ids: Sequence[int], special: Sequence[int] = (), texts: Sequence[str] | None = None
) -> tuple[Token, ...]:
    """Return tokens with these ids; `special` are indices of special ones."""
    texts = texts or [f" w{i}" for i in ids]
    return tuple(
        Token(i, number, f"‹{texts[i].strip()}›", texts[i], 4 * i, 4 * i + 4, i in special)
        for i, number in enumerate(ids)
    )


def made_layer(
    rng: np.random.Generator,
    n_heads: int,
    mask: Mask,
    *,
    kv_heads: int | None = None,
    sharp: float = 2.0,
    **extras: Any,
) -> LayerRecord:
    """Return a layer of random q, k and v; `sharp` multiplies q."""
    q = sharp * rng.normal(size=(n_heads, mask.n_queries, D_HEAD)).astype(np.float32)
    k, v = rng.normal(size=(2, kv_heads or n_heads, mask.n_keys, D_HEAD)).astype(np.float32)
    return LayerRecord(q, k, v, D_HEAD**-0.5, mask, **extras)


def made_trace(
    layers: dict[int, LayerRecord | LayerMaps],
    *,
    tokens: tuple[Token, ...] | None = None,
    part: str = "decoder",
    **fields: Any,
) -> Trace:
    """Return a trace of one part with these layers."""
    n_keys = next(iter(layers.values())).shape[2]
    tokens = tokens or made_tokens(range(n_keys))
    info = ModelInfo(
        name="made", title="made up", revision="", dtype="float32", engine="torch", architecture="", tokenizer="",
        causal=True, parts=(part,), n_layers=len(layers), layers=tuple(layers), n_heads=1, n_kv_heads=1, limit=10**6,
        n_parameters=0, predicts=False,
    )  # fmt: skip
    return Trace(text="", model=info, records={part: layers}, part_tokens={part: (tokens, tokens)}, **fields)


def random_trace(
    n_tokens: int,
    *,
    n_layers: int = 2,
    n_heads: int = 3,
    causal: bool = True,
    seed: int = 0,
    sharp: float = 2.0,
    **fields: Any,
) -> Trace:
    """Return a trace of random layers without any speciality."""
    rng = np.random.default_rng(seed)
    mask = causal_rule(n_tokens, n_tokens) if causal else full_mask(n_tokens, n_tokens)
    layers = {layer: made_layer(rng, n_heads, mask, sharp=sharp) for layer in range(n_layers)}
    return made_trace(layers, **fields)  # type: ignore[arg-type]


def random_weights(rng: np.random.Generator, *shape: int, causal: bool = True) -> np.ndarray:
    """Return rows of attention (..., queries, keys) that sum to 1, in float64."""
    scores = 2 * rng.normal(size=shape)
    if causal:
        scores = np.where(np.tri(*shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)
