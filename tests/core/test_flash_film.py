"""A head of a trace, block by block: against the trace's own weights, and against plain loops over its mask."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.blockwise.grid import block_names, block_row, film_of, largest_difference, skipped_blocks
from tests.core.made_traces import made_layer, made_trace, random_trace, random_weights


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("block", [1, 3, 4, 16])
def test_each_row_ends_with_the_trace_s_output(causal, block):
    trace = random_trace(10, causal=causal)
    film = film_of(trace.head(1, 2), block=block)
    output = np.concatenate([block_row(film, i)[-1].output for i in range(film.shape[0])])
    expected = trace.weights(1, 2) @ trace.qkv(1, 2)[2]
    np.testing.assert_allclose(output, expected, atol=1e-6)
    assert largest_difference(film) < 1e-6
    without = replace(film, weights=lambda rows: 0 * film.weights(rows))
    np.testing.assert_allclose(largest_difference(without), np.abs(output).max(), rtol=1e-6)


def test_steps_are_numbered_by_their_place_in_the_whole_grid():
    film = film_of(random_trace(7).head(0, 0), block=3)
    steps = [step for i in range(3) for step in block_row(film, i)]
    assert [(step.i, step.j, step.queries.start, step.queries.stop, step.keys.start) for step in steps[3:6]] == [
        (1, 0, 3, 6, 0),
        (1, 1, 3, 6, 3),
        (1, 2, 3, 6, 6),
    ]
    assert [step.finished for step in steps] == [False, False, True] * 3
    assert steps[-1].queries == slice(6, 7)


@pytest.mark.parametrize("causal", [True, False])
def test_blocks_are_skipped_where_no_pair_is_allowed(causal):
    trace = random_trace(9, causal=causal)
    film = film_of(trace.head(0, 1), block=2)
    allowed, skipped = trace.allowed(0, 1), skipped_blocks(film)
    assert skipped.shape == film.shape == (5, 5)
    for i in range(5):
        for j in range(5):
            assert skipped[i, j] == (not allowed[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].any())
            assert block_row(film, i)[j].skipped == skipped[i, j]
    assert skipped.sum() == (10 if causal else 0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_bias_and_shared_keys_are_taken_over(shared):
    rng = np.random.default_rng(0)
    bias = rng.normal(size=(1 if shared else 4, 6, 6)).astype(np.float32)
    layer = made_layer(rng, 4, causal_rule(6, 6), kv_heads=2, bias=bias)
    trace = made_trace({0: layer})
    film = film_of(trace.head(0, 3), block=4)
    np.testing.assert_array_equal(film.k, layer.k[1])
    assert largest_difference(film) < 1e-6
    assert np.abs(block_row(film, 1)[-1].output - film_without_bias(layer)).max() > 1e-2


def film_without_bias(layer):
    plain = made_trace({0: made_layer(np.random.default_rng(1), 4, layer.mask, kv_heads=2)})
    film = film_of(plain.head(0, 3), block=4)
    return block_row(film, 1)[-1].output


@pytest.mark.parametrize(
    ("extras", "sentence"),
    [({"softcap": 5.0}, "layer 0 of this model has a soft-cap"), ({"sinks": np.zeros(2, np.float32)}, "has sinks")],
)
def test_what_changes_the_softmax_itself_is_refused(extras, sentence):
    trace = made_trace({0: made_layer(np.random.default_rng(0), 2, full_mask(3, 3), **extras)})
    with pytest.raises(ValueError, match=sentence):
        film_of(trace.head(0, 0), block=2)


def test_finished_maps_and_places_that_are_not_there_are_refused():
    from attnviz.core.trace.records import LayerMaps

    weights = random_weights(np.random.default_rng(0), 1, 3, 3).astype(np.float32)
    with pytest.raises(ValueError, match="only the finished weights"):
        film_of(made_trace({0: LayerMaps(weights, causal_rule(3, 3))}).head(0, 0), block=2)
    with pytest.raises(ValueError, match="a block of at least 1, got 0"):
        film_of(random_trace(3).head(0, 0), block=0)
    with pytest.raises(ValueError, match="rows 0 to 1, got 2"):
        block_row(film_of(random_trace(3).head(0, 0), block=2), 2)


def test_names_of_blocks_cover_every_token_once():
    assert block_names(6, 4) == ["0 to 3", "4 to 5"]
    assert block_names(3, 8) == ["0 to 2"]
