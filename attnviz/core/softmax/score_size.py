"""Why scores are divided by sqrt(d): how large q . k gets, and what that does to the softmax and its gradient.

Components of mean 0 and variance 1, q independent of k: then q . k has mean 0 and variance d. Rows of random texts and
of a trained head are measured the same way, with the factor and without it. NumPy only.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.attention.checks import FloatArray, as_floats
from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.textbook import attention_scores, softmax
from attnviz.core.threads import one_thread
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches

NOTHING, TENFOLD = 0.01, 10.0  # gradients of a row, in units of the median with the factor
N_ROWS = 2048
_NODES, _SPREAD = 2001, 60.0  # of the integral: exp(-60) of its peak is nothing beside it in float64


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of attention under one factor; rows with one allowed key are left out, since they have no choice.

    Attributes:
        maxima: (rows,) the largest weight of each row; `strongest`: the key that has it.
        score_gradient: (rows,) the length of dL/dscores.
        query_gradient: (rows,) the length of dL/dq.
    """

    maxima: NDArray[np.float64]
    strongest: NDArray[np.int64]
    score_gradient: NDArray[np.float64]
    query_gradient: NDArray[np.float64]

    def above(self, limit: float) -> float:
        """Return the share of rows whose largest weight is above a limit."""
        return float((self.maxima > limit).mean())


@dataclass(frozen=True, eq=False)
class Scaling:
    """The same q, k and v with the factor in front of q . k and without it.

    Attributes:
        products: (cells,) all allowed q . k, without the factor.
        factor: what the scaled scores are multiplied by, usually 1 / sqrt(d).
        scaled, unscaled: what the rows look like with it and without.
    """

    products: NDArray[np.float64]
    factor: float
    scaled: Rows
    unscaled: Rows

    def relative(self, rows: Rows) -> NDArray[np.float64]:
        """Return (rows,) the lengths of dL/dq in units of their median with the factor."""
        return rows.query_gradient / np.median(self.scaled.query_gradient)

    def nothing(self, rows: Rows) -> float:
        """Return the share of rows whose dL/dq is below 1 % of the median with the factor."""
        return float((self.relative(rows) < NOTHING).mean())

    def tenfold(self, rows: Rows) -> float:
        """Return the share of rows whose dL/dq is above ten times the median with the factor."""
        return float((self.relative(rows) > TENFOLD).mean())


@dataclass(frozen=True, eq=False)
class Curves:
    """What `Scaling` says for texts of several shapes, one number a shape; [0] with the factor, [1] without.

    Attributes:
        shapes: (tokens, d) of each.
        above_90, above_99: (2, shapes) share of rows whose largest weight is above 0.9 and 0.99.
        nothing, tenfold: (2, shapes) share of rows with hardly any gradient, and with ten times the usual one.
    """

    shapes: tuple[tuple[int, int], ...]
    above_90: NDArray[np.float64]
    above_99: NDArray[np.float64]
    nothing: NDArray[np.float64]
    tenfold: NDArray[np.float64]


def product_density(x: ArrayLike, d: int) -> NDArray[np.float64]:
    """Return the exact density of q . k, where q and k have d independent standard normal components.

    With q fixed, q . k is normal with variance |q|^2; averaged over q this is
    f(x) = |x|^v K_v(|x|) / (sqrt(pi) 2^v Gamma(d / 2)) with v = (d - 1) / 2 and K_v the modified Bessel function of the
    second kind. It is 1/2 exp(-|x|) for d = 2, has variance d and kurtosis 3 + 6 / d, and nears the normal density.

    Args:
        x: where, any shape.
        d: number of components, at least 1.

    Returns:
        The density in the shape of `x`; infinite at 0 for d = 1.

    Raises:
        ValueError: d below 1.

    Source: Craig 1936, "On the frequency function of xy" (d = 1); Simon 2002, "Probability distributions involving
    Gaussian random variables", section 6 (any d).

    >>> product_density([-1.0, 0.0, 3.0], 2).round(6).tolist()
    [0.18394, 0.5, 0.024894]
    """
    if d < 1:
        raise ValueError(f"expected d of at least 1, got {d}")
    x = np.abs(np.asarray(x, np.float64))
    order = (d - 1) / 2
    constant = 0.5 * math.log(math.pi) + order * math.log(2) + math.lgamma(d / 2)
    away = np.maximum(x, 1e-300 if d == 1 else 1e-16).ravel()  # closer to 0 the density of d > 1 stays the same
    found = np.exp(order * np.log(away) + _log_bessel_k(order, away) - constant).reshape(x.shape)
    return np.where((x == 0) & (d == 1), np.inf, found)


