"""Turns of q and k by position: against transformers, and what follows from them for a score."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from attnviz.core.attention.rotary import rotary, rotate, score_by_distance, turn_back


@pytest.fixture
def numbers():
    """Return a function from a shape to random numbers."""
    rng = np.random.default_rng(0)
    return lambda *shape: (3 * rng.normal(size=shape)).astype(np.float32)


@pytest.mark.parametrize("theta", [10000.0, 100000.0])
def test_turns_are_those_of_transformers(theta, numbers):
    n_tokens, d_head = 3000, 64
    rope = {"rope_type": "default", "rope_theta": theta}
    settings = {"hidden_size": 2 * d_head, "num_attention_heads": 2, "rope_parameters": rope}
    cos, sin = LlamaRotaryEmbedding(LlamaConfig(**settings))(torch.zeros(1), torch.arange(n_tokens)[None])
    q, k = numbers(2, n_tokens, d_head), numbers(1, n_tokens, d_head)
    expected = apply_rotary_pos_emb(torch.from_numpy(q)[None], torch.from_numpy(k)[None], cos, sin)
    turns = rotary(n_tokens, d_head, theta)
    for x, turned in zip((q, k), expected, strict=True):
        # an angle of 3000 is known to 3000 * 2^-24 in float32, and x is up to 14
        np.testing.assert_allclose(rotate(x, *turns), turned[0].numpy(), rtol=0, atol=5e-3)
        np.testing.assert_allclose(rotate(x, *turns)[:, :50], turned[0, :, :50].numpy(), rtol=0, atol=1e-4)


def test_a_product_of_turned_vectors_depends_on_the_distance_alone(numbers):
    q, k = (np.repeat(numbers(1, 1, 16), 40, axis=1) for _ in range(2))
    turns = rotary(40, 16, 100.0)
    products = rotate(q, *turns)[0] @ rotate(k, *turns)[0].T
    for distance in (-5, 0, 7):
        np.testing.assert_allclose(np.diag(products, distance), products.diagonal(distance)[0], rtol=0, atol=1e-3)
    assert np.ptp(products) > 10


def test_turning_back_undoes_the_turn_and_keeps_lengths(numbers):
    q = numbers(2, 30, 16)
    turned = rotate(q, *rotary(30, 16, 10000.0))
    np.testing.assert_allclose(turn_back(turned, 10000.0), q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(q, axis=-1), rtol=1e-5)
    assert np.abs(turned - q)[:, 1:].max() > 1


def test_scores_by_distance_are_those_of_tokens_so_far_apart(numbers):
    q, k, theta, n = numbers(3, 16), numbers(4, 16), 100.0, 12
    turns = rotary(n, 16, theta)
    found = score_by_distance(q, k, n, theta)
    assert found.shape == (n, 3, 4)
    for i in range(3):
        for j in range(4):
            at = [rotate(np.repeat(x[None], n, axis=0), *turns) for x in (q[i], k[j])]  # the same vector everywhere
            for apart in (0, 1, 11):
                place = n - 1 - apart  # of the key; the query stands at n - 1
                np.testing.assert_allclose(found[apart, i, j], at[0][n - 1] @ at[1][place], rtol=1e-4, atol=1e-4)


def test_the_curve_passes_through_the_models_own_scores(smollm2):
    theta = 100000.0  # of SmolLM2
    trace = smollm2.trace("Mary bought a car, although she could not drive it")
    for layer, head in ((13, 8), (16, 0)):
        q, k, _ = trace.qkv(layer, head)
        curves = score_by_distance(turn_back(q, theta), turn_back(k, theta), len(q), theta) * trace.scale(layer)
        scores = trace.scores(layer, head)
        for query, key in zip(*np.tril_indices(len(q)), strict=True):
            np.testing.assert_allclose(curves[query - key, query, key], scores[query, key], rtol=0, atol=2e-4)


def test_an_odd_width_has_no_pairs():
    with pytest.raises(ValueError, match="even d_head"):
        turn_back(np.ones((2, 3)), 100.0)
