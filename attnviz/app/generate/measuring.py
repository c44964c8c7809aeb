"""Both ways really run, a step at a time, so that a click on Stop is heard between two steps."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from attnviz.core.generation.both_ways import BothWays, both_ways
from attnviz.core.generation.step import Step

LENGTHS = (16, 64, 128, 256, 512)  # tokens of text that a step is measured at
N_STEPS = 5  # at each length; the first reads the whole text


def lengths_within(limit: int) -> list[int]:
    """Return the lengths that leave a model with that limit room for all steps."""
    return [n for n in LENGTHS if n + N_STEPS <= limit]


class Measuring:
    """A measurement that is going on, in the visitor's session.

    A click begins a new run of the page while the old one may still be making a step, so a lock guards each step.

    Args:
        engine: continues the text.
        key: what makes two measurements different.
        text: repeated or cut to each of `lengths` tokens.
    """

    def __init__(self, engine: Any, key: tuple[Any, ...], text: str, lengths: Sequence[int]) -> None:
        self.key = key
        self.share, self.doing = 0.0, "Starting"
        self._found: list[BothWays] = []
        self._lock = threading.Lock()
        self._more = self._run(engine, text, lengths)

    def go_on(self, seconds: float) -> tuple[BothWays, ...] | None:
        """Take steps for about so long; return one entry for each length when all are done, else None.

        Left out are lengths at which the model ends its text before a second token.

        Raises:
            ValueError: the model can't be run this way.
        """
        end = time.monotonic() + seconds
        with self._lock:
            for share, doing in self._more:
                self.share, self.doing = share, doing
                if time.monotonic() > end:
                    return None
            return tuple(self._found)

    def _run(self, engine: Any, text: str, lengths: Sequence[int]) -> Iterator[tuple[float, str]]:
        for number, n in enumerate(lengths):
            body = text_of(engine, text, n)
            runs: dict[bool, list[Step]] = {True: [], False: []}
            for cached, word in ((True, "with"), (False, "without")):
                for step in engine.generate(body, N_STEPS, cache=cached):
                    runs[cached].append(step)
                    share = (number + (len(runs[cached]) / N_STEPS + (not cached)) / 2) / len(lengths)
                    yield share, f"{n} tokens, {word} the cache: step {len(runs[cached])} of {N_STEPS}"
            n_both = min(len(runs[True]), len(runs[False]))  # one may end its text where the other goes on
            if n_both > 1:
                self._found.append(both_ways(runs[True][:n_both], runs[False][:n_both]))


def text_of(engine: Any, text: str, n_tokens: int) -> str:
    """Return the text, repeated or cut so that it has n tokens or a few more, as the engine reads it."""
    once = max(1, len(engine.trace(text, max_tokens=n_tokens).tokens))
    body = (text.strip() + " ") * (n_tokens // once + 2)
    tokens = engine.trace(body, max_tokens=n_tokens).tokens
    return body[: tokens[-1].end]
