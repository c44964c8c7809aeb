"""Traces from arrays that somebody else captured, beside the traces of the engines and a plain loop."""

import dataclasses
import math

import numpy as np
import pytest

import attnviz
from attnviz.core.attention.textbook import softmax
from attnviz.core.heads.at_a_glance import survey
from attnviz.core.heads.in_words import here
from attnviz.core.trace.records import Token
from attnviz.core.trace.trace import Trace
from attnviz.figures import head_map
from tests.core.made_traces import random_weights

WORDS = "w1 w2 w3 w1 w2 w3 w4"
RNG = np.random.default_rng(0)


def arrays(n_layers=2, heads=4, kv_heads=2, n=5, d=8):
    """Return random q, k, v of the shapes that a captured model has."""
    q = RNG.normal(size=(n_layers, heads, n, d))
    k, v = RNG.normal(size=(2, n_layers, kv_heads, n, d))
    return q, k, v


def loop(q, k, scale, causal):
    """Return (queries, keys) weights of one head, cell by cell."""
    rows = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        seen = range(i + 1 if causal else len(k))
        shares = [math.exp(scale * sum(a * b for a, b in zip(q[i], k[j], strict=True))) for j in seen]
        rows[i, : len(shares)] = np.array(shares) / sum(shares)
    return rows


