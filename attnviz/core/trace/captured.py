"""What a trace is made of, from arrays that somebody else captured: a user's own hooks, another library. NumPy only."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.arguments import number, text, truth, whole
from attnviz.core.attention.masks import Mask, causal_rule, full_mask
from attnviz.core.text.visible import visible
from attnviz.core.trace.records import LayerMaps, LayerRecord, ModelInfo, Token

Layers: TypeAlias = NDArray[Any] | Sequence[ArrayLike] | Mapping[int, ArrayLike]
"""One array a layer: a stack, a list, or layer number -> array."""

FINISHED = "Only the finished weights of these heads are known, not the q and k that they were computed from."
CLOSE = 5e-3  # by so much a row of weights may exceed 1: bfloat16 rounds each of them by up to 0.2 %


class Captured(NamedTuple):
    """What a trace of captured arrays is made of."""

    model: ModelInfo
    records: dict[int, LayerRecord | LayerMaps]
    tokens: tuple[Token, ...]


def captured(
    tokens: Sequence[str | Token],
    q: Layers | None = None,
    k: Layers | None = None,
    v: Layers | None = None,
    *,
    weights: Layers | None = None,
    scale: float | None = None,
    causal: bool | None = None,
    name: str = "captured",
) -> Captured:
    """Return what `Trace.from_arrays` makes a trace of; see there."""
    labels = _tokens(tokens)
    causal = None if causal is None else truth("causal", causal, or_none=True)
    scale = None if scale is None else number("scale", scale, "a finite number or None")
    name = text("name", name)
    if (weights is None) == (q is None and k is None and v is None):
        raise ValueError("pass either q, k and v, or weights")
    if weights is not None:
        maps = {n: _array(array, ("heads", "queries", "keys"), n, "weights") for n, array in _numbered(weights).items()}
        records: dict[int, LayerRecord | LayerMaps] = {
            n: _finished(array, causal, labels, n) for n, array in maps.items()
        }
    else:
        if q is None or k is None or v is None:
            raise ValueError("q, k and v belong together: pass all three, or weights alone")
        records = dict(_captured(_numbered(q), _numbered(k), _numbered(v), scale, causal is not False, labels))
    return Captured(_info(records, name), records, labels)


def _tokens(tokens: Sequence[str | Token]) -> tuple[Token, ...]:
    """Return tokens, each with its place in the text that they make up when strung together.

    Equal strings get equal ids, below 0, so that heads which look at repetitions are seen to do so.
    """
    found: list[Token] = []
    ids: dict[str, int] = {}
    start = 0
    if not hasattr(tokens, "__iter__"):
        raise ValueError(f"tokens must be strings or Tokens, got {type(tokens).__name__}")
    for index, token in enumerate(tokens):
        if isinstance(token, Token):
            found.append(replace(token, index=index))
            continue
        if not isinstance(token, str):
            raise ValueError(f"tokens must be strings or Tokens, got {type(token).__name__} at {index}")
        number = ids.setdefault(token, -1 - len(ids))
        found.append(Token(index, number, _label(token), token, start, start + len(token), False))
        start += len(token)
    if not found:
        raise ValueError("there is no token")
    return tuple(found)


def _label(token: str) -> str:
    """Return a string with signs for what leaves no ink; signs that are in it stay, as in labels of another trace."""
    return re.sub("[^·⏎⇥]+", lambda match: visible(match[0]), token) or "␀"


def _numbered(layers: Layers) -> dict[int, ArrayLike]:
    if not hasattr(layers, "__iter__"):
        raise ValueError(f"expected an array for each layer, got {type(layers).__name__}")
    if isinstance(layers, Mapping):
        numbers = {whole("the number of a layer", n, least=0): array for n, array in layers.items()}
        found = dict(sorted(numbers.items()))
    else:
        found = dict(enumerate(layers))
    if not found:
        raise ValueError("there is no layer")
    return found


def _array(array: ArrayLike, axes: tuple[str, ...], layer: int, what: str) -> NDArray[np.float32]:
    """Return a read-only float32 copy, without the batch axis of 1 that captured arrays often have."""
    if hasattr(array, "detach"):  # a torch tensor: on a graph, on a GPU, or in a precision that NumPy lacks
        array = array.detach().cpu().float().numpy()
    try:
        values = np.array(array, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} of layer {layer} must be numbers of shape ({', '.join(axes)}): {error}") from error
    if values.ndim == len(axes) + 1 and len(values) == 1:
        values = values[0]
    if values.ndim != len(axes) or 0 in values.shape:
        raise ValueError(f"{what} of layer {layer} must be ({', '.join(axes)}), got {np.shape(array)}")
    if not np.isfinite(values).all():
        raise ValueError(f"{what} of layer {layer} must be finite, got {np.count_nonzero(~np.isfinite(values))} not so")
    values.flags.writeable = False
    return values


def _finished(weights: NDArray[np.float32], causal: bool | None, tokens: tuple[Token, ...], layer: int) -> LayerMaps:
    n = len(tokens)
    if weights.shape[1:] != (n, n):
        raise ValueError(f"weights of layer {layer} must be (heads, {n}, {n}) for {n} tokens, got {weights.shape}")
    sums = weights.sum(axis=-1)
    if not np.all(weights >= 0) or float(sums.max()) > 1 + CLOSE:
        raise ValueError(
            f"weights of layer {layer} must be at least 0 and sum to at most 1 a row, got sums up to {sums.max():g}"
        )
    ahead = bool(np.triu(weights, k=1).any())
    if causal and ahead:
        raise ValueError(f"layer {layer} puts weight on later tokens, so it isn't causal")
    rule = full_mask if causal is False or ahead else causal_rule
    return LayerMaps(weights, rule(n, n))


def _captured(
    q: dict[int, ArrayLike],
    k: dict[int, ArrayLike],
    v: dict[int, ArrayLike],
    scale: float | None,
    causal: bool,
    tokens: tuple[Token, ...],
) -> Iterator[tuple[int, LayerRecord]]:
    if not q.keys() == k.keys() == v.keys():
        raise ValueError(f"q, k and v must have the same layers, got {sorted(q)}, {sorted(k)} and {sorted(v)}")
    n = len(tokens)
    mask: Mask = (causal_rule if causal else full_mask)(n, n)
    for layer in q:
        axes = ("heads", "tokens", "d_head")
        parts = [_array(x[layer], axes, layer, name) for name, x in (("q", q), ("k", k), ("v", v))]
        shapes = [part.shape for part in parts]
        fits = all(shape[1] == n for shape in shapes) and shapes[0][2] == shapes[1][2] and shapes[1][0] == shapes[2][0]
        if not fits or shapes[0][0] % shapes[1][0]:
            raise ValueError(
                f"layer {layer}: expected q (heads, {n}, d_head), k and v (key/value heads, {n}, ...), the key/value "
                f"heads dividing the heads, got {shapes[0]}, {shapes[1]} and {shapes[2]}"
            )
        factor = shapes[0][2] ** -0.5 if scale is None else scale
        yield layer, LayerRecord(parts[0], parts[1], parts[2], factor, mask)


def _info(records: Mapping[int, LayerRecord | LayerMaps], name: str) -> ModelInfo:
    first = next(iter(records.values()))
    looks = any(record.mask.looks_ahead for record in records.values())
    switches = ("scores", "causal", "temperature", "scaled", "forbid", "ablate")
    return ModelInfo(
        name=name,
        title=name,
        revision="captured elsewhere",
        dtype="float32",
        engine="none",
        architecture="unknown",
        tokenizer="unknown",
        causal=not looks,
        parts=("encoder" if looks else "decoder",),
        n_layers=max(records) + 1,
        layers=tuple(records),
        n_heads=max(record.shape[0] for record in records.values()),
        n_kv_heads=first.k.shape[0] if isinstance(first, LayerRecord) else first.shape[0],
        limit=first.shape[1],
        n_parameters=0,
        predicts=False,
        cannot=dict.fromkeys(switches, FINISHED) if isinstance(first, LayerMaps) else {},
    )
