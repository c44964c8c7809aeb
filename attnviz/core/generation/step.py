"""One step of a model that continues a text: the new token, its rivals, and what the model remembers. NumPy only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.trace.records import LayerRecord, Token
from attnviz.core.trace.trace import Trace

Float = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Step:
    """One new token of a text, and how the model came to it.

    Steps of one text share their arrays, so that all of them can be kept.

    Attributes:
        token: the new one. Its `index` counts from the first token of the text, its `start` and `end` from the first
            letter: the text followed by the `text` of every new token is the decoded text. A character of several
            tokens belongs to the last of them; special tokens have no text.
        candidates: (label, probability) of the likeliest tokens, likeliest first, as the model itself has them: at
            temperature 1, before top_k and top_p.
        n_allowed: how many tokens could have been chosen, the likeliest ones: `candidates[:n_allowed]` are among them.
        rank: place of the chosen token among all, 0 for the likeliest; `probability`: its own, as in `candidates`.
        logits: (vocabulary,) read-only, of the model.
        seconds: the model's run of this step took.
        cache_bytes: held by the keys and values of all tokens that the model has read so far; 0 without a cache.
    """

    token: Token
    candidates: list[tuple[str, float]]
    n_allowed: int
    rank: int
    probability: float
    logits: Float
    seconds: float
    cache_bytes: int
    make_trace: Callable[[], Trace] = field(repr=False)

    @cached_property
    def trace(self) -> Trace:
        """The attention of all tokens that the model had read when it chose this one: text and new tokens before it.

        (T, T) for every head, with T = `token.index`: this token itself has no row yet, since the model reads it in
        the next step. `trace.next_logits` are the step's. Each row is the one of the step in which its token was first
        read, with a cache or without; where tokens see later ones, all rows are those of this step.
        """
        return self.make_trace()

    @property
    def cache(self) -> Mapping[int, tuple[Float, Float]]:
        """Layer -> (K, V), the keys and values that are kept, (kv_heads, T, d_head) each, read-only; else nothing."""
        if not self.cache_bytes:
            return {}
        records: Mapping[int, Any] = self.trace.records[self.trace.parts[0]]
        return {layer: (record.k, record.v) for layer, record in records.items() if isinstance(record, LayerRecord)}
