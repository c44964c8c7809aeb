"""What visitors share: loaded models, traces, and what was computed from them. The only place with `st.cache_*`.

Models are keyed by (name, precision, engine, revision), traces by these, the text and the switches of the pass, never
by an object. Arrays in traces are read-only, so sharing them is safe.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from attnviz.app.shell.shelf import Shelf
from attnviz.core.heads.at_a_glance import Survey, survey
from attnviz.core.heads.battery import BatteryScores, battery_texts, score_battery
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.models.engine import Engine

MODELS_IN_MEMORY = int(os.environ.get("ATTNVIZ_MODELS", "3"))
TRACE_BYTES = float(os.environ.get("ATTNVIZ_TRACE_MB", "2000")) * 1e6
MAX_TOKENS = int(os.environ.get("ATTNVIZ_MAX_TOKENS", "4096"))


@dataclass(frozen=True)
class ModelChoice:
    """Which model a visitor wants: everything that makes two loads different."""

    name: str
    dtype: str = "float32"
    engine: Literal["torch", "numpy"] = "torch"
    revision: str | None = None


@st.cache_resource(show_spinner=False)
def engines() -> Shelf[Engine]:
    """Return the shelf of loaded models, shared by all visitors."""
    return Shelf(MODELS_IN_MEMORY)


@st.cache_resource(show_spinner=False)
def traces() -> Shelf[Trace]:
    """Return the shelf of traces, shared by all visitors, limited in bytes."""
    return Shelf(TRACE_BYTES, lambda trace: trace.nbytes)


@st.cache_resource(show_spinner=False)
def results() -> Shelf[Any]:
    """Return the shelf of what was computed from traces: surveys, batteries."""
    return Shelf(200)


def get_engine(choice: ModelChoice, say: Callable[[str], None] = lambda sentence: None) -> Engine:
    """Return the engine of a choice, loading it if no visitor has yet.

    Raises:
        ValueError: it can't be loaded; the text says why.
    """
    from attnviz.models.load.by_name import load

    shelf = engines()
    if shelf.is_making(choice):
        say("Another visitor is loading this model; waiting for it")
    return shelf.get(
        choice,
        lambda: load(choice.name, engine=choice.engine, dtype=choice.dtype, revision=choice.revision, progress=say),
        room=1,
    )


def get_trace(
    choice: ModelChoice,
    text: str,
    switches: Switches,
    *,
    on_layer: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Trace:
    """Return the trace of a text under the switches of the whole pass, running the model only if it is new.

    Raises:
        ValueError: the text or the switches can't be run; the text says why.
    """
    engine = get_engine(choice, say)

    def run() -> Trace:
        if engine.busy:
            say("The model is busy with another visitor's text; waiting")
        return engine.trace(text, switches=switches, max_tokens=MAX_TOKENS, on_layer=on_layer)

    return traces().get((choice, text, switches), run)


def get_survey(
    choice: ModelChoice,
    trace: Trace,
    part: str,
    switches: Switches | None,
    on_layer: Callable[[int, int], None] | None = None,
) -> Survey:
    """Return thumbnails and measures of all heads of a trace, seen under `switches` (None: those of its pass)."""
    key = ("survey", choice, trace.text, trace.switches, part, switches)
    return results().get(key, lambda: survey(trace, part=part, switches=switches, on_layer=on_layer))


def get_battery(choice: ModelChoice, part: str, on_text: Callable[[int, int], None] | None = None) -> BatteryScores:
    """Return how each head of a model scores on the reference texts: a pass a text, once a model."""
    engine = get_engine(choice)

    def passes() -> Iterator[tuple[str, Trace]]:
        texts = battery_texts()
        for done, item in enumerate(texts):
            if on_text is not None:
                on_text(done + 1, len(texts))
            key = (choice, item.text, Switches())  # kept, so that a click meanwhile doesn't begin it anew
            yield item.kind, traces().get(key, lambda item=item: engine.trace(item.text))

    return results().get(("battery", choice, part), lambda: score_battery(passes(), part=part))