def normal_density(x: ArrayLike, sd: float) -> NDArray[np.float64]:
    """Return the density of the normal distribution with mean 0.

    >>> float(normal_density(0.0, 1.0).round(4))
    0.3989
    """
    return np.exp(-0.5 * (np.asarray(x, np.float64) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def kurtosis(values: ArrayLike) -> float:
    """Return the fourth moment in units of the squared variance: 3 for a normal distribution, more with heavy tails.

    >>> kurtosis([-1.0, 1.0])
    1.0
    """
    values = np.asarray(values, np.float64)
    centred = values - values.mean()
    return float((centred**4).mean() / (centred**2).mean() ** 2)


def score_gradient(weights: ArrayLike, values: ArrayLike, loss: ArrayLike) -> FloatArray:
    """Return dL/dscores of each row, where the loss L changes with the output as `loss` says.

    The output is a v, so dL/da_j = loss . v_j. The softmax's Jacobian is diag(a) - a a^T, so
    dL/ds_j = a_j (dL/da_j - sum_i a_i dL/da_i): nothing, where one key has all the weight.

    Args:
        weights: (..., queries, keys), rows of a softmax.
        values: (..., keys, d_value).
        loss: (..., queries, d_value), dL/doutput.

    Returns:
        (..., queries, keys).

    >>> score_gradient([[0.5, 0.5], [1.0, 0.0]], [[1.0], [-1.0]], [[1.0], [1.0]]).tolist()
    [[0.5, -0.5], [0.0, -0.0]]
    """
    a = as_floats(weights, "weights", "(..., queries, keys)")
    with one_thread():
        by_weight = np.asarray(loss) @ np.asarray(values).swapaxes(-1, -2)  # (..., queries, keys): dL/da
    return a * (by_weight - (a * by_weight).sum(axis=-1, keepdims=True))


def query_gradient(by_score: ArrayLike, k: ArrayLike, factor: float) -> FloatArray:
    """Return dL/dq, (..., queries, d): the scores are factor * q . k, so it is factor * dL/dscores times the keys.

    Args:
        by_score: (..., queries, keys), dL/dscores.
        k: (..., keys, d).
        factor: in front of q . k.

    >>> query_gradient([[0.5, -0.5]], [[2.0, 0.0], [0.0, 2.0]], factor=0.5).tolist()
    [[0.5, -0.5]]
    """
    with one_thread():
        return np.asarray(factor * (np.asarray(by_score) @ np.asarray(k)))


def measure_rows(weights: ArrayLike, k: ArrayLike, v: ArrayLike, loss: ArrayLike, factor: float) -> Rows:
    """Measure how sharp rows of attention are, and how large the gradients that pass through them.

    Args:
        weights: (..., queries, keys).
        k: (..., keys, d).
        v: (..., keys, d_value).
        loss: (..., queries, d_value), dL/doutput.
        factor: in front of q . k.

    Returns:
        Rows, those of all texts behind each other.
    """
    by_score = score_gradient(weights, v, loss)  # (..., queries, keys)
    by_query = query_gradient(by_score, k, factor)  # (..., queries, d)
    lengths = [np.linalg.norm(gradient, axis=-1).ravel() for gradient in (by_score, by_query)]
    rows = np.asarray(weights, np.float64).reshape(-1, np.shape(weights)[-1])  # (rows, keys)
    return Rows(rows.max(axis=-1), rows.argmax(axis=-1), lengths[0], lengths[1])


def random_scaling(n_tokens: int, d: int, seed: int = 0, *, n_rows: int = N_ROWS) -> Scaling:
    """Measure random texts in which every token sees every token; q, k, v and the direction of the loss are normal.

    Args:
        n_tokens: queries and keys of each text, at least 2.
        d: width of a head.
        seed: of the random numbers.
        n_rows: at least so many rows, from as many texts as that takes.

    Raises:
        ValueError: fewer than 2 tokens, or d below 1.

    >>> found = random_scaling(6, 128)
    >>> found.unscaled.above(0.9) > 0.7 > 0.1 > found.scaled.above(0.9)
    True
    """
    if n_tokens < 2:
        raise ValueError(f"expected at least 2 tokens, since one alone has no choice; got {n_tokens}")
    q, k, v = random_qkv(-(-n_rows // n_tokens), n_tokens, d, seed=seed)
    loss = np.random.default_rng([seed, 1]).standard_normal(v.shape)
    factor = 1 / math.sqrt(d)
    products = attention_scores(q, k, scale=1.0)  # (texts, queries, keys)
    scaled, unscaled = (measure_rows(softmax(f * products), k, v, loss, f) for f in (factor, 1.0))
    return Scaling(products.ravel().astype(np.float64), factor, scaled, unscaled)


def scaling_curves(shapes: Sequence[tuple[int, int]], seed: int = 0, *, n_rows: int = N_ROWS) -> Curves:
    """Measure random texts of several shapes (tokens, d); the rest as in `random_scaling`."""
    found = [random_scaling(n_tokens, d, seed, n_rows=n_rows) for n_tokens, d in shapes]

    def over_shapes(measure: Callable[[Scaling, Rows], float]) -> NDArray[np.float64]:
        pairs = [(measure(one, one.scaled), measure(one, one.unscaled)) for one in found]
        return np.array(pairs, np.float64).T  # (2, shapes)

    return Curves(
        shapes=tuple(shapes),
        above_90=over_shapes(lambda one, rows: rows.above(0.9)),
        above_99=over_shapes(lambda one, rows: rows.above(0.99)),
        nothing=over_shapes(Scaling.nothing),
        tenfold=over_shapes(Scaling.tenfold),
    )


def head_scaling(head: Head) -> Scaling:
    """Measure a trained head on a text with its own factor and without, with a random direction of the loss.

    Args:
        head: of a text as a model saw it.

    Raises:
        ValueError: no row with a choice, or a model whose scores are not a factor times q . k.
    """
    q, k, v = (array.astype(np.float64) for array in head.qkv)
    if isinstance(head.record, LayerRecord) and head.record.softcap is not None:
        raise ValueError("this model bends its scores with a soft-cap, so its gradient has another form")
    choice = head.allowed.sum(axis=-1) > 1  # (queries,)
    if not choice.any():
        raise ValueError("expected a query with at least two keys to choose from; type a longer text")
    loss = np.random.default_rng([0, 1]).standard_normal((len(q), v.shape[-1]))[choice]
    measured = []
    for switches, factor in ((Switches(), head.scale), (Switches(scaled=False), 1.0)):
        weights = head.under(switches).weights[choice].astype(np.float64)
        measured.append(measure_rows(weights, k, v, loss, factor))
    with one_thread():
        return Scaling((q @ k.T)[head.allowed], head.scale, measured[0], measured[1])


def row_spread(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the standard deviation of each row's allowed scores, rows with fewer than two allowed keys left out.

    Args:
        scores: (queries, keys), -inf where forbidden.

    >>> row_spread([[7.0, -np.inf], [1.0, 3.0]]).tolist()
    [1.0]
    """
    rows = [row[np.isfinite(row)] for row in np.asarray(scores, np.float64)]
    return np.array([row.std() for row in rows if len(row) > 1], np.float64)


def _log_bessel_k(order: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log K_v(x), v = order, (n,), from K_v(x) = integral over t from 0 to infinity of exp(-x cosh t) cosh(v t).

    The integrand is an even function of t that falls off twice exponentially; for such a function the trapezoid rule is
    exact to the last digits as soon as its step is well below the width of the peak at sinh t = v / x.

    Source: Abramowitz and Stegun 1964, formula 9.6.24; for the rule Trefethen and Weideman 2014.
    """
    peak, sharpness = np.arcsinh(order / x), np.hypot(order, x)
    end = peak + np.arccosh(1 + _SPREAD / sharpness)  # beyond it the integrand is below exp(-_SPREAD) of its peak
    t = end[:, None] * np.linspace(0, 1, _NODES)  # (n, nodes)
    top = order * peak - sharpness  # the exponent at the peak
    exponent = order * t - x[:, None] * np.cosh(t) - top[:, None]
    terms = np.exp(exponent) * (1 + np.exp(-2 * order * t)) / 2
    return np.asarray(top + np.log((terms.sum(axis=1) - terms[:, 0] / 2) * end / (_NODES - 1)))
