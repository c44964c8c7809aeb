"""What a head does to the next word: what it adds by itself, and what changes in the model when it is off.

Axes: layers, heads, tokens, d_head, d_model. NumPy alone, on the weights of a `scratch.Model` that predicts.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.core.attention.masks import Mask
from attnviz.core.threads import half_the_cores
from attnviz.models.scratch.activations import Float
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import NO_HEAD, hidden_states, layers_from, next_logits, run_through
from attnviz.models.tokens import label_tokens, tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ROWS = 128  # tokens that go through the layers at a time: with less, reading the weights takes longer than using them


@dataclass(frozen=True, eq=False)
class Direct:
    """What each part of a model adds by itself to the logit difference of two next tokens; all parts make the total.

    Attributes:
        heads: (layers, heads).
        mlps: (layers,) the networks behind the heads, with their biases.
        embedding: the last token's own vector, with its position's if the model adds one.
        biases: those of the output projections of attention, and the offset of the last norm; the same for any text
            but for the last norm's size.
        total: the difference itself.
    """

    heads: NDArray[np.float64]
    mlps: NDArray[np.float64]
    embedding: float
    biases: float
    total: float


def next_word_token(tokenizer: "PreTrainedTokenizerBase", word: str, *, after: str) -> tuple[int, str, bool]:
    """Return the first token of a word as it would go on with a text.

    The word gets a space in front unless it has one, or the text ends in white space, or there is no text.

    Args:
        tokenizer: a fast tokenizer of transformers.
        word: what might come next.
        after: the text so far.

    Returns:
        The token's number in the vocabulary, its label, and whether the word goes on with more tokens.

    Raises:
        ValueError: the word is empty, or the tokenizer makes no token of it.
    """
    if not word.strip():
        raise ValueError(f"expected a word that might come next, got {word!r}")
    spaced = word if not after or after[-1].isspace() or word[0].isspace() else f" {word}"
    before, both, alone = (
        [token.id for token in tokenize(tokenizer, text, add_special_tokens=False)]
        for text in (after, after + spaced, spaced)
    )
    # A tokenizer may join the end of the text and the word, as in "to " + "Mary"; the model has seen the text alone.
    ids = both[len(before) :] if both[: len(before)] == before else alone
    if not ids:
        raise ValueError(f"this model's tokenizer makes no token of {word!r}")
    return ids[0], label_tokens(tokenizer, ids)[0], len(ids) > 1


def direct_effects(model: Model, ids: list[int], pair: tuple[int, int]) -> Direct:
    """Return what each part adds by itself to logit(pair[0]) - logit(pair[1]) after the last token.

    Every part writes into the vector that the last norm and the output head read. The norm's size is held where it is
    in this pass, so that each part adds its product with one direction, whatever the others do.

    Args:
        model: its weights.
        ids: (tokens,) of the text.
        pair: numbers of two tokens.

    Raises:
        ValueError: the model predicts no next token, there are no such tokens, or they are one and the same.

    Source: direct logit attribution, Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    _check_pair(model, ids, pair)
    states: list[Float] = []
    found: list[Float] = []
    with half_the_cores():
        run_through(
            model, ids, keep=lambda x: states.append(x[-1]), on_found=lambda layer, heads: found.append(heads[:, -1])
        )
    last = np.stack(states).astype(np.float64)  # (layers + 1, d_model)
    direction, constant = _direction(model, last[-1], pair)
    heads = np.stack([_head_votes(model, layer, each, direction) for layer, each in enumerate(found)])
    out_biases = np.array([0.0 if each.out.bias is None else each.out.bias @ direction for each in model.layers])
    added = np.diff(last, axis=0) @ direction  # (layers,) of a layer's heads, their bias and the network behind
    logits = next_logits(model, states[-1])
    return Direct(
        heads=heads,
        mlps=added - heads.sum(axis=1) - out_biases,
        embedding=float(last[0] @ direction),
        biases=float(out_biases.sum() + constant),
        total=float(logits[pair[0]] - logits[pair[1]]),
    )


def reference_means(model: Model, texts: list[list[int]]) -> Float:
    """Return each head's mean output over the tokens of reference texts, to stand in for what it finds in another text.

    Args:
        model: its weights.
        texts: the tokens of each text. The first token of each, where a head can only look at itself, doesn't count.

    Returns:
        (layers, heads, d_head), means of weights times values.

    Raises:
        ValueError: the model predicts no next token, a text doesn't fit, or no text has a second token.
    """
    sums = np.zeros((len(model.layers), model.n_heads, model.d_head))  # (layers, heads, d_head)

    def add(layer: int, found: Float) -> None:
        sums[layer] += found[:, 1:].sum(axis=1, dtype=np.float64)

    for ids in texts:
        _check_ids(model, ids)
        with half_the_cores():
            run_through(model, ids, on_found=add)
    n_tokens = sum(len(ids) - 1 for ids in texts)
    if n_tokens == 0:
        raise ValueError(f"expected a reference text of at least two tokens, got {len(texts)} texts without one")
    return (sums / n_tokens).astype(np.float32)


def logits_without(
    model: Model, ids: list[int], heads: Collection[tuple[int, int]], *, instead: Float | None = None
) -> Float:
    """Return the logits after the last token of a pass in which some heads are off.

    Args:
        model: its weights.
        ids: (tokens,) of the text.
        heads: (layer, head) of each head that is off.
        instead: (layers, heads, d_head) what such a head gives every token, of `reference_means`; nothing (zeros) if
            None.

    Returns:
        (vocabulary,).

    Raises:
        ValueError: the model predicts no next token, there is no such head, or `instead` has another shape.
    """
    _check_ids(model, ids)
    _check_instead(model, instead)
    for layer, head in heads:
        if not (0 <= layer < len(model.layers) and 0 <= head < model.n_heads):
            sizes = f"{len(model.layers)} layers of {model.n_heads} heads, counted from 0"
            raise ValueError(f"there is no L{layer} H{head}: this model has {sizes}")

    def switch_off(layer: int, found: Float) -> None:
        for number, head in heads:
            if number == layer:
                found[head] = 0.0 if instead is None else instead[layer, head]

    with half_the_cores():
        return model.head @ run_through(model, ids, on_found=switch_off)[-1]  # (vocabulary, d_model) @ (d_model,)


