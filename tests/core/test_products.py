"""The products behind a score, a row on its way to weights, what a query fetches, and the cost of heads."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.products import fewest_products, row_in_steps
from attnviz.core.attention.split_heads import attention_cost, divisors, random_heads
from attnviz.core.attention.textbook import scaled_dot_product_attention, softmax
from attnviz.core.values.contributions import contributions, cosine, looks_elsewhere, size_shares

values = arrays(np.float64, st.integers(1, 7), elements=st.integers(-9, 9))


@given(values, st.sampled_from([0.5, 0.9, 1.0]))
def test_no_smaller_set_of_products_reaches_the_share(products, share):
    few = fewest_products(products, share)
    total = products.sum()
    if total == 0:
        assert len(few) == 0
        return
    goal = share * abs(total) - 1e-6 * abs(total)
    assert products[few].sum() * np.sign(total) >= goal
    smaller = itertools.combinations(products, len(few) - 1)
    assert not any(sum(chosen) * np.sign(total) >= goal for chosen in smaller)


def test_five_products_make_nine_tenths_of_the_landing_score(smollm2):
    trace = smollm2.trace("Mary bought a car, although she could not drive it")
    q, k, _ = trace.qkv(13, 8)
    products = q[10] * k[3]
    assert products.sum() == pytest.approx(48.7, abs=0.1)
    assert len(fewest_products(products)) == 5


@given(arrays(np.float64, st.integers(1, 9), elements=st.floats(-50, 50)))
def test_a_row_in_steps_is_the_softmax(scores):
    row = row_in_steps(scores)
    assert row.exps.max() == 1
    np.testing.assert_allclose(row.exps / row.total, row.weights, rtol=1e-12)
    np.testing.assert_allclose(row.weights, np.exp(scores) / np.exp(scores).sum(), rtol=1e-9)


def test_contributions_add_up_to_the_output():
    q, k, v = random_qkv(6, 8, seed=1)
    output, weights = scaled_dot_product_attention(q, k, v, causal=True)
    parts = contributions(weights[4], v)
    np.testing.assert_allclose(parts.sum(axis=0), output[4], rtol=1e-12)
    np.testing.assert_array_equal(parts[5], 0)  # masked
    shares = size_shares(parts)
    np.testing.assert_allclose(shares, [np.sqrt((part**2).sum()) for part in parts] / sum(map(np.linalg.norm, parts)))
    np.testing.assert_array_equal(size_shares(np.zeros((2, 3))), 0)
    with pytest.raises(ValueError, match="one weight for each of 6 values"):
        contributions(weights[4, :5], v)


def test_cosine_is_that_of_the_angle():
    angles = np.array([0.0, 1.0, 2.0, 3.1])
    vectors = np.stack([5 * np.cos(angles), 5 * np.sin(angles)], axis=1)
    np.testing.assert_allclose(cosine(vectors, [2.0, 0.0]), np.cos(angles), atol=1e-12)


def test_a_head_that_looks_elsewhere_leaves_the_first_key_and_the_favourite_aside():
    rows = [[0.1, 0.7, 0.2], [0.95, 0.03, 0.02], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]]
    assert looks_elsewhere(rows, 0) == (3, 2)
    assert looks_elsewhere(rows, 3) == (2, 1)
    assert looks_elsewhere([[1.0], [1.0]], 0) == (1, 0)  # one key: nothing can be left aside
    assert looks_elsewhere([[0.5, 0.5], [0.1, 0.9]], 0) == (1, 1)
    with pytest.raises(ValueError, match="two heads"):
        looks_elsewhere([[1.0]], 0)


def test_random_numbers_have_mean_0_and_variance_1_and_come_again():
    q, k, v = random_qkv(400, 64, seed=3)
    for x in (q, k, v):
        assert abs(x.mean()) < 0.03 and x.var() == pytest.approx(1, abs=0.03)
    assert abs((q * k).mean()) < 0.03
    np.testing.assert_array_equal(random_qkv(400, 64, seed=3)[1], k)
    assert not np.array_equal(random_qkv(400, 64, seed=4)[1], k)
    with pytest.raises(ValueError, match="at least 1 token"):
        random_qkv(0, 4)


@pytest.mark.parametrize(("n_tokens", "width", "n_heads"), [(6, 64, 4), (5, 8, 8), (7, 12, 1)])
def test_cost_counts_every_multiplication(n_tokens, width, n_heads):
    cost = attention_cost(n_tokens, width, n_heads)
    d_head, count = width // n_heads, 0
    for _ in range(n_heads):
        for _ in itertools.product(range(n_tokens), range(n_tokens)):
            count += 2 * d_head  # a score, and weight times value
    assert cost.attention == count == attention_cost(n_tokens, width, 1).attention
    assert cost.projections == 4 * n_tokens * width * width
    assert (cost.score_matrices, cost.scores) == (n_heads, n_heads * n_tokens**2)


def test_cost_of_heads_that_do_not_fit():
    with pytest.raises(ValueError, match="divides 10"):
        attention_cost(3, 10, 4)


def test_divisors_and_random_heads_fit_each_other():
    assert divisors(64) == [1, 2, 4, 8, 16, 32, 64] and divisors(7) == [1, 7] and divisors(1024)[-1] == 64
    for n_heads in divisors(24):
        output, weights = random_heads(5, 24, n_heads, seed=2)
        assert output.shape == (5, 24) and weights.shape == (n_heads, 5, 5)
        np.testing.assert_allclose(weights.sum(axis=-1), 1)
        assert not weights[:, 0, 1:].any()
    first = random_heads(5, 24, 2, seed=2)
    np.testing.assert_array_equal(random_heads(5, 24, 2, seed=2)[1], first[1])


def test_random_heads_have_scores_of_variance_1():
    _, weights = random_heads(64, 64, 1, seed=0)
    scores = np.log(weights[0][np.tril_indices(64)])
    rows = [np.log(weights[0, i, : i + 1]) for i in range(32, 64)]
    assert np.mean([row.var() for row in rows]) == pytest.approx(1, abs=0.3)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(softmax(rows[0]), weights[0, 32, :33], rtol=1e-6)
