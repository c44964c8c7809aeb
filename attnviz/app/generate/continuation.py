"""The visitor's text, continued step by step: what was written so far, and how to write more."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.visit import Visit
from attnviz.core.generation.step import Step
from attnviz.core.trace.switches import Switches

MOST = 64  # tokens that the page writes


@dataclass
class Continuation:
    """A text as far as it has been continued; it lives in the visitor's session.

    A click begins a new run of the page while the old one may still be making a step, so a lock guards each step.

    Attributes:
        key: what makes two continuations different.
        more: gives further steps.
        cached: True if keys and values are kept.
        steps: one for each new token.
        ended: True if no more come.
        lock: held while a step is made.
    """

    key: tuple[Any, ...]
    more: Iterator[Step]
    cached: bool
    steps: list[Step] = field(default_factory=list)
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reach(self, n: int, show: Callable[[int], None]) -> None:
        """Write until n tokens are there or no more come; `show` is called with how many there are."""
        while self._add(n):
            show(len(self.steps))

    def _add(self, n: int) -> bool:
        """Make one more step unless n are there or no more come; return True if it came."""
        with self.lock:
            if len(self.steps) >= n or self.ended:
                return False
            step = next(self.more, None)
            if step is not None:
                self.steps.append(step)
            self.ended = step is None or len(self.steps) == MOST
            return step is not None


def options() -> dict[str, Any]:
    """Return how tokens are chosen, as `engine.generate` takes it, from what the visitor set."""
    chosen = st.session_state
    if chosen.warmth == "0":
        return {"temperature": 0, "seed": 0}
    return {
        "temperature": float(chosen.warmth),
        "top_k": chosen.top_k or None,
        "top_p": float(chosen.top_p) if chosen.top_p != "1" else None,
        "seed": chosen.seed,
    }


def continuation(visit: Visit) -> Continuation:
    """Return the visitor's continuation, begun anew if the text, the model, the switches or the choice are others.

    Raises:
        ValueError: this model or this text can't be continued; the text of the error is for the visitor.
    """
    switches = visit.switches if visit.in_pass else Switches()
    cached = switches.causal is not False and "cache" not in visit.info.cannot
    chosen = options()
    key = (visit.choice, visit.text, switches, tuple(chosen.items()))
    known = st.session_state.get("continuation")
    if known is not None and known.key == key:
        return known
    n_tokens = len(visit.rest.tokens)
    if (
        visit.rest.n_cut and n_tokens < visit.info.limit
    ):  # cut by the server; at the model's own limit the engine speaks
        n_all = n_tokens + visit.rest.n_cut
        raise ValueError(
            f"the text has {n_all:,} tokens, and texts of up to {n_tokens:,} are continued here: shorten it"
        )
    engine = cache.get_engine(visit.choice)
    more = engine.generate(visit.text, MOST, cache=cached, switches=switches, **chosen)
    st.session_state.continuation = Continuation(key, more, cached)
    return st.session_state.continuation
