"""Which weights are drawn as lines, and how much weight that leaves out, against a plain loop."""

import numpy as np
import pytest

from attnviz.core.heads.strong_lines import LEAST, shares_left_out, worth_a_line
from tests.browser.apps.made_up import made_up_weights


def counted(rows: np.ndarray, first: int | None) -> tuple[float, float]:
    thin = sink = total = 0.0
    for row in rows.tolist():
        for key, weight in enumerate(row):
            total += weight
            if weight < LEAST:
                thin += weight
            elif key == first:
                sink += weight
    return thin / total, sink / total


@pytest.mark.parametrize("first", [0, None])
def test_shares_are_those_of_a_plain_loop(first: int | None) -> None:
    weights = made_up_weights(4, 23, causal=True)
    thin, sink = shares_left_out(weights, first=first)
    expected = np.array([counted(rows, first) for rows in weights])
    np.testing.assert_allclose(np.stack([thin, sink], axis=1), expected, rtol=1e-9)
    assert (thin + sink <= 1 + 1e-9).all() and (thin > 0).any()
    assert (sink == 0).all() == (first is None)


def test_a_weight_of_exactly_the_least_has_a_line_in_float32_too() -> None:
    assert worth_a_line(np.float32([LEAST, LEAST - 0.001])).tolist() == [True, False]


def test_a_head_without_weight_leaves_nothing_out() -> None:
    thin, sink = shares_left_out(np.zeros((1, 2, 2)))
    assert (thin.tolist(), sink.tolist()) == ([0.0], [0.0])
