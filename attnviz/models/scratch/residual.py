"""The residual stream of a model in NumPy: what each token's vector is on its way, and what one head adds to it.

Axes: layers, tokens, d_model, vocabulary. NumPy alone, on the weights of `scratch.Model`.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from attnviz.core.attention.masks import Mask, causal_rule, full_mask
from attnviz.core.threads import half_the_cores
from attnviz.core.trace.switches import Switches
from attnviz.models.scratch.activations import Float
from attnviz.models.scratch.decoder import LAYOUTS, Attention, Keep, Model, forget, layer_norm, rms_norm

OnFound: TypeAlias = Callable[[int, Float], object]

NO_HEAD = "this model predicts no next token: it turns a text into vectors"


def run_through(
    model: Model,
    ids: list[int],
    *,
    keep: Keep = forget,
    on_found: OnFound | None = None,
    mask: Mask | None = None,
    switches: Switches | None = None,
) -> Float:
    """Run a model over a text once, and let somebody see, or change, what its heads find on the way.

    Args:
        model: its weights.
        ids: (tokens,) numbers in its vocabulary.
        keep: called with (tokens, d_model), what enters each layer, and what leaves the last one before the last norm.
        on_found: called with the number of a layer and (heads, tokens, d_head), weights times values of its heads; what
            it writes there is what the pass goes on with.
        mask: which keys a query may see; the model's own rule unless told otherwise.
        switches: what is changed about the attention of the whole pass.

    Returns:
        (tokens, d_model) after the last norm.
    """
    own = (full_mask if model.layout == "bert" else causal_rule)(len(ids), len(ids))
    attention, layers = Attention(mask or own, switches or Switches(), None), count()

    def attend(q: Float, k: Float, v: Float, scale: float) -> Float:
        found = attention.attend(q, k, v, scale)  # (heads, tokens, d_head)
        if on_found is not None:
            on_found(next(layers), found)
        return found

    return LAYOUTS[model.layout](model, ids, attend, keep)


def layers_from(model: Model, layer: int, states: Float) -> Model:
    """Return the layers from one on as a model of their own, whose words are the vectors that enter that layer.

    A pass of it over the words 0, 1, 2 ... is the rest of the pass that the vectors come from.

    Args:
        model: its weights, of the layouts llama or gpt2.
        layer: the first one that is left.
        states: (tokens, d_model) what enters it, of `hidden_states`.

    Raises:
        ValueError: the layout is bert, which predicts no next token.
    """
    if model.layout == "bert":
        raise ValueError(NO_HEAD)
    positions = None if model.positions is None else np.zeros_like(model.positions[:1])  # they have theirs
    return replace(model, words=states, layers=model.layers[layer:], positions=positions)


def hidden_states(model: Model, ids: list[int]) -> Float:
    """Return every token's vector as it enters each layer, and as it leaves the last one, before the last norm.

    Args:
        model: its weights.
        ids: (tokens,) numbers in its vocabulary.

    Returns:
        (layers + 1, tokens, d_model).
    """
    states: list[Float] = []
    run_through(model, ids, keep=states.append)
    return np.stack(states)


def head_write(model: Model, layer: int, head: int, found: ArrayLike) -> Float:
    """Return what a head adds to the residual stream: its weighted mean of values times its rows of W_O.

    Args:
        model: its weights.
        layer: number of its layer.
        head: its number; the bias of W_O, if there is one, belongs to no head and is left out.
        found: (..., d_head), weights times values.

    Returns:
        (..., d_model).
    """
    rows = slice(head * model.d_head, (head + 1) * model.d_head)
    return np.asarray(found, np.float32) @ model.layers[layer].out.weight[rows]  # (..., d_head) @ (d_head, d_model)


def next_logits(model: Model, last: Float) -> Float:
    """Return (vocabulary,) the logits of the token after a vector that leaves the last layer.

    Args:
        model: its weights.
        last: (d_model,) the last of `hidden_states`.

    Raises:
        ValueError: the model predicts no next token.
    """
    if model.head is None:
        raise ValueError(NO_HEAD)
    with half_the_cores():
        return model.head @ (rms_norm if model.norm.offset is None else layer_norm)(last, model.norm)


def direct_logits(model: Model, last: Float, written: ArrayLike) -> Float:
    """Return what something written into the residual stream adds to each logit by itself, not through later layers.

    The last norm divides by a number that depends on the whole vector. It is held at the value that it has here, so
    that the parts of a vector add up: the logits are what all parts add, and what the norm's offset adds.

    Args:
        model: its weights.
        last: (d_model,) the whole vector as it leaves the last layer.
        written: (..., d_model) parts of it.

    Returns:
        (..., vocabulary). A number common to the whole vocabulary changes no probability.

    Raises:
        ValueError: the model predicts no next token.

    Source: direct logit attribution, Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    if model.head is None:
        raise ValueError(NO_HEAD)
    parts = np.asarray(written, np.float32)
    if model.norm.offset is not None:  # layer norm takes the mean off first
        parts, last = (x - x.mean(axis=-1, keepdims=True) for x in (parts, last))
    size = np.sqrt(np.mean(last * last) + np.float32(model.norm.epsilon))
    with half_the_cores():
        return (parts / size * model.norm.gain) @ model.head.T  # (..., d_model) @ (d_model, vocabulary)
