"""Attention rollout: the order of the product, closed forms, and a loop over paths."""

from itertools import pairwise, product

import numpy as np
import pytest

from attnviz.core.values.rollout import rollout


def random_layers(seed: int, n_layers: int = 3, n_heads: int = 2, n_tokens: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_tokens, 0.4), size=(n_layers, n_heads, n_tokens))


def test_it_sums_over_all_paths_from_the_end_to_the_input():
    layers = random_layers(0)
    steps = [0.5 * layer.mean(axis=0) + 0.5 * np.eye(4) for layer in layers]
    expected = np.zeros((4, 4))
    for path in product(range(4), repeat=4):  # token after layer 3, after layer 2, after layer 1, of the input
        share = 1.0
        for step, (above, below) in zip(reversed(steps), pairwise(path), strict=True):
            share *= step[above, below]
        expected[path[0], path[-1]] += share
    np.testing.assert_allclose(rollout(layers), expected, atol=1e-12)
    assert np.abs(rollout(layers) - rollout(layers[::-1])).max() > 0.01  # the order matters


def test_two_layers_by_hand():
    """Layer 1 copies token 0 into token 1, layer 2 token 1 into token 2: so a part of token 0 arrives at token 2."""
    first = [[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]]
    second = [[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]]
    found = rollout([[first], [second]])
    np.testing.assert_allclose(found, [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    backwards = rollout([[second], [first]])
    assert backwards[2, 0] == 0  # what came later can't be passed on


def test_layers_that_only_look_at_themselves_move_nothing():
    np.testing.assert_array_equal(rollout(np.tile(np.eye(3), (5, 2, 1, 1))), np.eye(3))


@pytest.mark.parametrize("n_layers", [1, 2, 10])
def test_of_a_sink_the_own_share_halves_with_each_layer(n_layers):
    sink = np.zeros((3, 3))
    sink[:, 0] = 1
    found = rollout([sink[None]] * n_layers)
    np.testing.assert_allclose(np.diag(found), [1, 0.5**n_layers, 0.5**n_layers])
    np.testing.assert_allclose(found[1:, 0], 1 - 0.5**n_layers)


def test_rows_that_a_learned_sink_left_short_sum_to_1_again():
    found = rollout(0.5 * random_layers(1))
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_nothing_is_kept_or_everything():
    layers = random_layers(2)
    maps = layers.mean(axis=1)
    np.testing.assert_allclose(rollout(layers, kept=0), maps[2] @ maps[1] @ maps[0])
    np.testing.assert_array_equal(rollout(layers, kept=1), np.eye(4))


def test_layers_are_taken_one_by_one():
    asked = []

    def layers():
        for number, layer in enumerate(random_layers(3)):
            asked.append(number)
            yield layer

    np.testing.assert_allclose(rollout(layers()), rollout(random_layers(3)))
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(
    ("layers", "kept", "message"),
    [
        ([], 0.5, "no layer"),
        ([np.eye(2)], 0.5, "expected shape|expected weights"),
        ([np.ones((1, 2, 3))], 0.5, "expected weights"),
        ([np.eye(2)[None], np.eye(3)[None]], 0.5, "same size"),
        ([np.eye(2)[None]], 1.5, "kept must be"),
    ],
)
def test_what_does_not_fit_is_refused(layers, kept, message):
    with pytest.raises(ValueError, match=message):
        rollout(layers, kept=kept)


def test_of_a_real_encoder_it_is_the_product_of_its_mean_maps(minilm):
    trace = minilm.trace("The cat sat on the mat")
    expected = np.eye(len(trace.tokens))
    for layer in range(6):
        mean = sum(trace.weights(layer, head).astype(np.float64) for head in range(12)) / 12
        expected = (0.5 * mean + 0.5 * np.eye(len(mean))) @ expected
    np.testing.assert_allclose(rollout(trace.layer_weights(layer) for layer in range(6)), expected, atol=1e-6)


def test_in_a_decoder_everything_ends_on_the_first_token(smollm2):
    trace = smollm2.trace("Mary bought a car, although she could not drive it")
    assert rollout(trace.layer_weights(layer) for layer in trace.layers)[-1, 0] > 0.99
