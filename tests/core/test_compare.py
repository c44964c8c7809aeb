"""Differences between traces, against one made by hand."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz import Switches
from attnviz.core.compare.agreement import largest_probability_difference, largest_weight_difference


@pytest.fixture(scope="module")
def engine():
    return attnviz.load("untrained")


def test_a_trace_equals_itself(engine):
    trace = engine.trace("one text")
    assert largest_weight_difference(trace, trace) == largest_probability_difference(trace, trace) == 0


def test_the_largest_difference_is_found_wherever_it_is(engine):
    one, other = engine.trace("one text"), engine.trace("one text", switches=Switches(forbid={(2, 1, 7, 3)}))
    expected = max(np.abs(one.layer_weights(layer) - other.layer_weights(layer)).max() for layer in one.layers)
    assert largest_weight_difference(one, other) == pytest.approx(expected) and expected > 0.01
    apart = np.abs(one.next_probabilities() - other.next_probabilities()).max()
    assert largest_probability_difference(one, other) == pytest.approx(apart)


def test_different_texts_and_vocabularies_are_refused(engine):
    one = engine.trace("one text")
    with pytest.raises(ValueError, match="same text"):
        largest_weight_difference(one, engine.trace("two text"))
    with pytest.raises(ValueError, match="vocabularies"):
        largest_probability_difference(one, replace(one, next_logits=one.next_logits[:9]))
