"""A head's map as it is shown: its numbers, rows and columns, and the sentences that go with it. NumPy only.

`shown_map` alone decides what is shown; pages, slides, files and the command line take their numbers from there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnviz.core.maps.captions import caption, heading
from attnviz.core.maps.choice import MOST_CELLS, MapChoice, Scale, Shows
from attnviz.core.maps.cut import Cut, Side, Values, Work, cells, cut_map
from attnviz.core.text.words import Item
from attnviz.core.trace.head import Head
from attnviz.core.trace.pooling import pool_largest
from attnviz.core.values.rollout import rollout

Kind = Literal["weights", "sizes", "difference"]
Places = tuple[tuple[int, int], ...]

BAR_TITLES = {"written": "size of what is written", "rollout": "rollout: share of the row"}
DIFFERENCES = {"written": "difference in size", "rollout": "difference in rollout"}
POOLED = {"written": "size", "rollout": "rollout"}


@dataclass(frozen=True)
class Axis:
    """The rows or the columns of a map that is shown.

    Attributes:
        items: the tokens in each of them; empty for blocks of a pooled map.
        labels: their texts; `numbers`: their places in the text, from 0.
    """

    items: tuple[Item, ...]
    labels: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def start(self) -> int:
        """The first of neighbours' numbers, which axes count on from; 0 where one is missing between them."""
        return self.numbers[0] if self.numbers[-1] - self.numbers[0] == len(self.numbers) - 1 else 0

    def place(self, token: int | None) -> int | None:
        """Return where a token is; None if it isn't here."""
        return next((place for place, item in enumerate(self.items) if token in item.tokens), None)


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A map as it is on the screen.

    Attributes:
        shows: "tokens", "words", "written" or "rollout".
        values: (rows, columns); `allowed`: False where no look is possible.
        rows, columns: what they stand for.
        framed, crossed: (row, column) places of the chosen cell, and of forbidden looks.
        hidden: True if special tokens were left out.
        kind: "weights" lie from 0 to 1, "sizes" are 0 or more, a "difference" lies around 0.
        scale: of the colours, as figures take it.
        block: tokens along a side of each square; 1 unless the map is pooled.
        heading: over the map; `bar_title`: of its colours, None: a weight's own; `caption`: below it, plain text.
        name: for names of files: "L13 H8 words".
    """

    shows: Shows
    values: Values
    allowed: NDArray[np.bool_]
    rows: Axis
    columns: Axis
    framed: Places
    crossed: Places
    hidden: bool
    kind: Kind
    scale: Scale
    block: int
    heading: str
    bar_title: str | None
    caption: str
    name: str

    @property
    def pooled(self) -> bool:
        """True if each square is a block of tokens or words."""
        return self.block > 1

    def tokens(self, row: int, column: int) -> tuple[int, int]:
        """Return the tokens that a cell stands for: of a word its last one, which has read all of it."""
        return self.rows.items[row].tokens[-1], self.columns.items[column].tokens[-1]


def all_layers(head: Head) -> NDArray[np.float64]:
    """Return (tokens, tokens) all layers of the head's pass as one map."""
    trace = head.trace
    layers = trace.layers_of(head.part)
    return rollout(trace.layer_weights(layer, part=head.part, switches=head.switches) for layer in layers)


def _unknown(head: Head) -> Values:
    raise ValueError("a map of what a head writes needs `write`, which returns (keys, d_model) for a head")


def shown_map(
    before: Head, after: Head, choice: MapChoice, *, write: Work = _unknown, roll: Work = all_layers
) -> ShownMap:
    """Return the map that was chosen: values, labels and the sentences that go with them.

    Args:
        before: the head without the switches; `after`: with them.
        after: see `before`.
        choice: what is to be seen.
        write: returns (keys, d_model) what a head writes for each key; needed if that is shown.
        roll: returns all layers of the head's pass as one map, for who keeps it.

    Raises:
        ValueError: what a head writes is to be shown, and nobody says what that is.
    """
    head, less = _heads(before.tile(choice.tokens), after.tile(choice.tokens), choice)
    made = cells(head, choice.shows, write, roll)
    taken_away = None if less is None else cells(less, choice.shows, write, roll)
    cut = cut_map(made, taken_away, head, choice)
    shown = _shown(cut, choice, caption(cut, choice, head, after), after)
    return _pooled(shown) if max(shown.values.shape) > MOST_CELLS else shown


