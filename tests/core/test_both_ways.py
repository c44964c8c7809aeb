"""One text continued twice: what is said about the two runs, against made-up steps whose answer is known by hand."""

import numpy as np
import pytest

from attnviz.core.generation.both_ways import BothWays, both_ways
from attnviz.core.generation.step import Step
from attnviz.core.trace.records import Token


def step(index: int, id: int, seconds: float, logits: list[float]) -> Step:
    """Return a step whose trace nobody may ask for."""
    token = Token(index, id, f"w{id}", f"w{id}", 0, 0, False)
    return Step(token, [], 1, 0, 1.0, np.array(logits, np.float32), seconds, 0, make_trace=pytest.fail)


CACHED = [step(7, 4, 8.0, [0, 1]), step(8, 5, 1.0, [2, 3]), step(9, 6, 2.0, [4, 5]), step(10, 4, 30.0, [6, 7])]
PLAIN = [step(7, 4, 9.0, [0, 1]), step(8, 5, 10.0, [2, 3.5]), step(9, 6, 11.0, [3.25, 5]), step(10, 4, 12.0, [6, 7])]


def test_steps_are_set_side_by_side() -> None:
    found = both_ways(CACHED, PLAIN)
    assert found == BothWays((7, 8, 9, 10), (8.0, 1.0, 2.0, 30.0), (9.0, 10.0, 11.0, 12.0), True, 0.75)


def test_the_ratio_is_that_of_medians_without_the_step_that_reads_the_text() -> None:
    assert both_ways(CACHED, PLAIN).ratio == 11 / 2
    assert both_ways(CACHED[:1], PLAIN[:1]).ratio == 9 / 8  # nothing else is there


@pytest.mark.parametrize("at", range(4))
def test_one_other_token_is_told(at: int) -> None:
    plain = [step(s.token.index, s.token.id + (i == at), s.seconds, s.logits) for i, s in enumerate(PLAIN)]
    assert not both_ways(CACHED, plain).same_tokens
    assert both_ways(CACHED, plain).largest_gap == both_ways(PLAIN, CACHED).largest_gap == 0.75


@pytest.mark.parametrize(("n_cached", "n_plain"), [(0, 0), (2, 3), (4, 1)])
def test_refuses_runs_that_cannot_be_set_side_by_side(n_cached: int, n_plain: int) -> None:
    with pytest.raises(ValueError, match=f"as many steps .* got {n_cached} and {n_plain}"):
        both_ways(CACHED[:n_cached], PLAIN[:n_plain])
