"""The factor 1/sqrt(d): densities, gradients and shares against closed forms, autograd and numbers known before."""

import numpy as np
import pytest
import torch

from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.attention.textbook import attention_scores, softmax
from attnviz.core.softmax.score_size import (
    Rows,
    Scaling,
    head_scaling,
    kurtosis,
    measure_rows,
    normal_density,
    product_density,
    query_gradient,
    random_scaling,
    row_spread,
    scaling_curves,
    score_gradient,
)
from tests.core.made_traces import made_layer, made_trace

X = np.linspace(0.05, 40, 60)
MANY = 16_384  # rows: a share is then known to 0.4 % (one standard deviation)


def bessel_k(order: int) -> np.ndarray:
    """Return K of a whole order at X, by recurrence from torch's K_0 and K_1."""
    x = torch.from_numpy(X)
    low, high = torch.special.modified_bessel_k0(x), torch.special.modified_bessel_k1(x)
    for n in range(order):
        low, high = high, low + 2 * (n + 1) / x * high
    return low.numpy()


@pytest.mark.parametrize("d", [1, 3, 5, 9, 17, 33])
def test_density_of_odd_widths_equals_the_bessel_functions(d):
    order = (d - 1) // 2
    constant = np.sqrt(np.pi) * 2.0**order * torch.lgamma(torch.tensor(d / 2, dtype=torch.float64)).exp().item()
    np.testing.assert_allclose(product_density(X, d), X**order * bessel_k(order) / constant, rtol=1e-10)


@pytest.mark.parametrize(
    ("d", "density"),
    [(2, lambda x: np.exp(-x) / 2), (4, lambda x: (1 + x) * np.exp(-x) / 4)]
    + [(6, lambda x: (3 + 3 * x + x**2) * np.exp(-x) / 16)],
)
def test_density_of_even_widths_is_a_polynomial_times_an_exponential(d, density):
    x = np.concatenate([[0, 1e-300, 1e-20, 1e-9, 1e-3], X])
    np.testing.assert_allclose(product_density(x, d), density(x), rtol=1e-10)
    np.testing.assert_allclose(product_density(-x, d), density(x), rtol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 16, 128, 1024])
def test_density_has_area_1_variance_d_and_the_kurtosis(d):
    x = np.linspace(-25, 25, 3001) * np.sqrt(d)
    density = product_density(x, d)
    moments = [(x[1] - x[0]) * (x**power * density).sum() for power in (0, 2, 4)]
    np.testing.assert_allclose(moments, [1, d, (3 + 6 / d) * d**2], rtol=1e-4)


@pytest.mark.parametrize("d", [1, 4, 16])
def test_density_fits_a_fine_histogram(d):
    q, k = np.random.default_rng(5).standard_normal((2, 200_000, d))
    edges = np.linspace(-4, 4, 81) * np.sqrt(d)
    counts, _ = np.histogram((q * k).sum(axis=1), edges)
    inner = edges[:-1, None] + (np.arange(50) + 0.5) / 50 * np.diff(edges)[:, None]  # (bins, 50)
    expected = 200_000 * product_density(inner, d).mean(axis=1) * np.diff(edges)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 0.02 * expected * (d == 1)).all()


def test_density_is_infinite_at_0_for_one_component_and_nears_the_normal_one():
    assert product_density(0.0, 1) == np.inf and np.isfinite(product_density(1e-300, 1))
    x = np.linspace(-3, 3, 100)
    gap = [np.abs(product_density(x * np.sqrt(d), d) * np.sqrt(d) - normal_density(x, 1)).max() for d in (4, 16, 1024)]
    assert gap[0] > 0.05 > gap[1] > 0.01 > 0.001 > gap[2]


@pytest.mark.parametrize("d", [1, 4, 64])
def test_products_have_the_kurtosis_that_theory_gives(d):
    assert kurtosis(random_scaling(64, d, seed=1, n_rows=MANY).products) == pytest.approx(3 + 6 / d, rel=0.06)


