"""What attention can be computed from: arrays of numbers whose shapes fit each other, and masks. NumPy only."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnviz.core.arguments import got

FloatArray: TypeAlias = NDArray[np.floating[Any]]


def as_floats(x: ArrayLike, name: str, axes: str = "") -> FloatArray:
    """Return float32 and float64 as they are, float16 as float32, whole numbers as float64.

    Anything else, and fewer axes than `axes` names, is a ValueError that calls the array `name`.
    """
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{name}: expected an array of numbers, got {got(x)}") from None
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected real numbers, got {array.dtype}")
    n_axes = len(axes.replace("..., ", "").split(",")) if axes else 0
    if array.ndim < n_axes:
        raise ValueError(f"{name}: expected shape {axes}, got {array.shape}")
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if single else np.float64, copy=False)


def check_values(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> FloatArray:
    """Return v as floats, or raise ValueError: not one value for each key, or leading axes that don't broadcast."""
    q, k = check_q_and_k(q, k)
    v = as_floats(v, "v", "(..., keys, d_value)")
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"expected one value for each key: {k.shape[-2]} keys, got {v.shape[-2]} values")
    check_broadcast(q=q, k=k, v=v)
    return v


def check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the mask stretched to the scores' shape without copying it, or raise ValueError: wrong type or shape."""
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bf":  # 0 and 1 as integers: allowed or not, or a bias? Never guess.
        raise ValueError(f"mask: expected booleans (True = allowed) or floats (0, -inf or a bias), got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask: expected a shape that broadcasts to the scores' {shape}, got {mask.shape}") from None


def additive_mask(mask: NDArray[Any], dtype: DTypeLike) -> FloatArray:
    """Return a boolean mask as 0 (allowed) and -inf (forbidden), an additive one as it is, both in `dtype`."""
    return np.where(mask, 0.0, -np.inf).astype(dtype) if mask.dtype == bool else mask.astype(dtype, copy=False)


def check_row_maxima(highest: FloatArray) -> None:
    """Raise ValueError at NaN and +inf, given the largest score of each row: both would be the largest of their row."""
    if not (highest < np.inf).all():  # NaN is smaller than nothing
        worst = highest[~(highest < np.inf)][0]
        raise ValueError(f"expected scores that are finite or -inf (forbidden), got {worst}")


def check_floating(dtype: DTypeLike) -> None:
    """Raise ValueError unless it is a floating-point type, which can hold -inf."""
    try:
        kind: Any = np.dtype(dtype)
    except TypeError:  # not a dtype at all
        kind = got(dtype)
    if not isinstance(kind, np.dtype) or not np.issubdtype(kind, np.floating):
        raise ValueError(f"expected a floating-point dtype, which can hold -inf, got {kind}")


def check_q_and_k(q: ArrayLike, k: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return q and k as floats whose shapes fit each other."""
    q, k = as_floats(q, "q", "(..., queries, d_head)"), as_floats(k, "k", "(..., keys, d_head)")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(f"expected q and k with the same d_head of at least 1, got {q.shape[-1]} and {k.shape[-1]}")
    check_broadcast(q=q, k=k)
    return q, k


def check_broadcast(**arrays: FloatArray) -> None:
    """Stop when the leading axes, all but the last two, don't broadcast."""
    leading = {name: array.shape[:-2] for name, array in arrays.items()}
    try:
        np.broadcast_shapes(*leading.values())
    except ValueError:
        raise ValueError(f"expected leading axes (before the last two) that broadcast, got {leading}") from None


def check_projections(x: ArrayLike, *weights: ArrayLike) -> tuple[FloatArray, ...]:
    """Return x and w_q, w_k, w_v, w_o as floats whose shapes fit each other."""
    x = as_floats(x, "x", "(..., tokens, d_model)")
    w_q, w_k, w_v, w_o = (as_floats(w, f"w_{letter}") for letter, w in zip("qkvo", weights, strict=True))
    for name, w, before in (("w_q", w_q, x), ("w_k", w_k, x), ("w_v", w_v, x), ("w_o", w_o, w_v)):
        if w.ndim != 2 or w.shape[0] != before.shape[-1]:
            raise ValueError(f"{name}: expected shape ({before.shape[-1]}, ...), two axes, got {w.shape}")
    return x, w_q, w_k, w_v, w_o
