"""The visitor's model in NumPy, for what a trace doesn't hold: its weights and its residual stream."""

from dataclasses import replace
from typing import cast

import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.numpy_engine import NumpyEngine

MOST_TOKENS = 512  # for which the stream is computed while the visitor waits


def load_numpy(visit: Visit) -> Model:
    """Return the visitor's model in NumPy, with what is done for it on the page while it lasts.

    Raises:
        ValueError: it can't be run that way; the text says why.
    """
    choice = replace(visit.choice, engine="numpy", dtype="float32")
    with passing() as place:
        return cast(NumpyEngine, cache.get_engine(choice, lambda sentence: place.info(plain(sentence)))).model


def numpy_model(visit: Visit) -> Model | None:
    """Return the visitor's model in NumPy; None, with the reason on the page, if it can't be run that way."""
    try:
        return load_numpy(visit)
    except ValueError as error:
        st.info(plain(f"This part needs the model's weights in NumPy: {error}."))
        return None