@pytest.mark.parametrize("d", [1, 128, 1024])
def test_products_have_variance_d(d):
    found = random_scaling(8, d, seed=2, n_rows=MANY // 4)
    assert found.products.std() == pytest.approx(np.sqrt(d), rel=0.02)  # 11.3 at d = 128
    assert found.factor == pytest.approx(1 / np.sqrt(d))


def test_components_of_mean_1_have_another_variance():
    q, k, _ = random_qkv(20, 40, 128, seed=3)
    variance = attention_scores(q + 1, k + 1, scale=1).var()
    assert variance == pytest.approx(3 * 128, rel=0.1)  # each product has 1 + 1 + 1


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("factor", [1.0, 0.3, 0.01])
def test_gradients_equal_autograd(causal, factor):
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in random_qkv(2, 5, 7, seed=4))
    loss = torch.from_numpy(np.random.default_rng(6).standard_normal((2, 5, 7)))
    scores = factor * q @ k.transpose(-1, -2)
    if causal:
        scores = scores + torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1)
    scores.retain_grad()
    weights = torch.softmax(scores, dim=-1)
    (loss * (weights @ v)).sum().backward()
    arrays = [tensor.detach().numpy() for tensor in (weights, k, v, loss)]
    by_score = score_gradient(arrays[0], arrays[2], arrays[3])
    np.testing.assert_allclose(by_score, scores.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(query_gradient(by_score, arrays[1], factor), q.grad.numpy(), atol=1e-12)
    rows = measure_rows(*arrays, factor)
    np.testing.assert_allclose(rows.query_gradient, q.grad.norm(dim=-1).ravel(), atol=1e-12)
    np.testing.assert_allclose(rows.score_gradient, scores.grad.norm(dim=-1).ravel(), atol=1e-13)
    np.testing.assert_allclose(rows.maxima, weights.detach().amax(dim=-1).ravel())
    np.testing.assert_array_equal(rows.strongest, weights.argmax(dim=-1).ravel())


def test_the_gradient_vanishes_as_scores_grow_without_bound():
    q, k, v = random_qkv(1, 6, 16, seed=7)
    loss = np.ones_like(v)
    lengths = [measure_rows(softmax(f * q @ k.swapaxes(-1, -2)), k, v, loss, f).query_gradient for f in (1, 100, 1e4)]
    assert (lengths[2] < 1e-12).all() and lengths[0].min() > 1e-3


# (tokens, row maxima > 0.9, > 0.99, mean gradient with the factor and without, median), all at d = 128
KNOWN = [
    (6, 0.76, 0.56, (3.9, 10.4), (3.6, 0.56)),
    (64, 0.58, 0.33, (2.0, 17.7), (1.9, 5.6)),
    (256, None, None, (1.1, 20.3), (1.05, 7.7)),
    (1024, 0.41, 0.20, None, None),
]


@pytest.mark.parametrize(("n_tokens", "above_90", "above_99", "means", "medians"), KNOWN)
def test_known_numbers_at_128_come_out(n_tokens, above_90, above_99, means, medians):
    found = random_scaling(n_tokens, 128, seed=8, n_rows=MANY if n_tokens < 100 else 8192)
    sides = (found.scaled, found.unscaled)
    if above_90 is not None:
        assert found.unscaled.above(0.9) == pytest.approx(above_90, abs=0.05)
        assert found.unscaled.above(0.99) == pytest.approx(above_99, abs=0.04)
    assert found.scaled.above(0.9) < 0.01
    if means is not None:
        np.testing.assert_allclose([side.query_gradient.mean() for side in sides], means, rtol=0.06)
        scaled, unscaled = (np.median(side.query_gradient) for side in sides)
        assert scaled == pytest.approx(medians[0], rel=0.03)
        assert unscaled == pytest.approx(medians[1], rel=0.35)  # broadly spread: a small sample leaves it open


@pytest.mark.parametrize(
    ("n_tokens", "nothing", "tenfold"), [(6, 0.47, 0.10), (64, 0.22, None), (256, None, 0.47), (1024, 0.06, None)]
)
def test_the_gradient_becomes_erratic(n_tokens, nothing, tenfold):
    found = random_scaling(n_tokens, 128, seed=9, n_rows=MANY if n_tokens < 100 else 8192)
    if nothing is not None:  # of the scores' gradient
        usual = np.median(found.scaled.score_gradient)
        assert (found.unscaled.score_gradient < 0.01 * usual).mean() == pytest.approx(nothing, abs=0.03)
    if tenfold is not None:
        assert found.tenfold(found.unscaled) == pytest.approx(tenfold, abs=0.04)
    assert found.nothing(found.unscaled) > 0.03
    assert found.nothing(found.scaled) == found.tenfold(found.scaled) == 0


def test_shares_count_what_they_say():
    def rows(lengths):
        return Rows(np.array([0.5, 0.95, 0.995]), np.zeros(3, np.int64), np.zeros(3), np.array(lengths))

    found = Scaling(np.zeros(9), 0.5, rows([1.0, 2.0, 4.0]), rows([0.01, 30.0, 19.0]))
    assert (found.nothing(found.unscaled), found.tenfold(found.unscaled)) == pytest.approx((1 / 3, 1 / 3))
    assert (found.scaled.above(0.9), found.scaled.above(0.99)) == pytest.approx((2 / 3, 1 / 3))
    np.testing.assert_allclose(found.relative(found.unscaled), [0.005, 15, 9.5])


def test_curves_are_the_shares_of_each_shape():
    shapes = ((4, 1), (4, 64), (32, 64))
    curves = scaling_curves(shapes, seed=3, n_rows=500)
    assert curves.shapes == shapes
    for place, (n_tokens, d) in enumerate(shapes):
        one = random_scaling(n_tokens, d, 3, n_rows=500)
        for side, rows in enumerate((one.scaled, one.unscaled)):
            seen = [curves.above_90, curves.above_99, curves.nothing, curves.tenfold]
            expected = [rows.above(0.9), rows.above(0.99), one.nothing(rows), one.tenfold(rows)]
            assert [measure[side, place] for measure in seen] == expected
    np.testing.assert_array_equal(curves.above_90[0, 0], curves.above_90[1, 0])  # at d = 1 the factor is 1


def test_rows_of_a_head_are_those_of_its_trace():
    trace = made_trace({3: made_layer(np.random.default_rng(1), 2, causal_rule(6, 6))})
    found = head_scaling(trace.head(3, 1))
    q, k, v = (array.astype(np.float64) for array in trace.qkv(3, 1))
    seen = np.tri(6, dtype=bool)
    np.testing.assert_allclose(found.products, (q @ k.T)[seen])
    loss = np.random.default_rng([0, 1]).standard_normal(v.shape)
    for factor, rows in ((trace.scale(3), found.scaled), (1.0, found.unscaled)):
        weights = softmax(attention_scores(q, k, scale=factor, causal=True))
        expected = measure_rows(weights, k, v, loss, factor)
        np.testing.assert_allclose(rows.maxima, expected.maxima[1:], rtol=1e-5)  # row 0 has no choice
        np.testing.assert_allclose(rows.query_gradient, expected.query_gradient[1:], rtol=1e-4, atol=1e-6)


def test_a_soft_cap_and_a_text_without_a_choice_are_refused():
    capped = made_layer(np.random.default_rng(1), 1, causal_rule(4, 4), softcap=5.0)
    with pytest.raises(ValueError, match="soft-cap"):
        head_scaling(made_trace({0: capped}).head(0, 0))
    with pytest.raises(ValueError, match="type a longer text"):
        head_scaling(made_trace({0: made_layer(np.random.default_rng(1), 1, full_mask(1, 1))}).head(0, 0))


@pytest.mark.parametrize(("n_tokens", "d", "sentence"), [(1, 8, "at least 2 tokens"), (4, 0, "1 component")])
def test_refuses_what_has_no_rows(n_tokens, d, sentence):
    with pytest.raises(ValueError, match=sentence):
        random_scaling(n_tokens, d)


def test_density_refuses_no_components():
    with pytest.raises(ValueError, match="d of at least 1"):
        product_density(1.0, 0)


def test_spread_within_rows_is_the_length_of_q_not_sqrt_d():
    q, k, _ = random_qkv(1, 1, 64, seed=3)
    keys = np.random.default_rng(4).standard_normal((20_000, 64))
    spread = row_spread(attention_scores(3 * q[0], keys, scale=1))
    np.testing.assert_allclose(spread, 3 * np.linalg.norm(q[0]), rtol=0.03)
