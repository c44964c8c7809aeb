"""Both ways really run, a step at a time, so that a click on Stop is heard between two steps."""

from collections.abc import Sequence

from attnviz.app.show.job import Say
from attnviz.core.generation.both_ways import BothWays, both_ways
from attnviz.core.generation.step import Step
from attnviz.models.engine import Engine

LENGTHS = (16, 64, 128, 256, 512)  # tokens of text that a step is measured at
N_STEPS = 5  # at each length; the first reads the whole text


def lengths_within(limit: int) -> list[int]:
    """Return the lengths that leave a model with that limit room for all steps."""
    return [n for n in LENGTHS if n + N_STEPS <= limit]


def measure_both(engine: Engine, text: str, lengths: Sequence[int], say: Say) -> tuple[BothWays, ...]:
    """Return one entry for each length, but those at which the model ends its text before a second token.

    Args:
        engine: continues the text.
        text: repeated or cut to each of `lengths` tokens.
        lengths: to measure at.
        say: told of each step.

    Raises:
        ValueError: the model can't be run this way.
    """
    found = []
    for number, n in enumerate(lengths):
        body = text_of(engine, text, n)
        runs: dict[bool, list[Step]] = {True: [], False: []}
        for cached, word in ((True, "with"), (False, "without")):
            for step in engine.generate(body, N_STEPS, cache=cached):
                runs[cached].append(step)
                n_steps = len(runs[cached])
                done = (2 * number + (not cached)) * N_STEPS + n_steps
                said = f"{n} tokens, {word} the cache: step {n_steps} of {N_STEPS}"
                say(done, 2 * N_STEPS * len(lengths), said)
        n_both = min(len(runs[True]), len(runs[False]))  # one may end its text where the other goes on
        if n_both > 1:
            found.append(both_ways(runs[True][:n_both], runs[False][:n_both]))
    return tuple(found)


def text_of(engine: Engine, text: str, n_tokens: int) -> str:
    """Return the text, repeated or cut so that it has n tokens or a few more, as the engine reads it."""
    once = max(1, len(engine.trace(text, max_tokens=n_tokens).tokens))
    body = (text.strip() + " ") * (n_tokens // once + 2)
    tokens = engine.trace(body, max_tokens=n_tokens).tokens
    return body[: tokens[-1].end]
