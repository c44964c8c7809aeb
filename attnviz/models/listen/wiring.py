"""What was found out about a model when it was loaded: how its attention is read, and how it is fed."""

from collections.abc import Mapping
from dataclasses import dataclass

from attnviz.models.listen.capture import Wires
from attnviz.models.listen.feed import Feed


@dataclass(frozen=True, eq=False)
class Wiring:
    """How to read a model's attention.

    Attributes:
        wires: how its attention modules are told apart; `feed`: what it is handed for a text.
        listens: True if q, k and v can be recorded; else only finished maps, for the `reason` given.
        layers: part -> its layer numbers; `heads`: part -> query and key/value heads of its first layer.
        causal: part -> whether its rule hides later keys.
        scaled: True if the model divides its scores by anything.
        extras: "soft-cap", "sinks", "bias": what else enters the softmax.
        limit: most tokens that its tables of positions hold.
        uncached: why a cache of keys and values can't be used, empty if it can; `checked`: tokens up to which a pass
            with a cache was seen to equal one without.
    """

    wires: Wires
    feed: Feed
    listens: bool
    reason: str
    layers: Mapping[str, tuple[int, ...]]
    heads: Mapping[str, tuple[int, int]]
    causal: Mapping[str, bool]
    scaled: bool
    extras: tuple[str, ...]
    limit: int
    uncached: str = ""
    checked: int = 0
