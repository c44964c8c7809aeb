"""What a head writes at one token: the words that it raises and lowers by itself. NumPy alone, on `scratch.Model`."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.threads import half_the_cores
from attnviz.core.trace.switches import Switches
from attnviz.core.values.contributions import contributions, size_shares
from attnviz.models.scratch.activations import Float
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import NO_HEAD, direct_logits, head_write, run_through

N_PARTS = 4  # keys that are named
N_RANDOM = 100  # random vectors that a head's is compared with


@dataclass(frozen=True)
class Part:
    """What one key's value makes of a head's output.

    Attributes:
        key: its index.
        weight: what the query gives to it.
        share: size of its part, weight times value through W_O, as a share of the sizes of all keys' parts.
        word, added: the token that this part raises most, and by how much.
    """

    key: int
    weight: float
    share: float
    word: int
    added: float


@dataclass(frozen=True, eq=False)
class Write:
    """What a head writes at one token.

    Attributes:
        logits: (vocabulary,) what it adds by itself to each next token's logit, above the mean of the vocabulary.
        parts: of the keys with the largest parts, the largest first.
    """

    logits: NDArray[np.float32]
    parts: tuple[Part, ...]


def last_states(model: Model, ids: list[int], switches: Switches | None = None) -> Float:
    """Return every token's vector as it leaves the last layer, before the last norm.

    Args:
        model: its weights.
        ids: (tokens,) numbers in its vocabulary.
        switches: what is changed about the attention of the whole pass.

    Returns:
        (tokens, d_model).

    Raises:
        ValueError: the model predicts no next token.
    """
    if model.head is None or model.layout == "bert":
        raise ValueError(NO_HEAD)
    last: deque[Float] = deque(maxlen=1)
    with half_the_cores():
        run_through(model, ids, keep=last.append, switches=switches)
    return last[0]


def read_write(model: Model, layer: int, head: int, *, weights: ArrayLike, values: ArrayLike, last: Float) -> Write:
    """Return what a head adds to the residual stream at one token, read through the unembedding.

    Its output is a sum over keys of weight times value, which W_O carries into the stream, where the last norm and the
    unembedding read it. The norm's size is held where `last` has it, so that all parts of the stream add up.

    Args:
        model: its weights.
        layer: number of its layer.
        head: its number.
        weights: (keys,) of the query.
        values: (keys, d_head).
        last: (d_model,) the query's row of `last_states`.

    Raises:
        ValueError: the model predicts no next token, or weights and values don't fit.

    Source: direct logit attribution, Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    written = head_write(model, layer, head, contributions(weights, values))  # (keys, d_model)
    shares = size_shares(written)
    largest = np.argsort(-shares, kind="stable")[:N_PARTS]
    rows = np.concatenate([written.sum(axis=0, keepdims=True), written[largest]])
    logits = _above_mean(direct_logits(model, last, rows))  # (1 + N_PARTS, vocabulary)
    row = np.asarray(weights)
    parts = (
        Part(int(key), float(row[key]), float(shares[key]), int(added.argmax()), float(added.max()))
        for key, added in zip(largest, logits[1:], strict=True)
    )
    return Write(logits[0], tuple(parts))


def reach(logits: ArrayLike) -> float:
    """Return how far the strongest logit lies from the mean of all, in standard deviations; 0 if they are all equal.

    >>> round(reach([0.0, 0.0, 0.0, 4.0]), 3)
    1.732
    """
    values = _above_mean(np.asarray(logits, np.float64))
    spread = float(values.std())
    return float(np.abs(values).max()) / spread if spread > 0 else 0.0


def random_reach(model: Model) -> float:
    """Return the `reach` that 19 of 20 random vectors stay below, in place of what a head writes.

    Args:
        model: its weights.

    Raises:
        ValueError: the model predicts no next token.
    """
    vectors = np.random.default_rng(0).normal(size=(N_RANDOM, model.words.shape[1])).astype(np.float32)
    with half_the_cores():
        return float(np.quantile([reach(row) for row in direct_logits(model, vectors[0], vectors)], 0.95))


def _above_mean(logits: Float) -> Float:
    return logits - logits.mean(axis=-1, keepdims=True)