def labels(trace):
    return [token.label for token in trace.tokens]


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])  # llama has two heads for each key/value head
def test_q_k_and_v_of_a_model_give_its_weights_again(tiny_folder, name):
    own = attnviz.load(str(tiny_folder(name))).trace(WORDS)
    records = own.records[own.parts[0]]
    q, k, v = ([getattr(records[layer], x) for layer in own.layers] for x in "qkv")
    again = Trace.from_arrays(labels(own), q, k, v, causal=own.causal(0))
    assert again.layers == own.layers and again.heads(0) == own.heads(0) and again.causal(1) == own.causal(1)
    for layer in own.layers:
        for head in range(own.heads(layer)):
            np.testing.assert_allclose(again.weights(layer, head), own.weights(layer, head), atol=1e-6)
            np.testing.assert_array_equal(again.scores(layer, head), own.scores(layer, head))
            np.testing.assert_array_equal(again.allowed(layer, head), own.allowed(layer, head))
            for ours, theirs in zip(again.qkv(layer, head), own.qkv(layer, head), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_weights_of_a_model_come_back(tiny_folder, name):
    own = attnviz.load(str(tiny_folder(name))).trace(WORDS)
    weights = np.stack([own.layer_weights(layer) for layer in own.layers])
    again = Trace.from_arrays(labels(own), weights=weights)
    assert again.causal(0) == own.causal(0)
    np.testing.assert_array_equal(again.weights(1, 2), own.weights(1, 2))
    np.testing.assert_array_equal(again.allowed(1, 2), own.allowed(1, 2))
    with pytest.raises(ValueError, match="finished weights"):
        again.scores(1, 2)
    with pytest.raises(ValueError, match="finished weights"):
        again.weights(1, 2, switches=attnviz.Switches(scaled=False))


@pytest.mark.parametrize("causal", [True, False, None])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_grouped_heads_beside_a_plain_loop(causal, scale):
    q, k, v = arrays()
    trace = Trace.from_arrays("abcde", q, k, v, scale=scale, causal=causal)
    assert trace.causal(0) == (causal is not False)
    for head in range(4):
        expected = loop(q[1, head], k[1, head // 2], scale or 1 / math.sqrt(8), causal is not False)
        np.testing.assert_allclose(trace.weights(1, head), expected, atol=1e-6)


def test_switches_act_on_captured_arrays():
    q, k, v = arrays()
    trace = Trace.from_arrays("abcde", q, k, v)
    off = attnviz.Switches(causal=False, scaled=False)
    np.testing.assert_allclose(trace.weights(0, 3, switches=off), softmax(q[0, 3] @ k[0, 1].T), atol=1e-6)


def test_a_batch_axis_of_one_is_dropped():
    q, k, v = arrays()
    plain = Trace.from_arrays("abcde", q, k, v)
    batched = Trace.from_arrays("abcde", *([x[None] for x in y] for y in (q, k, v)))
    np.testing.assert_array_equal(batched.weights(1, 3), plain.weights(1, 3))
    with pytest.raises(ValueError, match=r"must be \(heads, tokens, d_head\), got \(2, 4, 5, 8\)"):
        Trace.from_arrays("abcde", *([np.stack([x, x]) for x in y] for y in (q, k, v)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_tensors_are_taken_as_hooks_leave_them(dtype):
    import torch

    q, k, v = (torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in arrays())
    trace = Trace.from_arrays("abcde", q * 1, k * 1, v * 1)  # on a graph
    expected = Trace.from_arrays("abcde", *(x.detach().float().numpy() for x in (q, k, v)))
    np.testing.assert_array_equal(trace.weights(1, 3), expected.weights(1, 3))
    maps = torch.softmax(q @ q.transpose(-1, -2), -1)
    assert not Trace.from_arrays("abcde", weights=maps.float()).causal(0)


def test_a_mapping_may_leave_layers_out():
    weights = random_weights(RNG, 3, 5, 5).astype(np.float32)
    trace = Trace.from_arrays("abcde", weights={11: weights, 3: weights[:2, :, :]})
    assert trace.layers == (3, 11) and (trace.heads(3), trace.heads(11)) == (2, 3) and trace.model.n_layers == 12
    np.testing.assert_array_equal(trace.weights(11, 2), weights[2])
    with pytest.raises(ValueError, match="layer 4 has no attention map; layers with one: 3, 11"):
        trace.weights(4, 0)
    found = survey(trace)
    assert np.isnan(found.measures["entropy"][0, 2]) and np.isfinite(found.measures["entropy"][1, 2])


def test_arrays_are_copied_and_read_only():
    weights = random_weights(RNG, 1, 1, 3, 3).astype(np.float32)
    trace = Trace.from_arrays("abc", weights=weights)
    before = trace.weights(0, 0).copy()
    weights[:] = 0
    np.testing.assert_array_equal(trace.weights(0, 0), before)
    with pytest.raises(ValueError, match="read-only"):
        trace.weights(0, 0)[0, 0] = 1


def test_causal_is_read_from_weights_or_said():
    causal = random_weights(RNG, 1, 2, 4, 4)
    ahead = random_weights(RNG, 1, 2, 4, 4, causal=False)
    assert Trace.from_arrays("abcd", weights=causal).allowed(0, 0).sum() == 10
    assert Trace.from_arrays("abcd", weights=causal, causal=False).allowed(0, 0).all()
    assert Trace.from_arrays("abcd", weights=ahead).allowed(0, 0).all()
    with pytest.raises(ValueError, match="weight on later tokens"):
        Trace.from_arrays("abcd", weights=ahead, causal=True)


def test_tokens_have_places_and_equal_strings_have_equal_ids():
    trace = Trace.from_arrays(["a", " b", "", " b"], weights=[np.eye(4)[None]])
    assert trace.text == "a b b" and labels(trace) == ["a", "·b", "␀", "·b"]
    assert [(t.index, trace.text[t.start : t.end]) for t in trace.tokens] == [(0, "a"), (1, " b"), (2, ""), (3, " b")]
    assert labels(Trace.from_arrays(["·b", "\n", "⏎"], weights=[np.eye(3)[None]])) == ["·b", "⏎", "⏎"]
    ids = [token.id for token in trace.tokens]
    assert ids[1] == ids[3] and len(set(ids)) == 3
    taken = Trace.from_arrays([Token(7, 5, "x", "x", 9, 10, True)], weights=[[[[1.0]]]]).tokens[0]
    assert dataclasses.astuple(taken) == (0, 5, "x", "x", 9, 10, True)


def test_measures_findings_and_pictures_work_on_it():
    n = 6
    weights = np.zeros((1, 2, n, n), np.float32)
    weights[0, 0, 0, 0] = 1
    for row in range(1, n):
        weights[0, 0, row, row - 1] = 1  # the head before
    weights[0, 1, :, 0] = 1  # a head at rest
    trace = Trace.from_arrays("abcdef", weights=weights)
    found = survey(trace)
    assert found.measures["previous_token"][0].tolist() == [1, 0] and found.measures["first_token"][0, 1] == 1
    kinds = [here(trace.weights(0, h), trace.allowed(0, h), trace.tokens).kind for h in (0, 1)]
    assert kinds == ["previous", "rest"]  # and no repetition: each token is another one
    figure = head_map(trace.weights(0, 0), labels(trace), labels(trace), allowed=trace.allowed(0, 0))
    np.testing.assert_array_equal(np.nan_to_num(figure.data[0].z), weights[0, 0])
    assert "6 tokens by captured" in repr(trace)
    with pytest.raises(ValueError, match="no next-token output"):
        trace.next_tokens()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "either q, k and v, or weights"),
        ({"q": 1, "weights": 1}, "either q, k and v, or weights"),
        ({"q": 1, "k": 1}, "pass all three"),
        ({"q": 1, "k": 1, "v": {0: np.zeros((2, 5, 8))}}, "same layers"),
        ({"q": 1, "k": np.zeros((2, 3, 5, 8)), "v": np.zeros((2, 3, 5, 8))}, "dividing the heads"),
        ({"q": 1, "k": np.zeros((2, 2, 4, 8)), "v": 1}, r"expected q \(heads, 5, d_head\)"),
        ({"q": np.zeros((2, 4, 5, 6)), "k": 1, "v": 1}, r"got \(4, 5, 6\), \(2, 5, 8\)"),
        ({"weights": np.full((1, 1, 5, 5), 0.5)}, "sum to at most 1"),
        ({"weights": np.full((1, 1, 5, 5), np.nan)}, "must be finite"),
        ({"weights": np.full((1, 1, 5, 5), -0.1)}, "at least 0"),
        ({"weights": np.zeros((1, 1, 4, 4))}, r"must be \(heads, 5, 5\) for 5 tokens"),
        ({"weights": np.zeros((1, 5, 5))}, r"must be \(heads, queries, keys\)"),
        ({"weights": []}, "there is no layer"),
        ({"q": 1, "k": 1, "v": [np.full((2, 5, 8), np.inf)] * 2}, "v of layer 0 must be finite, got 80 not so"),
        ({"weights": [[["a", "b"]]]}, "weights of layer 0 must be numbers of shape"),
        ({"weights": 0.5}, "an array for each layer, got float"),
        ({"weights": 1, "tokens": None}, "must be strings or Tokens, got NoneType"),
        (
            {"weights": {"1": np.zeros((4, 5, 5)), 1: np.zeros((4, 5, 5))}},
            "layer must be a whole number from 0 up, got '1'",
        ),
        ({"weights": {-1: np.zeros((4, 5, 5))}}, "from 0 up, got -1"),
        ({"weights": 1, "tokens": []}, "there is no token"),
        ({"weights": 1, "tokens": ["a", 3]}, "must be strings or Tokens, got int at 1"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    given = dict(zip("qkv", arrays(), strict=True)) | {"weights": random_weights(RNG, 2, 4, 5, 5)}
    arguments = {key: given[key] if isinstance(value, int) else value for key, value in change.items()}
    with pytest.raises(ValueError, match=words):
        Trace.from_arrays(**{"tokens": "abcde"} | arguments)
