"""Heads in order: patterns beside a plain loop, measures beside the survey, and heads known to come first."""

import numpy as np
import pytest

from attnviz.core.heads import strongest, survey
from attnviz.core.text_scores import SORTS, score_text
from tests.core.made_traces import made_tokens, random_trace

IDS = [9, 1, 2, 3, 1, 2, 3]


@pytest.fixture(scope="module")
def trace():
    return random_trace(len(IDS), n_layers=3, tokens=made_tokens(IDS))


def test_previous_and_induction_beside_a_plain_loop(trace):
    previous, induction = (score_text(trace, sort) for sort in ("previous", "induction"))
    for layer in range(3):
        for head in range(3):
            weights = trace.weights(layer, head)
            looks = [weights[i, i - 1] for i in range(2, len(IDS))]  # row 1 has the first token there
            assert previous[layer, head] == pytest.approx(np.mean(looks))
            looks = [weights[4, 2], weights[5, 3], weights[6, 4]]  # what came after the same token
            assert induction[layer, head] == pytest.approx(np.mean(looks))


@pytest.mark.parametrize("sort", ["entropy", "distance", "largest"])
def test_measures_are_those_of_the_survey(trace, sort):
    np.testing.assert_array_equal(score_text(trace, sort), survey(trace).measures[sort])


def test_a_text_without_occasion_gives_no_score():
    trace = random_trace(5, tokens=made_tokens([1, 2, 3, 4, 5]))
    for sort in ("induction", "same", "brackets", "delimiters", "next"):
        assert np.isnan(score_text(trace, sort)).all(), sort
    assert all(score_text(trace, sort).shape == (2, 3) for sort in SORTS)


def test_unknown_sorts_are_named():
    with pytest.raises(ValueError, match="previous, next, own, induction.*got x"):
        score_text(random_trace(3), "x")


@pytest.mark.slow
def test_the_known_heads_of_smollm2_come_first(smollm2):
    """On words in no order, twice: L18 H6 continues the repetition, L16 H0 keeps to the token before."""
    words = "copper violin harbour mint ladder cloud spoon winter basket engine marble pencil"
    trace = smollm2.trace(f"{words} {words}")
    for sort, place in (("induction", (18, 6)), ("previous", (16, 0))):
        assert strongest(score_text(trace, sort), trace.layers)[0][:2] == place
