"""Heads in order: patterns beside a plain loop, measures beside the survey, and heads known to come first."""

import numpy as np
import pytest

from attnviz.core.attention.masks import causal_rule
from attnviz.core.heads.at_a_glance import strongest, survey
from attnviz.core.heads.battery import BatteryScores, known_for, stands_out
from attnviz.core.heads.scored_text import SORTS, score_pattern, score_text
from attnviz.core.trace.records import LayerMaps
from attnviz.core.trace.switches import Switches
from tests.core.made_traces import made_tokens, made_trace, random_trace, random_weights

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


def test_counts_say_how_many_positions_are_behind_a_score(trace):
    assert score_pattern(trace, "previous").n.tolist() == [[5] * 3] * 3
    assert score_pattern(trace, "induction").n.tolist() == [[3] * 3] * 3
    assert score_pattern(trace, "brackets").n.tolist() == [[0] * 3] * 3


def test_long_texts_are_scored_in_blocks_and_on_spaced_rows(trace, monkeypatch):
    whole = score_pattern(trace, "previous").scores
    spaced = score_pattern(trace, "previous", max_rows=3)
    weights = trace.weights(1, 2)
    assert spaced.scores[1, 2] == pytest.approx(np.mean([weights[3, 2], weights[6, 5]]))  # row 0 never counts
    assert spaced.n[1, 2] == 2
    monkeypatch.setattr("attnviz.core.trace.row_picks.BLOCK_CELLS", 3 * 7 * 2)  # two rows at a time
    np.testing.assert_allclose(score_pattern(trace, "previous").scores, whole, atol=1e-6)


def test_a_forbidden_look_is_no_target():
    switches = Switches(forbid=frozenset({(0, 1, 4, 3)}))
    n = score_pattern(random_trace(len(IDS), tokens=made_tokens(IDS), switches=switches), "previous").n
    assert n.tolist() == [[5, 4, 5], [5, 5, 5]]


def test_rows_that_are_not_numbers_do_not_count():
    weights = random_weights(np.random.default_rng(0), 2, 6, 6).astype(np.float32)
    weights[1, 4] = np.nan
    found = score_pattern(made_trace({0: LayerMaps(weights, causal_rule(6, 6))}), "previous")
    assert found.n.tolist() == [[4, 3]]
    assert found.scores[0, 1] == pytest.approx(np.mean([weights[1, i, i - 1] for i in (2, 3, 5)]))


def test_patterns_of_cross_attention_are_refused():
    with pytest.raises(ValueError, match="cross-attention"):
        score_pattern(random_trace(4), "previous", part="cross")


def test_a_score_stands_out_from_a_share_of_the_way_between_equal_shares_and_all():
    """For "induction" a quarter of the way: from 0.2, that is 0.4."""
    scores = np.array([[[0.39, 0.41, np.nan]], [[0.9, 0.9, 0.9]]])  # patterns, layers, heads
    made = BatteryScores(("induction", "own"), (4,), scores, np.array([[0.2], [np.nan]]), np.array([[9], [0]]))
    assert stands_out(made, "induction").tolist() == [[False, True, False]]
    assert stands_out(made, "own").tolist() == [[False] * 3]  # no position is behind it
    assert [entry.pattern for entry in known_for(made, 4, 1)] == ["induction"]
    with pytest.raises(ValueError, match="got x"):
        stands_out(made, "x")


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
