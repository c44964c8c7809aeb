"""Maps as the models' own eager attention gives them, to hold the recorded ones against."""

import numpy as np
import torch

TEXT = "w1 w2 w3 <br> w1 w2 $x$ w7 w9 w1"


SCRIPTS = (
    "The animal didn't cross the street because it was too tired",
    "Die Würde des Menschen ist unantastbar, naïve café 👍",
    "東京は日本の首都です。",
    "Всякий раз, когда идёт дождь",
    "القلم على الطاولة بجانب الكتاب",
)


def eager_maps(engine, trace, kind=None):
    """Return part -> list of (heads, queries, keys): the model's own maps, from a second copy of it."""
    model = type(engine.model).from_pretrained(engine.info.name, attn_implementation="eager").eval()
    return maps_from(model, trace)


def maps_from(model, trace):
    """Return part -> list of maps from `output_attentions=True` of an eager model."""
    inputs = {"input_ids": torch.tensor([[token.id for token in trace.tokens]])}
    if len(trace.parts) > 1:
        inputs["decoder_input_ids"] = torch.tensor([[token.id for token in trace.tokens_of("decoder")[0]]])
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    if len(trace.parts) == 1:
        return {trace.parts[0]: [a[0].numpy() for a in output.attentions if a is not None]}
    return {
        part: [a[0].numpy() for a in getattr(output, name)]
        for part, name in zip(
            trace.parts, ("encoder_attentions", "decoder_attentions", "cross_attentions"), strict=True
        )
    }


def assert_same_maps(trace, maps, atol=1e-5):
    for part, own in maps.items():
        for layer, theirs in zip(trace.layers_of(part), own, strict=True):
            np.testing.assert_allclose(trace.layer_weights(layer, part=part), theirs, atol=atol)
            for head in range(trace.heads(layer, part=part)):
                np.testing.assert_allclose(trace.weights(layer, head, part=part), theirs[head], atol=atol)