def all_effects(
    model: Model,
    ids: list[int],
    pair: tuple[int, int],
    *,
    instead: Float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> NDArray[np.float64]:
    """Return how logit(pair[0]) - logit(pair[1]) changes when one head is off, for every head.

    A head changes nothing below its own layer, so a pass without it starts there, from the vectors of the whole pass.

    Args:
        model: its weights.
        ids: (tokens,) of the text.
        pair: numbers of two tokens.
        instead: what a head that is off gives, as in `logits_without`.
        progress: called with (heads done, all heads); what it raises ends the work, and nothing is kept.

    Returns:
        (layers, heads), the difference without the head minus the difference with it.

    Raises:
        ValueError: as `direct_effects` and `logits_without`.
    """
    _check_pair(model, ids, pair)
    _check_instead(model, instead)
    with half_the_cores():
        states = hidden_states(model, ids)  # (layers + 1, tokens, d_model)
    logits = next_logits(model, states[-1, -1])
    opposite = model.head[pair[0]] - model.head[pair[1]]  # (d_model,)
    differences = np.empty((len(model.layers), model.n_heads))
    n_together = max(1, ROWS // len(ids))
    for layer in range(len(model.layers)):
        rest = layers_from(model, layer, states[layer])
        outputs = np.zeros((model.n_heads, model.d_head), np.float32) if instead is None else instead[layer]
        for start in range(0, model.n_heads, n_together):
            some = range(model.n_heads)[start : start + n_together]
            differences[layer, some] = _last_without_each(rest, len(ids), some, outputs) @ opposite
            if progress is not None:
                progress(layer * model.n_heads + some.stop, differences.size)
    return differences - float(logits[pair[0]] - logits[pair[1]])


def _last_without_each(rest: Model, n_tokens: int, heads: range, outputs: Float) -> Float:
    """Return (len(heads), d_model), the last token after the last norm, of passes that lack one head each.

    The passes run as one, over copies of the text behind one another that don't see each other. Where a copy starts
    makes no difference: rotary positions count by their distance alone.

    Args:
        rest: of `layers_from`, the first layer is that of the heads.
        n_tokens: of the text.
        heads: which one each copy lacks.
        outputs: (heads of the layer, d_head) what they give instead.
    """
    n_copies, place = len(heads), np.arange(len(heads) * n_tokens)

    def switch_off(layer: int, found: Float) -> None:
        if layer == 0:
            for copy, head in enumerate(heads):
                found[head, copy * n_tokens : (copy + 1) * n_tokens] = outputs[head]

    own_copy = Mask(place - place % n_tokens, place, len(place))
    with half_the_cores():
        x = run_through(rest, (place % n_tokens).tolist(), on_found=switch_off, mask=own_copy)
    return x.reshape(n_copies, n_tokens, -1)[:, -1]  # (copies * tokens, d_model) -> (copies, d_model)


def _direction(model: Model, last: NDArray[np.float64], pair: tuple[int, int]) -> tuple[NDArray[np.float64], float]:
    """Return (d_model,), whose product with a part is what it adds to the difference, and what the norm's offset adds.

    Args:
        model: its weights.
        last: (d_model,) the last token as it leaves the last layer.
        pair: numbers of two tokens.
    """
    opposite = model.head[pair[0]].astype(np.float64) - model.head[pair[1]]  # (d_model,)
    direction = model.norm.gain * opposite
    constant = 0.0
    if model.norm.offset is not None:  # layer norm takes the mean off first: the same as taking it off the direction
        direction, last = direction - direction.mean(), last - last.mean()
        constant = float(model.norm.offset @ opposite)
    return direction / np.sqrt(np.mean(last * last) + model.norm.epsilon), constant


def _head_votes(model: Model, layer: int, found: Float, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (heads,), what each head of a layer adds by itself; `found` is (heads, d_head), weights times values."""
    out = model.layers[layer].out.weight @ direction  # (heads * d_head, d_model) @ (d_model,)
    return (found * out.reshape(model.n_heads, model.d_head)).sum(axis=1)


def _check_ids(model: Model, ids: list[int]) -> None:
    if model.head is None or model.layout == "bert":
        raise ValueError(NO_HEAD)
    limit = np.inf if model.positions is None else len(model.positions)
    if not 0 < len(ids) <= limit:
        raise ValueError(
            f"expected at least one token{'' if np.isinf(limit) else f', at most {limit}'}, got {len(ids)}"
        )


def _check_pair(model: Model, ids: list[int], pair: tuple[int, int]) -> None:
    _check_ids(model, ids)
    if not all(0 <= token < len(model.head) for token in pair):
        raise ValueError(f"expected two tokens from 0 to {len(model.head) - 1}, got {pair[0]} and {pair[1]}")
    if pair[0] == pair[1]:
        raise ValueError(f"expected two different tokens, got {pair[0]} twice: these words begin alike")


def _check_instead(model: Model, instead: Float | None) -> None:
    shape = (len(model.layers), model.n_heads, model.d_head)
    if instead is not None and instead.shape != shape:
        raise ValueError(f"expected means of the shape (layers, heads, d_head) {shape}, got {instead.shape}")
