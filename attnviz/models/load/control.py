"""A model of the same shape with random weights: what a measure gives where nothing was learned."""

import copy
from dataclasses import replace

import torch

from attnviz.models.listen.probe import probe
from attnviz.models.listen.torch_engine import TorchEngine
from attnviz.models.load.building import building, passing

SEED = 0


def random_control(engine: TorchEngine) -> TorchEngine:
    """Return an engine with the same architecture, size and tokenizer, and weights as the library draws them at seed 0.

    Raises:
        ValueError: the engine doesn't run through torch.
    """
    if not isinstance(engine, TorchEngine):
        raise ValueError('the random-weight model is made from an engine that was loaded with engine="torch"')
    own = next(engine.model.parameters())
    with building():
        torch.manual_seed(SEED)
        model = type(engine.model)(copy.deepcopy(engine.model.config))
    model.to(own.device, own.dtype).eval().requires_grad_(False)
    model.set_attn_implementation(engine.model.config._attn_implementation)
    title = f"{engine.info.title} with random weights"
    info = replace(
        engine.info,
        title=title,
        revision=f"seed {SEED}, shape of {engine.info.revision}",
        notes=("Random weights: nothing was learned. A control to compare with.",),
    )
    with passing(), torch.inference_mode():
        wiring = probe(model, title)
    return TorchEngine(model, engine.tokenizer, wiring, info)
