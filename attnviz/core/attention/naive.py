"""What goes wrong with the softmax as the formula writes it, and with a mask that isn't -inf. NumPy only."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnviz.core.threads import one_thread
from attnviz.core.trace.trace import Trace


@dataclass(frozen=True)
class LargestProduct:
    """The largest q . k of a text in a model, without the model's factor, and where it is.

    Rows with one allowed key are left out: their weight is 1 whatever the product is.
    """

    value: float
    layer: int
    head: int
    query: int
    key: int


def naive_softmax(scores: ArrayLike, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return exp(score) / sum of exp(score) over the row, computed literally: no maximum is taken off first.

    In exact arithmetic that is the softmax. In floating point exp overflows to inf above `largest_exponent`, and
    inf / inf is NaN.

    Args:
        scores: (..., keys).
        dtype: the floating-point type in which every step is done.

    Returns:
        (..., keys) in that type.

    >>> naive_softmax([0.0, 0.0]).tolist(), naive_softmax([278.0, 0.0]).tolist()
    ([0.5, 0.5], [nan, 0.0])
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exps = np.exp(np.asarray(scores).astype(dtype))  # (..., keys)
        return np.asarray(exps / exps.sum(axis=-1, keepdims=True, dtype=dtype))


def largest_exponent(dtype: DTypeLike) -> float:
    """Return the largest score whose exp fits the type: the logarithm of its largest number.

    >>> round(largest_exponent(np.float16), 1), round(largest_exponent(np.float32), 1)
    (11.1, 88.7)
    """
    return float(np.log(np.float64(np.finfo(dtype).max)))


def masked_softmax(
    scores: ArrayLike, allowed: ArrayLike, stand_in: float, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """Return the softmax of rows in which forbidden scores are replaced by a number, computed without any check.

    With -inf a row with nothing allowed becomes NaN, which nobody overlooks. With a large negative number such as -1e9
    it becomes equal shares of forbidden keys, which looks like attention. Other rows come out the same.

    Args:
        scores: (..., keys).
        allowed: booleans that broadcast to it.
        stand_in: what forbidden scores are replaced by.
        dtype: the floating-point type in which every step is done; in float16 -1e9 is -inf.

    Returns:
        (..., keys) in that type.

    >>> masked_softmax([1.0, 2.0], [False, False], -1e9).tolist()
    [0.5, 0.5]
    >>> masked_softmax([1.0, 2.0], [False, False], -np.inf).tolist()
    [nan, nan]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        masked = np.where(allowed, scores, stand_in).astype(dtype)  # (..., keys)
        exps = np.exp(masked - masked.max(axis=-1, keepdims=True))
        return np.asarray(exps / exps.sum(axis=-1, keepdims=True, dtype=dtype))


def largest_product(trace: Trace, *, part: str | None = None) -> LargestProduct:
    """Return the largest allowed q . k over all layers and heads of a trace.

    Raises:
        ValueError: a model of which only the finished maps are known, or no row has a choice.
    """
    best = LargestProduct(-np.inf, 0, 0, 0, 0)
    for layer in trace.layers_of(part):
        for number in range(trace.heads(layer, part=part)):
            head = trace.head(layer, number, part=part)
            if head.finished:
                break
            q, k, _ = head.qkv
            allowed = head.allowed & (head.allowed.sum(axis=1, keepdims=True) > 1)  # (queries, keys)
            with one_thread():
                products = np.nan_to_num(q @ k.T, nan=-np.inf)  # (queries, keys)
            products = np.where(allowed, products, -np.inf)
            query, key = divmod(int(products.argmax()), products.shape[1])
            if products[query, key] > best.value:
                best = LargestProduct(float(products[query, key]), layer, number, query, key)
    if not np.isfinite(best.value):
        raise ValueError("expected a model whose q and k are known, and a query with two keys to choose from")
    return best
