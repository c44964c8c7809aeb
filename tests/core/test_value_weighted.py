"""Weights times what is written, against plain loops and the models in torch."""

from typing import Any

import numpy as np
import pytest

from attnviz.core.values.value_weighted import row_shares, value_weighted
from attnviz.models.scratch.residual import head_write

TEXT = "Mary bought a car, although she could not drive it"


def test_lengths_are_those_of_the_weighted_vectors():
    rng = np.random.default_rng(0)
    weights, written = rng.dirichlet(np.ones(5), size=4), rng.normal(size=(5, 3))
    found = value_weighted(weights, written)
    for query in range(4):
        for key in range(5):
            assert found[query, key] == pytest.approx(np.linalg.norm(weights[query, key] * written[key]))
    np.testing.assert_allclose(value_weighted(weights, np.linalg.norm(written, axis=1)), found)


def test_shares_of_a_row():
    shares = row_shares([[2.0, 6.0], [0.0, 0.0], [1.0, 0.0]])
    assert shares.tolist() == [[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("weights", "written", "message"),
    [
        ([[0.5, 0.5]], [1.0], "one vector or length for each"),
        ([[0.5, 0.5]], [[1.0, 2.0, 3.0]], "one vector or length for each"),
        ([[-0.5, 0.5]], [1.0, 1.0], "0 or more"),
        ([[0.5, 0.5]], [-1.0, 1.0], "0 or more"),
        ([[0.5, 0.5]], 1.0, "one vector or length for each"),
    ],
)
def test_what_does_not_fit_is_refused(weights, written, message):
    with pytest.raises(ValueError, match=message):
        value_weighted(weights, written)


def hooked(engine: Any, name: str) -> np.ndarray:
    """Return what torch's module of that name gives for the text, (tokens, width)."""
    import torch

    kept = []
    module = dict(engine.model.named_modules())[name]
    handle = module.register_forward_hook(lambda _module, _inputs, output: kept.append(output[0].detach()))
    try:
        with torch.no_grad():
            engine.model(torch.tensor([[token.id for token in engine.trace(TEXT).tokens]]))
    finally:
        handle.remove()
    return kept[-1].float().numpy()


@pytest.mark.parametrize(
    ("model", "layer", "head", "value", "out"),
    [
        ("minilm", 2, 3, "encoder.layer.2.attention.self.value", "encoder.layer.2.attention.output.dense"),
        ("minilm", 5, 8, "encoder.layer.5.attention.self.value", "encoder.layer.5.attention.output.dense"),
        ("smollm2", 13, 8, "model.layers.13.self_attn.v_proj", "model.layers.13.self_attn.o_proj"),
    ],
)
def test_sizes_are_those_of_torch_by_hand(request, model, layer, head, value, out):
    import attnviz

    engine = request.getfixturevalue(model)
    trace = engine.trace(TEXT)
    values, width = hooked(engine, value), trace.qkv(layer, head)[2].shape[1]
    shared = trace.heads(layer) // (values.shape[1] // width)  # query heads to a key/value head
    own = values[:, (head // shared) * width : (head // shared + 1) * width]  # (keys, d_head)
    matrix = dict(engine.model.named_modules())[out].weight.detach().float().numpy()  # (d_model, heads * d_head)
    written = own @ matrix[:, head * width : (head + 1) * width].T  # (keys, d_model)
    weights = trace.weights(layer, head)
    expected = np.linalg.norm(weights[:, :, None] * written[None], axis=2)

    numpy_model = attnviz.load(model, engine="numpy").model
    found = value_weighted(weights, head_write(numpy_model, layer, head, trace.qkv(layer, head)[2]))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert expected.max() > 0.1


def test_the_sink_of_smollm2_is_lower_but_not_gone(smollm2):
    import attnviz

    trace, model = smollm2.trace(TEXT), attnviz.load("smollm2", engine="numpy").model
    before, after = [], []
    for layer in trace.layers:
        for head in range(trace.heads(layer)):
            weights = trace.weights(layer, head)
            written = head_write(model, layer, head, trace.qkv(layer, head)[2])
            before.append(weights[1:, 0].mean())
            after.append(row_shares(value_weighted(weights, written))[1:, 0].mean())
    assert np.mean(before) == pytest.approx(0.58, abs=0.01)
    assert np.mean(after) == pytest.approx(0.43, abs=0.01)
