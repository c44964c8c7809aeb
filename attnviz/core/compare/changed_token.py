"""Change one token of a text and see which rows of attention's output change: what a causal mask means. NumPy only."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import FloatArray
from attnviz.core.attention.made_up import random_layer
from attnviz.core.attention.textbook import multi_head_attention
from attnviz.core.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class TokenChange:
    """Random multi-head attention before and after one token's vector was replaced.

    Attributes:
        output, output_after: (tokens, d_model).
        weights, weights_after: (heads, queries, keys).
    """

    output: FloatArray
    output_after: FloatArray
    weights: FloatArray
    weights_after: FloatArray


@dataclass(frozen=True)
class Alike:
    """Where the tokens of two texts agree.

    Attributes:
        n_before, n_after: number of tokens.
        first: position of the first token that differs; the length of the shorter text if none does.
        n_shared: positions that can be compared: all if both texts are equally long, else those before `first`.
    """

    n_before: int
    n_after: int
    first: int
    n_shared: int


def change_a_token(
    n_tokens: int, d_model: int, token: int, *, causal: bool, n_heads: int = 1, seed: int = 0
) -> TokenChange:
    """Run multi-head attention on random vectors, replace one token's vector by another random one, and run it again.

    Args:
        n_tokens: length of the text.
        d_model: width of the vectors.
        token: index of the one that is replaced.
        causal: whether a query may look at keys after it.
        n_heads: must divide d_model.
        seed: of the random numbers.

    Raises:
        ValueError: there is no such token, or n_heads doesn't divide d_model.

    >>> found = change_a_token(5, 8, token=4, causal=True, n_heads=2)
    >>> same_bits(found.output, found.output_after).tolist()
    [True, True, True, True, False]
    """
    if not 0 <= token < n_tokens:
        raise ValueError(f"expected a token from 0 to {n_tokens - 1}, got {token}")
    rng = np.random.default_rng(seed)
    x, matrices = random_layer(n_tokens, d_model, rng)
    changed = x.copy()
    changed[token] = rng.standard_normal(d_model)
    output, weights = multi_head_attention(x, *matrices, n_heads=n_heads, causal=causal)
    output_after, weights_after = multi_head_attention(changed, *matrices, n_heads=n_heads, causal=causal)
    return TokenChange(output, output_after, weights, weights_after)


def row_changes(before: ArrayLike, after: ArrayLike) -> NDArray[np.float64]:
    """Return (rows,) the largest absolute difference of each row of two arrays (rows, ...) of one shape.

    >>> row_changes([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.5]]).tolist()
    [0.0, 0.5]
    """
    difference = np.abs(np.asarray(after, np.float64) - np.asarray(before, np.float64))
    return np.asarray(difference.reshape(len(difference), -1).max(axis=1))


def same_bits(before: ArrayLike, after: ArrayLike) -> NDArray[np.bool_]:
    """Return (rows,) True where a row of one array has the very bits of the other's, which is more than being equal.

    >>> same_bits([[0.0], [1.0]], [[-0.0], [1.0]]).tolist()
    [False, True]
    """
    old, new = np.ascontiguousarray(before), np.ascontiguousarray(after)
    if old.shape != new.shape or old.dtype != new.dtype:
        raise ValueError(f"expected two arrays of one shape and type, got {old.shape} and {new.shape}")
    rows: NDArray[Any] = np.array([a.tobytes() == b.tobytes() for a, b in zip(old, new, strict=True)], bool)
    return rows


def compare_tokens(before: Trace, after: Trace, *, part: str | None = None) -> Alike:
    """Return where the query tokens of two traces agree."""
    old, new = (trace.tokens_of(part)[0] for trace in (before, after))
    differ = [a.id != b.id for a, b in zip(old, new, strict=False)]
    first = differ.index(True) if True in differ else len(differ)
    return Alike(len(old), len(new), first, len(old) if len(old) == len(new) else first)


def heads_that_kept(before: Trace, after: Trace, *, part: str | None = None) -> tuple[int, int]:
    """Return the number of heads, and of those whose weights kept every bit in all rows before the first change."""
    n = compare_tokens(before, after, part=part).first
    n_heads = n_kept = 0
    for layer in before.layers_of(part):
        old, new = (
            trace.layer_weights(layer, part=part, queries=slice(0, n))[..., :n] for trace in (before, after)
        )  # (heads, n, n)
        n_heads += len(old)
        n_kept += sum(bool(same_bits(a, b).all()) for a, b in zip(old, new, strict=True))
    return n_heads, n_kept
