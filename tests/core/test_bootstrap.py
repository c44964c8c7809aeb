import numpy as np
import pytest

from attnviz.core.pronouns.bootstrap import bootstrap_means, group_interval


def test_two_equal_groups_of_zeros_and_ones_follow_the_binomial():
    means = bootstrap_means([0, 0, 0, 1, 1, 1], list("aaabbb"), draws=20_000)
    found = [np.mean(means == value) for value in (0.0, 0.5, 1.0)]
    np.testing.assert_allclose(found, [0.25, 0.5, 0.25], atol=0.01)
    assert found[0] + found[1] + found[2] == pytest.approx(1)


def test_groups_of_one_have_the_standard_error_of_a_share():
    values = np.array([1] * 30 + [0] * 70)
    means = bootstrap_means(values, list(range(100)), draws=20_000)
    np.testing.assert_allclose([means.mean(), means.std()], [0.3, np.sqrt(0.3 * 0.7 / 100)], atol=2e-3)
    low, high = group_interval(values, list(range(100)), draws=20_000)
    np.testing.assert_allclose([low, high], [0.21, 0.39], atol=0.011)  # 0.3 - and + 1.96 standard errors


def test_draws_equal_a_plain_loop_over_whole_groups():
    rng = np.random.default_rng(3)
    values, groups = rng.normal(size=(23, 2, 3)), rng.integers(0, 6, 23).astype(str).tolist()
    names = sorted(set(groups))
    drawn = np.random.default_rng(9).multinomial(len(names), np.full(len(names), 1 / len(names)), size=50)
    expected = []
    for counts in drawn:
        resample = [
            values[i] for name, n in zip(names, counts, strict=True) for _ in range(n) for i in members(groups, name)
        ]
        expected.append(np.mean(resample, axis=0))
    np.testing.assert_allclose(bootstrap_means(values, groups, draws=50, seed=9), expected)


def members(groups, name):
    return [i for i, group in enumerate(groups) if group == name]


def test_items_that_are_alike_widen_the_interval():
    values = np.repeat([0, 1, 1, 0, 1, 1, 1, 0], 25)
    low, high = group_interval(values, np.repeat(range(8), 25).tolist())
    one_by_one = group_interval(values, list(range(200)))
    assert high - low > 3 * (one_by_one[1] - one_by_one[0])


def test_one_group_has_no_interval_and_no_item_is_an_error():
    low, high = group_interval(np.ones((4, 2)), ["a"] * 4)
    assert low.shape == (2,) and np.isnan([low, high]).all()
    with pytest.raises(ValueError, match="at least one item"):
        bootstrap_means([], [])
    with pytest.raises(ValueError, match="got 1 for 2"):
        group_interval([1, 2], ["a"])
