"""The residual stream in NumPy against transformers' hidden states, and its parts against the logits they make up."""

import numpy as np
import pytest
import torch

from attnviz.models.scratch.decoder import layer_norm, linear, rms_norm
from attnviz.models.scratch.residual import direct_logits, head_write, hidden_states, next_logits

TEXT = "Mary bought a car, although she could not drive it"
IOI = "When Mary and John went to the store, John gave a drink to"
NAMES = ["smollm2", "minilm", "llama", "gpt2", "bert"]
DECODERS = ["smollm2", "llama", "gpt2"]


def stream(pair, name, text=TEXT):
    """Return the model in NumPy, the trace of a text, and its residual stream."""
    _, engine = pair(name)
    trace = engine.trace(text, max_tokens=16)
    return engine.model, trace, hidden_states(engine.model, [token.id for token in trace.tokens])


@pytest.mark.parametrize("name", NAMES)
def test_states_are_those_of_transformers(name, pair):
    torch_engine, _ = pair(name)
    model, trace, states = stream(pair, name)
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():
        theirs = torch_engine.model(ids, output_hidden_states=True).hidden_states
    assert len(states) == len(theirs) == len(model.layers) + 1
    for ours, other in zip(states[:-1], theirs[:-1], strict=True):
        np.testing.assert_allclose(ours, other[0].numpy(), rtol=1e-4, atol=2e-4 * np.abs(ours).max())
    last = states[-1]  # transformers gives the last one after the last norm; BERT's comes with each layer
    if model.layout != "bert":
        last = (rms_norm if model.norm.offset is None else layer_norm)(last, model.norm)
    np.testing.assert_allclose(last, theirs[-1][0].numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", DECODERS)
def test_the_last_state_gives_the_logits_of_the_pass(name, pair):
    model, trace, states = stream(pair, name)
    np.testing.assert_allclose(next_logits(model, states[-1, -1]), trace.next_logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_what_the_heads_write_is_what_attention_adds(name, pair):
    model, trace, states = stream(pair, name)
    norm = rms_norm if model.norm.offset is None else layer_norm
    for layer, weights in enumerate(model.layers):
        wrote = sum(
            head_write(model, layer, head, trace.weights(layer, head) @ trace.qkv(layer, head)[2])
            for head in range(model.n_heads)
        )
        bias = 0 if weights.out.bias is None else weights.out.bias
        middle = states[layer] + wrote + bias  # after attention, before the network behind it
        x = norm(middle, weights.norm_2)
        torch_engine, _ = pair(name)
        block = (torch_engine.model.model.layers if name == "llama" else torch_engine.model.transformer.h)[layer]
        with torch.inference_mode():
            added = block.mlp(torch.from_numpy(x)[None])[0].numpy()
        np.testing.assert_allclose(middle + added, states[layer + 1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", DECODERS)
def test_direct_logits_of_all_parts_add_up_to_the_logits(name, pair):
    model, trace, states = stream(pair, name)
    last = states[-1, -1]
    parts = np.concatenate([states[:1, -1], np.diff(states[:, -1], axis=0)])  # the word, and what each layer added
    logits = direct_logits(model, last, parts).sum(axis=0)
    if model.norm.offset is not None:
        logits = logits + model.head @ model.norm.offset
    np.testing.assert_allclose(logits, trace.next_logits, rtol=1e-3, atol=2e-3)


def test_heads_known_for_their_votes(pair):
    model, trace, states = stream(pair, "smollm2", IOI)
    mary, john = trace.tokens[1].id, trace.tokens[3].id
    assert trace.label_of(mary) == "·Mary" and trace.label_of(john) == "·John"
    votes = {}
    for layer, head in ((24, 4), (23, 3)):
        found = trace.weights(layer, head)[-1] @ trace.qkv(layer, head)[2]
        logits = direct_logits(model, states[-1, -1], head_write(model, layer, head, found))
        votes[layer, head] = logits[mary] - logits[john]
    assert votes[24, 4] == pytest.approx(-1.07, abs=0.02)  # looks at Mary, and votes against her
    assert votes[23, 3] == pytest.approx(2.86, abs=0.05)  # looks at John


@pytest.mark.parametrize("act", [lambda model, x: next_logits(model, x), lambda model, x: direct_logits(model, x, x)])
def test_a_model_without_a_head_says_so(act, pair):
    model, _, states = stream(pair, "bert")
    with pytest.raises(ValueError, match="predicts no next token"):
        act(model, states[-1, -1])


def test_head_write_takes_the_rows_of_its_head(pair):
    model, _, _ = stream(pair, "llama")
    alone = np.zeros((1, model.n_heads * model.d_head), np.float32)
    alone[0, 2 * model.d_head : 3 * model.d_head] = np.arange(model.d_head)
    expected = linear(alone, model.layers[1].out._replace(bias=None))[0]
    np.testing.assert_allclose(head_write(model, 1, 2, np.arange(model.d_head)), expected, rtol=1e-6)
