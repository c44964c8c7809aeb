"""What a head writes in words: parts against the logits that they make up, switches against torch, and known heads."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.app.explore.writes import EXAMPLE
from attnviz.core.trace.switches import Switches
from attnviz.models.scratch.decoder import feed_forward, layer_norm, rms_norm, swiglu
from attnviz.models.scratch.residual import direct_logits, head_write, hidden_states, next_logits
from attnviz.models.scratch.written import last_states, random_reach, reach, read_write

TEXT = "Mary bought a car, although she could not drive it"
DECODERS = ["smollm2", "llama", "gpt2"]


def mlp_of(model, layer, middle):
    """Return what the network behind the heads adds to (d_model,), from the weights alone."""
    x = (rms_norm if model.norm.offset is None else layer_norm)(middle, layer.norm_2)[None]
    return (
        swiglu(x, layer.up, layer.down)
        if model.layout == "llama"
        else feed_forward(x, layer.up, layer.down, model.activation)
    )[0]


@pytest.mark.parametrize("name", DECODERS)
def test_all_heads_networks_and_the_word_add_up_to_the_logits(name, pair):
    torch_engine, engine = pair(name)
    model, trace = engine.model, engine.trace(TEXT, max_tokens=16)
    ids = [token.id for token in trace.tokens]
    stream = hidden_states(model, ids)[0, -1]  # the word's own vector
    parts = [stream]
    for number, layer in enumerate(model.layers):
        heads = [
            head_write(model, number, head, trace.weights(number, head)[-1] @ trace.qkv(number, head)[2])
            for head in range(model.n_heads)
        ]
        bias = [] if layer.out.bias is None else [layer.out.bias]
        stream = stream + sum(heads) + sum(bias)
        network = mlp_of(model, layer, stream)
        stream = stream + network
        parts += [*heads, *bias, network]
    logits = direct_logits(model, stream, np.stack(parts)).sum(axis=0, dtype=np.float64)
    if model.norm.offset is not None:
        logits += model.head @ model.norm.offset
    with torch.inference_mode():
        theirs = torch_engine.model(torch.tensor([ids])).logits[0, -1].numpy()
    np.testing.assert_allclose(logits, theirs, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_head_s_words_are_its_output_through_the_unembedding(name, pair):
    _, engine = pair(name)
    model, trace = engine.model, engine.trace("w1 w2 w3 w4 w5")
    last = last_states(model, [token.id for token in trace.tokens])
    for query, layer, head in ((4, 1, 2), (2, 0, 3)):
        weights, values = trace.weights(layer, head)[query], trace.qkv(layer, head)[2]
        found = read_write(model, layer, head, weights=weights, values=values, last=last[query])
        whole = next_logits(model, last[query]).astype(np.float64)
        # closed form: the norm is linear once its size is held, so less of the stream gives less of the logits
        wide = head_write(model, layer, head, weights @ values).astype(np.float64)
        centred = (lambda x: x - x.mean()) if model.norm.offset is not None else (lambda x: x)
        size = np.sqrt(np.mean(centred(last[query].astype(np.float64)) ** 2) + model.norm.epsilon)
        expected = model.head.astype(np.float64) @ (centred(wide) / size * model.norm.gain)
        np.testing.assert_allclose(found.logits, expected - expected.mean(), atol=1e-5 * max(1, np.abs(whole).max()))
        sizes = [np.linalg.norm(head_write(model, layer, head, w * v)) for w, v in zip(weights, values, strict=True)]
        assert [part.key for part in found.parts] == np.argsort(-np.array(sizes), kind="stable")[:4].tolist()
        for part in found.parts:
            assert part.weight == weights[part.key]
            assert part.share == pytest.approx(sizes[part.key] / sum(sizes), rel=1e-4)
            alone = direct_logits(
                model, last[query], head_write(model, layer, head, weights[part.key] * values[part.key])
            )
            assert part.word == alone.argmax() and part.added == pytest.approx(alone.max() - alone.mean(), rel=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@pytest.mark.parametrize(
    "switches",
    [
        Switches(),
        Switches(causal=False),
        Switches(temperature=3.0, ablate=frozenset({(0, 1)})),
        Switches(forbid=frozenset({(None, None, 4, 1)})),
    ],
)
def test_the_stream_under_switches_gives_torch_s_logits(name, switches, pair):
    torch_engine, engine = pair(name)
    trace = torch_engine.trace("w1 w2 w3 w4 w5", switches=switches)
    last = last_states(engine.model, [token.id for token in trace.tokens], switches)
    np.testing.assert_allclose(next_logits(engine.model, last[-1]), trace.next_logits, atol=1e-4)


def test_a_model_without_words_says_so(pair):
    _, engine = pair("bert")
    with pytest.raises(ValueError, match="predicts no next token"):
        last_states(engine.model, [1, 2])
    with pytest.raises(ValueError, match="predicts no next token"):
        random_reach(engine.model)


def test_reach_counts_standard_deviations():
    assert reach([1.0, -1.0, 1.0, -1.0]) == pytest.approx(1)
    assert reach([2.0, 2.0]) == 0
    assert reach(7 + 3 * np.eye(1, 101)[0]) == pytest.approx(10)


def test_the_example_is_true(smollm2):
    """L26 H0 looks at “keys” and raises the plural verbs; so do not the random vectors of the same model."""
    name, text, layer, head = EXAMPLE
    model = attnviz.load(name, engine="numpy").model
    trace = smollm2.trace(text)
    weights, values = trace.weights(layer, head)[-1], trace.qkv(layer, head)[2]
    last = last_states(model, [token.id for token in trace.tokens])[-1]
    found = read_write(model, layer, head, weights=weights, values=values, last=last)
    strongest = [trace.label_of(int(word)) for word in np.argsort(-found.logits)[:6]]
    assert strongest == ["·are", "·were", "·aren", "·weren", "are", "were"]
    assert found.logits.max() == pytest.approx(3.08, abs=0.02)
    (key, *_) = found.parts
    assert trace.tokens[key.key].label == "·keys"
    assert key.weight == pytest.approx(0.73, abs=0.01) and trace.label_of(key.word) == "·are"
    assert reach(found.logits) > 1.3 * random_reach(model)
