"""The same model in NumPy, for what a trace doesn't hold: its weights and its residual stream."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import Numbers
from attnviz.app.shell import cache
from attnviz.app.shell.controls import plain
from attnviz.app.shell.visit import Visit
from attnviz.core.threads import half_the_cores
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import direct_logits, head_write, hidden_states, next_logits

MOST_TOKENS = 512  # for which the stream is computed while the visitor waits


@dataclass(frozen=True, eq=False)
class Stream:
    """The residual stream at one token, and the model that it flows through.

    Attributes:
        model: in NumPy.
        states: (layers + 1, d_model), as they enter each layer and leave the last one.
    """

    model: Model
    states: NDArray[np.float32]

    def write(self, layer: int, head: int, found: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return (..., d_model) what a head adds, given weights times values (..., d_head)."""
        return head_write(self.model, layer, head, found)

    def logits(self) -> NDArray[np.float32]:
        """Return (vocabulary,) the logits of the token after this one."""
        return next_logits(self.model, self.states[-1])

    def votes(self, written: NDArray[np.float32], words: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return (..., words) what something written adds to these words' logits, above the mean of all words."""
        added = direct_logits(self.model, self.states[-1], written)  # (..., vocabulary)
        return added[..., words] - added.mean(axis=-1, keepdims=True)


def load_numpy(visit: Visit) -> Model:
    """Return the visitor's model in NumPy, with what is done for it on the page while it lasts.

    Raises:
        ValueError: it can't be run that way; the text says why.
    """
    place = st.empty()
    choice = replace(visit.choice, engine="numpy", dtype="float32")
    try:
        return cache.get_engine(choice, lambda sentence: place.info(plain(sentence))).model
    finally:
        place.empty()


def numpy_model(visit: Visit) -> Model | None:
    """Return the visitor's model in NumPy; None, with the reason on the page, if it can't be run that way."""
    try:
        return load_numpy(visit)
    except ValueError as error:
        st.info(plain(f"This part needs the model's weights in NumPy: {error}."))
        return None


def stream(visit: Visit, numbers: Numbers) -> Stream | None:
    """Return the residual stream at the followed query; None, with the reason on the page, if it can't be had."""
    model = numpy_model(visit)
    if model is None:
        return None
    query = numbers.cell[0]
    ids = [token.id for token in visit.rest.tokens]
    if model.layout != "bert":
        ids = ids[: query + 1]  # nothing after the query changes it
    if len(ids) > MOST_TOKENS:
        st.info(f"This part is worked out for the first {MOST_TOKENS} tokens of a text: choose an earlier query.")
        return None
    key = ("stream", visit.choice.name, visit.choice.revision, tuple(ids), query)

    def states() -> NDArray[np.float32]:
        with half_the_cores():
            return hidden_states(model, ids)[:, query].copy()

    return Stream(model, cache.results().get(key, states))
