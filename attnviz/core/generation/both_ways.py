"""A text continued with a cache and without: what came out, how far apart, how long it took. NumPy only."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.core.generation.step import Step


@dataclass(frozen=True)
class BothWays:
    """The same steps taken twice.

    Attributes:
        n_tokens: (steps,) tokens that the model had read at each step.
        cached, plain: (steps,) seconds of each step with the cache and without; the first one reads the whole text.
        same_tokens: True if both ways chose the same tokens.
        largest_gap: the largest absolute difference between logits of the same step.
    """

    n_tokens: tuple[int, ...]
    cached: tuple[float, ...]
    plain: tuple[float, ...]
    same_tokens: bool
    largest_gap: float

    @property
    def ratio(self) -> float:
        """How many times as long a step takes without the cache, by medians of all steps but the first."""
        later = slice(1, None) if len(self.cached) > 1 else slice(None)
        return statistics.median(self.plain[later]) / statistics.median(self.cached[later])


def both_ways(cached: Sequence[Step], plain: Sequence[Step]) -> BothWays:
    """Compare the steps of two continuations of one text.

    Args:
        cached: with the cache.
        plain: as many, without.

    Raises:
        ValueError: no step, or not as many.
    """
    if not cached or len(cached) != len(plain):
        raise ValueError(f"expected as many steps with the cache as without, got {len(cached)} and {len(plain)}")
    return BothWays(
        n_tokens=tuple(step.token.index for step in cached),
        cached=tuple(step.seconds for step in cached),
        plain=tuple(step.seconds for step in plain),
        same_tokens=[step.token.id for step in cached] == [step.token.id for step in plain],
        largest_gap=max(float(np.abs(a.logits - b.logits).max()) for a, b in zip(cached, plain, strict=True)),
    )
