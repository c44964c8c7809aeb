"""The sizes of a loaded model, for what it costs: read off its matrices, in torch or in NumPy."""

import re
from collections import defaultdict
from typing import Any

from attnviz.core.cost.formulas import Shape, projection_weights
from attnviz.models.scratch.numpy_engine import NumpyEngine

_IN_LAYER = re.compile(r"(?:^|\.)(\d+)\.(\w+)")  # in "model.layers.3.self_attn.q_proj.weight": the layer and its part


def shape_of(engine: Any) -> Shape | None:
    """Return the sizes of an engine's model, None if its matrices aren't those that the formulas of cost count.

    Such are mixtures of experts, layers that differ, layers without softmax attention, and two stacks of layers.

    Args:
        engine: made by `attnviz.load`.
    """
    return _from_arrays(engine) if isinstance(engine, NumpyEngine) else _from_matrices(engine)


def _from_matrices(engine: Any) -> Shape | None:
    info, model = engine.info, engine.model
    config = model.config.get_text_config()
    layers = _matrices(model)
    if len(info.parts) > 1 or len(layers) != len(info.layers) or len(set(layers.values())) != 1:
        return None
    attention, others = next(iter(layers.values()))
    d_model = config.hidden_size
    d_ff = min(others, default=0) // d_model  # of the matrix that leads back: gate and up may be one
    if not d_ff or sum(others) not in (2 * d_model * d_ff, 3 * d_model * d_ff):
        return None
    head = getattr(model.get_output_embeddings(), "weight", ())
    shape = Shape(
        d_model=d_model,
        n_heads=info.n_heads,
        n_kv_heads=info.n_kv_heads,
        d_head=getattr(config, "head_dim", None) or d_model // info.n_heads,
        d_ff=d_ff,
        n_layers=info.n_layers,
        gated=sum(others) == 3 * d_model * d_ff,
        vocabulary=len(head),
    )
    return shape if attention == projection_weights(shape) else None


def _matrices(model: Any) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Return layer -> (numbers in all matrices of its attention, numbers in each of its other matrices)."""
    attention: dict[int, int] = defaultdict(int)
    others: dict[int, list[int]] = defaultdict(list)
    for name, weight in model.named_parameters():
        found = _IN_LAYER.search(name)
        if found is None or weight.dim() < 2:
            continue
        if "att" in found[2]:
            attention[int(found[1])] += weight.numel()
        else:
            others[int(found[1])].append(weight.numel())
    return {layer: (attention[layer], tuple(others[layer])) for layer in attention.keys() | others.keys()}


def _from_arrays(engine: NumpyEngine) -> Shape:
    model = engine.model
    down, up = (getattr(model.layers[0], name).weight for name in ("down", "up"))
    return Shape(
        d_model=model.words.shape[1],
        n_heads=model.n_heads,
        n_kv_heads=model.n_kv_heads,
        d_head=model.d_head,
        d_ff=down.shape[0],
        n_layers=len(model.layers),
        gated=up.size == 2 * down.size,
        vocabulary=0 if model.head is None else len(model.head),
    )
