"""The residual stream of a model in NumPy: what each token's vector is on its way, and what one head adds to it.

Axes: layers, tokens, d_model, vocabulary. NumPy alone, on the weights of `scratch.Model`.
"""

import numpy as np
from numpy.typing import ArrayLike

from attnviz.core.masks import causal_rule, full_mask
from attnviz.core.switches import Switches
from attnviz.models.activations import Float
from attnviz.models.scratch import LAYOUTS, Attention, Model, layer_norm, rms_norm

NO_HEAD = "this model predicts no next token: it turns a text into vectors"


def hidden_states(model: Model, ids: list[int]) -> Float:
    """Return every token's vector as it enters each layer, and as it leaves the last one, before the last norm.

    Args:
        model: its weights.
        ids: (tokens,) numbers in its vocabulary.

    Returns:
        (layers + 1, tokens, d_model).
    """
    states: list[Float] = []
    mask = (full_mask if model.layout == "bert" else causal_rule)(len(ids), len(ids))
    LAYOUTS[model.layout](model, ids, Attention(mask, Switches(), None).attend, states.append)
    return np.stack(states)


def head_write(model: Model, layer: int, head: int, found: ArrayLike) -> Float:
    """Return what a head adds to the residual stream: its weighted mean of values times its rows of W_O.

    Args:
        model: its weights.
        layer, head: which head; the bias of W_O, if there is one, belongs to no head and is left out.
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
    return (parts / size * model.norm.gain) @ model.head.T  # (..., d_model) @ (d_model, vocabulary)
