"""What somebody chose to see of a head's map, as plain data."""

from dataclasses import dataclass, field
from typing import Literal

Shows = Literal["tokens", "words", "written", "rollout"]
View = Literal["after", "before", "difference"]
Scale = Literal["linear", "sqrt", "without_first"]

MOST_CELLS = 160  # rows or columns that are drawn one by one; more are pooled, or shown in part
PART = 96  # tokens a side of a part


@dataclass(frozen=True)
class MapChoice:
    """What is to be seen of a head's map; the defaults show all of its weights.

    Attributes:
        shows: weights of "tokens" or of "words", sizes of what is "written", or a "rollout" over all layers.
        view: under the switches, before them, or the difference.
        scale: of the colours.
        tokens: which of them the map shows; a map of more than MOST_CELLS is pooled.
        special: False hides special tokens.
        query, key: the chosen tokens, counted in the whole text.
        forbidden: (query, key) looks to cross out.
        reason: why it isn't what was asked for, "" if it is.
    """

    shows: Shows = "tokens"
    view: View = "after"
    scale: Scale = "linear"
    tokens: slice = field(default_factory=lambda: slice(None))
    special: bool = True
    query: int | None = None
    key: int | None = None
    forbidden: tuple[tuple[int, int], ...] = ()
    reason: str = ""

    @property
    def part(self) -> slice:
        """The tokens that are drawn one by one: those of the map, or the first ones of a text that is too long."""
        return slice(0, PART) if self.tokens.stop is None else self.tokens


def chosen_tokens(n_tokens: int, start: int | None) -> slice:
    """Return the tokens that a map shows: all where single cells have room, else a part, or all of them pooled.

    Args:
        n_tokens: of the text.
        start: the first token of the part; None: the whole text.

    >>> chosen_tokens(11, None), chosen_tokens(200, None), chosen_tokens(200, 150)
    (slice(0, 11, None), slice(None, None, None), slice(104, 200, None))
    """
    if n_tokens <= MOST_CELLS:
        return slice(0, n_tokens)
    if start is None:
        return slice(None)
    first = min(max(start, 0), n_tokens - PART)
    return slice(first, first + PART)
