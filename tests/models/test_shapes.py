"""The sizes of loaded models: against what their publisher states, and against every number in their matrices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnviz
from attnviz.core.cost.formulas import Shape
from attnviz.core.cost.published import parameters, published_models
from attnviz.models.measure.shapes import shape_of

# What `parameters` takes beside the shape: whether one matrix is both ends, and rows of a learned position embedding
DECODERS = {
    "llama": (False, 0),
    "mistral_sw4": (False, 0),
    "gemma2": (True, 0),
    "gpt2": (True, 16),
    "gptneo": (True, 2048),
    "opt": (True, 64 + 2),  # two rows that no token uses
    "bloom": (True, 0),
}
GATED = {"llama", "mistral_sw4", "gemma2"}


@pytest.fixture
def load(tiny_folder: Callable[[str], Path]) -> Callable[..., Any]:
    """Return a function that loads a tiny model."""
    return lambda name, **options: attnviz.load(str(tiny_folder(name)), **options)


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_smollm2_has_the_sizes_that_its_publisher_states(smollm2: Any, kind: str) -> None:
    stated = next(model.shape for model in published_models() if model.name == "SmolLM2-135M")
    assert shape_of(smollm2 if kind == "torch" else attnviz.load("smollm2", engine="numpy")) == stated


@pytest.mark.parametrize("name", DECODERS)
def test_the_sizes_give_every_number_in_the_matrices(load: Callable[..., Any], name: str) -> None:
    engine = load(name)
    tied, positions = DECODERS[name]
    shape = shape_of(engine)
    assert shape is not None
    there = sum(weight.numel() for weight in engine.model.parameters() if weight.dim() > 1)
    assert parameters(shape, tied=tied, learned_positions=positions) == there
    assert shape.gated == (name in GATED)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
def test_both_engines_tell_the_same(load: Callable[..., Any], name: str) -> None:
    assert shape_of(load(name)) == shape_of(load(name, engine="numpy"))


def test_a_model_without_an_output_has_no_vocabulary_to_choose_from(minilm: Any) -> None:
    assert shape_of(minilm) == Shape(384, 12, 12, 32, 1536, 6, gated=False, vocabulary=0)


@pytest.mark.parametrize("name", ["gptoss", "qwen3next", "t5"])
def test_experts_mixed_layers_and_two_stacks_have_no_such_sizes(load: Callable[..., Any], name: str) -> None:
    assert shape_of(load(name)) is None
