"""What every engine offers, however it runs its model: one pass over a text, and going on with it token by token."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from attnviz.core import arguments
from attnviz.core.generation.sampling import Sampling
from attnviz.core.generation.step import Step
from attnviz.core.trace.records import LayerMaps, LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.models.generate import Run, begin, check_cache, check_model, steps
from attnviz.models.texts import check_ablate, check_text, cut
from attnviz.models.tokens import label_of, tokenize

Records = Mapping[str, Mapping[int, LayerRecord | LayerMaps]]  # part -> layer -> what the pass left behind
OnLayer = Callable[[int, int], None]
SWITCHES = "attnviz.Switches(...) or None"


class Engine(ABC):
    """A loaded model, ready to read and to write. Made by `attnviz.load`.

    One pass runs at a time; a second caller waits (`busy` tells).

    Attributes:
        tokenizer: of transformers, a fast one.
        info: what can be said about the model.
    """

    tokenizer: Any
    info: ModelInfo
    _lock: threading.Lock

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lock", threading.Lock())  # engines are frozen dataclasses

    @property
    def busy(self) -> bool:
        """True while a pass is running."""
        return self._lock.locked()

    def trace(
        self,
        text: str,
        *,
        target: str | None = None,
        switches: Switches | None = None,
        max_tokens: int | None = None,
        on_layer: OnLayer | None = None,
    ) -> Trace:
        """Run the model over a text once and return what its attention was computed from.

        Args:
            text: at least one visible character. What exceeds the model's limit is cut; `Trace.n_cut` counts it.
            target: decoder text of an encoder-decoder model; None gives its decoder the start token alone.
            switches: act inside the whole pass: later layers and predictions change too.
            max_tokens: cut there, if below the model's own limit.
            on_layer: called with (finished layers, all layers); what it raises ends the pass and nothing is kept.

        Raises:
            ValueError: no visible text, a number of tokens below 1, or a target or switches that can't act on this
                model or text.
        """
        check_text(text)
        switches = self._checked(switches)
        limit = self.info.limit
        if max_tokens is not None:
            limit = min(limit, arguments.whole("max_tokens", max_tokens, least=1, or_none=True))
        if on_layer is not None:
            arguments.function("on_layer", on_layer)
        tokens, n_cut = cut(tokenize(self.tokenizer, text), limit)
        if not tokens:
            raise ValueError("this model's tokenizer makes no token of that text; type some letters")
        if target is not None:
            target = arguments.text("target", target, "a string or None")
        targets = self._target_tokens(target, sys.maxsize)
        targets, n_target_cut = targets[:limit], max(0, len(targets) - limit)
        switches.check_forbid(self.info.layers, self.info.n_heads, len(tokens), len(tokens))
        with self._lock:
            started = time.perf_counter()
            records, logits = self._run(tokens, targets, switches, on_layer)
            seconds = time.perf_counter() - started
        sides = {"encoder": (tokens, tokens), "decoder": (targets, targets), "cross": (targets, tokens)}
        return Trace(
            text=text,
            target=target,
            model=self.info,
            records=records,
            part_tokens={part: sides[part] if targets else (tokens, tokens) for part in records},
            switches=switches,
            next_logits=logits,
            label_of=partial(label_of, self.tokenizer),  # of the tokenizer alone: a trace must not keep its model
            n_cut=n_cut + n_target_cut,
            seconds=seconds,
        )

    def generate(
        self,
        text: str,
        n: int = 64,
        *,
        cache: bool = True,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        switches: Switches | None = None,
        candidates: int = 10,
    ) -> Iterator[Step]:
        """Continue a text token by token, as `model.generate` of transformers does, without chat template or penalties.

        Args:
            text: at least one visible character, and fewer tokens than the model's limit.
            n: most tokens to add; a token that ends the text, which comes last, or the model's limit stops earlier.
            cache: keep keys and values, so that each step runs over one new token; False runs the whole text each time.
            temperature: 0 takes the likeliest token; `core.generation.sampling` says more of this and the next three.
            top_k: only so many tokens can be drawn.
            top_p: only the fewest likeliest tokens that have this probability together can be drawn.
            seed: of the random numbers.
            switches: act inside every run; forbidden looks count from the first token of the text, new tokens included.
            candidates: how many rivals each step names.

        Returns:
            A `Step` for each new token. The model runs, and others wait, only while the next one is being made.

        Raises:
            ValueError: at once, not at the first step: a model that doesn't continue texts or can't be listened to, no
                visible text, no room, a number out of range, switches that can't act, causal=False with a cache.
        """
        check_model(self.info)
        switches = self._checked(switches)
        cache = arguments.truth("cache", cache)
        run = self._runner(switches, cache=cache)
        beginning = begin(
            self.tokenizer,
            self.info,
            text,
            n,
            ends=self._ends(),
            sampling=Sampling(temperature, top_k, top_p, seed),
            switches=switches,
            n_candidates=candidates,
        )
        check_cache(cache, switches)
        return steps(self.tokenizer, self.info, beginning, run)

    @abstractmethod
    def _run(
        self, tokens: tuple[Token, ...], targets: tuple[Token, ...], switches: Switches, on_layer: OnLayer | None
    ) -> tuple[Records, np.ndarray | None]:
        """Return what one pass left behind, and (vocabulary,) the logits of the next token; the lock is held."""

    @abstractmethod
    def _runner(self, switches: Switches, *, cache: bool) -> Run:
        """Return what runs the model over a text that grows; ValueError if it can't keep keys and values."""

    @abstractmethod
    def _ends(self) -> frozenset[int]:
        """Return the ids of the tokens after which a text is over."""

    def _checked(self, switches: Switches | None) -> Switches:
        """Return the switches, at rest for None, after checking that the model can obey."""
        if switches is None:
            return Switches()
        self._check_switches(arguments.instance("switches", switches, Switches, SWITCHES))
        return switches

    def _check_switches(self, switches: Switches) -> None:
        """Raise ValueError if the model can't obey."""
        if not switches.scaled and "scaled" in self.info.cannot:
            raise ValueError(self.info.cannot["scaled"])
        check_ablate(switches, self.info)

    def _target_tokens(self, target: str | None, limit: int) -> tuple[Token, ...]:
        """Return the decoder's tokens of an encoder-decoder model; none for others."""
        if target is not None:
            raise ValueError(f"{self.info.title} has no decoder beside an encoder, so it takes no target text")
        return ()
