"""What Compare puts beside each other: two heads, each with the pass and the switches that it is seen under."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnviz
from attnviz.core.compare.side_by_side import same_tokens
from attnviz.core.export.head_files import about_head
from attnviz.core.maps.choice import MOST_CELLS, PART
from attnviz.core.trace.head import Head
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.figures.theme import escape, shorten

HEIGHT = 560  # px of a map
TITLE = 38  # characters of a title that stay on one line


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two heads, `name` what it is called here, and what there is to say about it."""

    letter: str
    name: str
    head: Head
    notes: tuple[str, ...] = ()

    @property
    def trace(self) -> Maps:
        """The pass that it is seen in."""
        return self.head.trace

    @property
    def title(self) -> str:
        """What stands over the map."""
        return f"{self.letter}: {shorten(self.name, TITLE)}"

    @property
    def words(self) -> str:
        """What tells it apart from other sides, for names of files."""
        head, model = self.head.name, self.trace.model.title
        words = self.name if head in self.name else f"{head} {self.name}"
        return words if words.startswith(shorten(model, TITLE - len(head) - 1)) else f"{model} {words}"

    @property
    def of_text(self) -> bool:
        """True if the tokens that look are those of the visitor's text."""
        return self.head.part == self.trace.parts[0]

    @property
    def about(self) -> dict[str, Any]:
        """Where its numbers come from, for files."""
        return about_head(self.head, version=attnviz.__version__)

    @property
    def at_rest(self) -> bool:
        """True if nothing is switched."""
        return (self.head.switches or self.trace.switches).at_rest


@dataclass(frozen=True, eq=False)
class Tile:
    """The part of a side's map that is drawn.

    Attributes:
        weights, allowed: (queries, keys).
        sink: (queries,) the share of each row's weight that goes to a learned sink.
    """

    side: Side
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    weights: NDArray[np.float32]
    allowed: NDArray[np.bool_]
    sink: NDArray[np.float64]

    @property
    def outside(self) -> float:
        """The share of these rows' weight that lies on tokens outside the tile."""
        return max(0.0, 1 - float(self.weights.sum(axis=1).mean() + self.sink.mean()))


def tiles(a: Side, b: Side, start: int) -> tuple[Tile, Tile]:
    """Return the tokens of both that are drawn: all, or the same part of two long texts, from `start` on."""
    is_long = max(len(tokens) for side in (a, b) for tokens in side.head.tokens) > MOST_CELLS
    return _tile(a, start, is_long), _tile(b, _same_place(a, b, start), is_long)


def _same_place(a: Side, b: Side, start: int) -> int:
    """Return where B's part begins: at A's token, or at its word if other tokens make up the same text."""
    tokens, there = a.head.tokens[0], b.head.tokens[0]
    one_text = a.of_text and b.of_text and a.trace.text == b.trace.text
    if not one_text or not 0 < start < len(tokens) or same_tokens(tokens, there):
        return start
    first = tokens[min(start, max(0, len(tokens) - PART))]
    return next((i for i, token in enumerate(there) if not token.special and token.end > first.start), len(there))


def _tile(side: Side, start: int, is_long: bool) -> Tile:
    rows, columns = (_part(tokens, start) if is_long else slice(0, len(tokens)) for tokens in side.head.tokens)
    queries, keys = side.head.tokens
    head = side.head.tile(rows)  # (rows, all keys)
    sink = np.maximum(0, 1 - head.weights.sum(axis=1, dtype=np.float64))
    return Tile(side, queries[rows], keys[columns], head.weights[:, columns], head.allowed[:, columns], sink)


def _part(tokens: Sequence[Token], start: int) -> slice:
    start = min(start, max(0, len(tokens) - PART))
    return slice(start, min(start + PART, len(tokens)))


def short_names(switches: Switches) -> str:
    """Return what is switched in a few words.

    >>> short_names(Switches(causal=False, temperature=2, ablate={(1, 2), (0, 3)}))
    'no mask, temperature 2, 2 heads off'
    """
    words = [] if switches.causal is None else ["mask on" if switches.causal else "no mask"]
    words += [] if switches.scaled else ["no 1/√d"]
    words += [] if switches.temperature == 1 else [f"temperature {switches.temperature:g}"]
    for entries, one, several in (
        (switches.ablate, "1 head off", "heads off"),
        (switches.forbid, "1 forbidden look", "forbidden looks"),
    ):
        words += [one if len(entries) == 1 else f"{len(entries)} {several}"] if entries else []
    return ", ".join(words)


def isolated(label: str) -> str:
    """Return a label that can't reorder the words around it: one from right to left is isolated, as in figures.

    >>> isolated("cat"), ascii(isolated("חתול")[0])
    ('cat', "'\\\\u2068'")
    """
    return f"\u2068{label}\u2069" if escape(label).startswith("\u2068") else label


def numbered(token: Token) -> str:
    """Return a token's label and number for a sentence."""
    return f"{isolated(token.label)} ({token.index})"
