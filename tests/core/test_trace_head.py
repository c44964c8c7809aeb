"""The one view of a head says what the trace says of it, and refuses places that aren't there."""

from typing import Any

import numpy as np
import pytest

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.trace.records import LayerMaps
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from tests.core.made_traces import made_layer, made_trace, random_trace

UNSCALED = Switches(scaled=False, causal=False)
ASKED = [
    {},
    {"queries": slice(2, 5)},
    {"keys": slice(1, 7, 2)},
    {"queries": slice(None, None, 3), "keys": slice(0, 4)},
    {"switches": UNSCALED},
    {"queries": slice(3, 4), "switches": Switches(forbid={(1, 2, 3, 1)})},
]


def finished_trace() -> Trace:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3)).astype(np.float32)
    return made_trace({4: LayerMaps(weights, full_mask(3, 3))})


def two_part_trace() -> Trace:
    rng = np.random.default_rng(0)
    records = {"decoder": {0: made_layer(rng, 2, causal_rule(3, 3))}, "cross": {0: made_layer(rng, 2, full_mask(3, 5))}}
    trace = made_trace(records["cross"], part="cross")
    keys = trace.tokens
    sides = {"decoder": (keys[:3], keys[:3]), "cross": (keys[:3], keys)}
    return Trace("", trace.model, records, sides)


@pytest.mark.parametrize("asked", ASKED)
def test_arrays_are_those_of_the_trace(asked: dict[str, Any]) -> None:
    trace = random_trace(9)
    head = trace.head(1, 2, switches=asked.get("switches")).tile(asked.get("queries"), asked.get("keys"))
    for name in ("weights", "scores", "allowed"):
        np.testing.assert_array_equal(getattr(head, name), getattr(trace, name)(1, 2, **asked))
    assert [len(side) for side in head.tokens] == list(head.weights.shape)
    assert head.tokens[0] == trace.tokens[asked.get("queries") or slice(None)]
    assert head.tokens[1] == trace.tokens[asked.get("keys") or slice(None)]


def test_what_the_layer_says_goes_with_the_head() -> None:
    trace = random_trace(5)
    head = trace.head(1, 2)
    assert (head.name, head.part, head.finished) == ("L1 H2", "decoder", False)
    assert head.record is trace.records["decoder"][1] and head.scale == trace.scale(1)
    for ours, theirs in zip(head.qkv, trace.qkv(1, 2), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_rows_and_cells_count_in_the_whole_text() -> None:
    trace = random_trace(6)
    weights = trace.weights(0, 1)
    whole = trace.head(0, 1)
    tile = whole.tile(slice(2, 4), slice(1, 5))
    for query in range(6):
        np.testing.assert_allclose(whole.row(query), weights[query], rtol=1e-6)
        np.testing.assert_allclose(tile.row(query), weights[query, 1:5], rtol=1e-6)
        np.testing.assert_allclose([tile.cell(query, key) for key in range(6)], weights[query], rtol=1e-6)


def test_other_switches_act_on_the_same_q_and_k() -> None:
    trace = random_trace(6)
    head = trace.head(0, 1).tile(slice(0, 3))
    assert head.acting == trace.switches and head.under(UNSCALED).acting == UNSCALED
    np.testing.assert_array_equal(
        head.under(UNSCALED).weights, trace.weights(0, 1, queries=slice(0, 3), switches=UNSCALED)
    )
    np.testing.assert_array_equal(head.under(UNSCALED).under(None).weights, head.weights)
    np.testing.assert_allclose(head.under(UNSCALED).row(1).sum(), 1, atol=1e-6)


@pytest.mark.parametrize("part", ["decoder", "cross"])
def test_a_part_has_tokens_of_its_own(part: str) -> None:
    trace = two_part_trace()
    head = trace.head(0, 1, part=part)
    np.testing.assert_array_equal(head.weights, trace.weights(0, 1, part=part))
    assert head.tokens == trace.tokens_of(part)
    assert head.cell(2, len(head.tokens[1]) - 1) == pytest.approx(head.weights[2, -1], rel=1e-6)
    with pytest.raises(ValueError, match="part must be one of"):
        trace.head(0, 1)


def test_finished_maps_have_weights_alone() -> None:
    head = finished_trace().head(4, 1)
    assert head.finished and head.allowed.all()
    np.testing.assert_allclose(head.row(2).sum(), 1, atol=1e-6)
    for ask in (lambda: head.scores, lambda: head.qkv, lambda: head.scale, lambda: head.under(UNSCALED).weights):
        with pytest.raises(ValueError, match="finished"):
            ask()


@pytest.mark.parametrize(("layer", "number"), [(9, 0), (-1, 0), (0, 99), (0, -1), (0.5, 0), (0, True)])
def test_a_head_that_is_not_there_is_refused_as_by_the_trace(layer: Any, number: Any) -> None:
    trace = random_trace(4)
    with pytest.raises(ValueError) as by_trace:
        trace.weights(layer, number)
    with pytest.raises(ValueError) as by_head:
        trace.head(layer, number)
    assert str(by_head.value) == str(by_trace.value)


@pytest.mark.parametrize("place", [-1, 4, 99])
def test_a_row_or_cell_outside_of_the_text_is_refused(place: int) -> None:
    head = random_trace(4).head(0, 0)
    for ask in (lambda: head.row(place), lambda: head.cell(place, 0)):
        with pytest.raises(ValueError, match=rf"query must be from 0 to 3, got {place}"):
            ask()
    with pytest.raises(ValueError, match=rf"key must be from 0 to 3, got {place}"):
        head.cell(0, place)
    with pytest.raises(ValueError, match="query must be a whole number"):
        head.row(1.5)  # type: ignore[arg-type]