def _heads(before: Head, after: Head, choice: MapChoice) -> tuple[Head, Head | None]:
    """Return the head whose map is shown, and the one whose map is taken away from it."""
    if choice.view == "before":
        return before, None
    is_pooled = choice.tokens.stop is None and max(map(len, after.trace.tokens_of(after.part))) > MOST_CELLS
    return after, before if choice.view == "difference" and not is_pooled else None  # a block would hide what went down


def _shown(cut: Cut, choice: MapChoice, sentences: str, head: Head) -> ShownMap:
    rows, columns = _axis(cut.rows), _axis(cut.columns)
    shows, chosen = choice.shows, (choice.query, choice.key)
    name = "all heads" if shows == "rollout" else head.name
    return ShownMap(
        shows=shows,
        values=cut.values[cut.place],
        allowed=cut.allowed[cut.place],
        rows=rows,
        columns=columns,
        framed=_places(rows, columns, [] if shows == "rollout" or None in chosen else [chosen]),
        crossed=_places(rows, columns, choice.forbidden if shows in ("tokens", "written") else []),
        hidden="special" in (*cut.rows.groups, *cut.columns.groups),
        kind="difference" if cut.difference else "sizes" if shows == "written" else "weights",
        scale="linear" if cut.difference else _scale(columns, choice.scale),
        block=1,
        heading=heading(head, shows),
        bar_title=(DIFFERENCES if cut.difference else BAR_TITLES).get(shows),
        caption=sentences,
        name=name if shows == "tokens" else f"{name} {shows}",
    )


def _axis(side: Side) -> Axis:
    items = tuple(side.items[place] for place in side.shown)
    return Axis(items, tuple(item.label for item in items), tuple(side.numbers[place] for place in side.shown))


def _places(rows: Axis, columns: Axis, looks: Iterable[tuple[int | None, int | None]]) -> Places:
    """Return the cells of looks, without those that aren't shown."""
    found = ((rows.place(query), columns.place(key)) for query, key in looks)
    return tuple((row, column) for row, column in found if row is not None and column is not None)


def _scale(columns: Axis, scale: Scale) -> Scale:
    """Return the chosen colours; those without the first token need its column, or to know that it isn't here."""
    lost = columns.numbers[0] > 0 and columns.start == 0
    return "linear" if lost and scale == "without_first" else scale


def _pooled(whole: ShownMap) -> ShownMap:
    """Return a map whose squares are the largest values of blocks of rows and columns."""
    values, allowed, block = pool_largest(whole.values, whole.allowed, MOST_CELLS)
    name, noun = POOLED.get(whole.shows, "weight"), "words" if whole.shows == "words" else "tokens"
    blocks = f"Each square is the largest {name} of {block} x {block} {noun}. Show a part to see single tokens."
    return replace(
        whole,
        values=values,
        allowed=allowed,
        rows=_blocks(whole.rows.numbers, block),
        columns=_blocks(whole.columns.numbers, block),
        framed=(),
        crossed=(),
        scale="linear" if whole.scale == "without_first" else whole.scale,
        block=block,
        bar_title=f"largest {name}",
        caption=f"{blocks} {whole.caption}".strip(),
    )


def _blocks(numbers: tuple[int, ...], block: int) -> Axis:
    """Return a name for each block of neighbours.

    >>> _blocks((0, 1, 2), 2).labels
    ('0–1', '2–2')
    """
    starts = range(0, len(numbers), block)
    labels = tuple(f"{numbers[i]}–{numbers[min(i + block, len(numbers)) - 1]}" for i in starts)
    return Axis((), labels, tuple(range(len(labels))))
