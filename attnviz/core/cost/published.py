"""Published models for the memory calculator, and what fits beside their weights. Standard library only.

The figures are in `published.toml`, each with its source. A gigabyte is 10^9 bytes here.
"""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from attnviz.core.cost import formulas as cost
from attnviz.core.cost.formulas import Shape

MODELS_FILE = resources.files("attnviz.core.cost") / "published.toml"

GB = 10**9  # bytes


@dataclass(frozen=True)
class PublishedModel:
    """A model as its publisher describes it.

    Attributes:
        name: what its publisher calls it.
        shape: its sizes.
        tied: True if one matrix is both embedding and unembedding.
        learned_positions: rows of a learned position embedding, 0 without one.
        context: tokens it was made for.
        stated_parameters: the count that the publisher states, at the precision at which it is stated.
        source: where the figures stand.
    """

    name: str
    shape: Shape
    tied: bool
    learned_positions: int
    context: int
    stated_parameters: int
    source: str

    @property
    def parameters(self) -> int:
        """The count that follows from the sizes, see `parameters`."""
        return parameters(self.shape, tied=self.tied, learned_positions=self.learned_positions)

    @property
    def attention(self) -> str:
        """How its key/value heads are shared: "multi-head", "grouped-query" or "multi-query"."""
        if self.shape.n_kv_heads == self.shape.n_heads:
            return "multi-head"
        return "multi-query" if self.shape.n_kv_heads == 1 else "grouped-query"


@dataclass(frozen=True)
class Fit:
    """Whether weights and cache of one sequence fit into a memory.

    Attributes:
        weights: bytes of the weights.
        cache: bytes of the KV cache for the tokens asked for.
        fits: True if both fit together.
        most_tokens: the most tokens whose cache fits beside the weights, be it beyond the context that the model was
            made for; None if the weights alone don't fit.
    """

    weights: int
    cache: int
    fits: bool
    most_tokens: int | None


def parameters(shape: Shape, *, tied: bool, learned_positions: int = 0) -> int:
    """Return the numbers in a decoder's matrices: layers x (projections + MLP) + vocabulary x d + positions x d.

    Norms and biases are left out, at most 0.2 % of the models in `published_models`.

    Args:
        shape: the model's sizes.
        tied: True if one matrix is both embedding and unembedding, False if there are two.
        learned_positions: rows of a learned position embedding.

    Returns:
        Numbers, not bytes.

    >>> small = Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=3, gated=False, vocabulary=5)
    >>> parameters(small, tied=True), parameters(small, tied=False, learned_positions=7)  # 3 (16 + 32) + 10, ...
    (154, 178)
    """
    layers = shape.n_layers * (cost.projection_weights(shape) + cost.mlp_weights(shape))
    return layers + shape.d_model * (shape.vocabulary * (1 if tied else 2) + learned_positions)


def fits(
    model: PublishedModel, memory_bytes: int, *, tokens: int, weight_bytes: float = 2, cache_bytes: float = 2
) -> Fit:
    """Return whether a model fits into a memory with the cache of one sequence, and how long that can become.

    Activations and what the software needs for itself come on top and are not counted.

    Args:
        model: one of `published_models`.
        memory_bytes: the memory, such as 24 * GB.
        tokens: the length of the sequence that is asked about.
        weight_bytes: bytes a weight: 4 in float32, 2 in bfloat16, 1 and 0.5 for 8 and 4 bits.
        cache_bytes: bytes a number in the KV cache.

    Returns:
        Fit.

    Raises:
        ValueError: tokens below 0, or bytes not above 0.

    >>> models = {model.name: model for model in published_models()}
    >>> fits(models["Llama 3.1 8B"], 24 * GB, tokens=32_768)
    Fit(weights=16059990016, cache=4294967296, fits=True, most_tokens=60577)
    >>> fits(models["Llama 3.1 70B"], 80 * GB, tokens=1).most_tokens is None  # 141 GB of weights
    True
    """
    if not 0 < weight_bytes < float("inf"):
        raise ValueError(f"expected weight_bytes above 0, such as 2 for bfloat16, got {weight_bytes}")
    weights = int(model.parameters * weight_bytes)
    needed = cost.cache_bytes(model.shape, tokens, cache_bytes)
    free = memory_bytes - weights
    a_token = cost.cache_bytes(model.shape, 1, 1) * cache_bytes
    return Fit(weights, needed, needed <= free, int(free // a_token) if free >= 0 else None)


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """Return the published models that come with attnviz, from small to large.

    >>> [model.name for model in published_models()][:3]
    ['GPT-2 small', 'SmolLM2-135M', 'GPT-2 XL']
    """
    sizes = [field.name for field in fields(Shape)]
    return tuple(
        PublishedModel(
            name=entry["name"],
            shape=Shape(**{size: entry[size] for size in sizes}),
            tied=entry["tied"],
            learned_positions=entry.get("learned_positions", 0),
            context=entry["context"],
            stated_parameters=entry["parameters"],
            source=entry["source"],
        )
        for entry in tomllib.loads(MODELS_FILE.read_text(encoding="utf-8"))["model"]
    )
