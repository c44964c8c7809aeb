"""What bends the numbers between two projections: GELU, SiLU and the like. NumPy alone; any shape in, the same out."""

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float: TypeAlias = NDArray[np.float32]

ERF_STEPS, ERF_END = 256, 4.0  # places a unit where erf is tabled, and where float32 has it at 1


def silu(x: Float) -> Float:
    """Return x times the logistic function of x."""
    with np.errstate(over="ignore"):  # exp(-x) = inf far below 0, where the result is 0
        return x / (1 + np.exp(-x))


def gelu(x: Float) -> Float:
    """Return x times the probability that a standard normal number is below x, by erf.

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    return x * (np.float32(0.5) * (1 + erf(x * np.float32(math.sqrt(0.5)))))


def gelu_tanh(x: Float) -> Float:
    """Return `gelu` as GPT-2 has it, with tanh in place of erf; at most 5e-4 apart.

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * (x * x * x))
    return np.float32(0.5) * x * (1 + np.tanh(inner))


def relu(x: Float) -> Float:
    """Return x, or 0 where x is below."""
    return np.maximum(x, 0)


def erf(x: Float) -> Float:
    """Return the error function within 1e-7, which NumPy lacks, from a table and the slope and curve at its places.

    With c the nearest place in the table and d = x - c, erf(c + d) = erf(c) + erf'(c) (d - c d^2), since
    erf''(c) = -2c erf'(c). What is left out is below d^3 / 2 = 4e-9.
    """
    values, slopes = _erf_table()
    x = np.clip(x, -ERF_END, ERF_END)
    steps = np.rint(x * np.float32(ERF_STEPS))
    place = steps.astype(np.intp) + int(ERF_STEPS * ERF_END)  # row of the table
    c = steps / np.float32(ERF_STEPS)
    d = x - c
    return values[place] + slopes[place] * (d - c * d * d)


@cache
def _erf_table() -> tuple[Float, Float]:
    """Return erf and its slope 2 / sqrt(pi) exp(-c^2) at the places c = -4, -4 + 1/256, ..., 4."""
    places = np.arange(-ERF_STEPS * ERF_END, ERF_STEPS * ERF_END + 1) / ERF_STEPS
    slopes = 2 / math.sqrt(math.pi) * np.exp(-(places**2))
    return np.array([math.erf(c) for c in places], np.float32), slopes.astype(np.float32)


ACTIVATIONS: dict[str, Callable[[Float], Float]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
}
