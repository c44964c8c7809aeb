"""A map with all its keys, and which of its rows and columns are shown. NumPy only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.maps.choice import MapChoice
from attnviz.core.text.words import Item, item_of_tokens, merge_words, token_items, weight_on, word_items
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Token
from attnviz.core.values.value_weighted import row_shares, value_weighted

Values = NDArray[np.floating[Any]]
Made = tuple[Values, NDArray[np.bool_]]
Work = Callable[[Head], ArrayLike]

SHOWN = "shown"


@dataclass(frozen=True)
class Side:
    """All rows or all columns of a map.

    Attributes:
        items: what they stand for; `numbers`: their places in the text.
        groups: "shown", or why it isn't: "outside", "special", "space".
    """

    items: tuple[Item, ...]
    numbers: tuple[int, ...]
    groups: tuple[str, ...]

    @property
    def shown(self) -> NDArray[np.int64]:
        """Places of those that are shown."""
        return np.flatnonzero(self.are(SHOWN))

    def are(self, group: str) -> NDArray[np.bool_]:
        """Return where that group is."""
        return np.array(self.groups) == group


@dataclass(frozen=True, eq=False)
class Cut:
    """A map and what is shown of it.

    Attributes:
        values: (rows, columns) all of them; `allowed`: where a look is possible.
        rows, columns: what they stand for, and which are shown.
        shares: (shown rows, columns) of a row's weight, or of its size, with the switches where a difference is drawn.
        difference: True if another map was taken away.
    """

    values: Values
    allowed: NDArray[np.bool_]
    rows: Side
    columns: Side
    shares: Values
    difference: bool

    @property
    def place(self) -> Any:
        """What cuts the shown cells out of a map of all of them."""
        return np.ix_(self.rows.shown, self.columns.shown)

    def share(self, group: str) -> float:
        """Return how much of the shown rows goes to columns of a group, as the mean over these rows."""
        return weight_on(self.shares, self.columns.are(group))


def cut_map(made: Made, less: Made | None, head: Head, choice: MapChoice) -> Cut:
    """Return a map with words put together where they are shown, and rows and columns told apart.

    Args:
        made: (queries of the choice, all keys) what the cells show, and where a look is possible.
        less: the same of the map that is taken away from it, None: none is.
        head: whose tokens they are.
        choice: what the cells show, and of which tokens.
    """
    sides = head.trace.tokens_of(head.part)
    rows, columns = (_side(tokens, choice) for tokens in sides)
    rows = _only_inside(rows, range(len(sides[0]))[choice.tokens])
    values, allowed = made if less is None else (made[0] - less[0], made[1] | less[1])
    reference = made[0]
    if choice.shows == "words":
        start = choice.tokens.start or 0
        values, seen = (_merged(tokens, rows.items, columns.items, start) for tokens in (values, allowed))
        allowed = seen > 0
        reference = values if less is None else _merged(reference, rows.items, columns.items, start)
    kept = reference[rows.shown]
    shares = row_shares(kept) if choice.shows == "written" else kept
    return Cut(values, allowed, rows, columns, shares, less is not None)


def cells(head: Head, shows: str, write: Work, roll: Work) -> Made:
    """Return (queries, keys) what the cells of a map of tokens show, and where a look is possible."""
    if shows == "rollout":
        flow = np.asarray(roll(head))[head.queries]
        return flow, flow > 0
    if shows == "written":
        return value_weighted(head.weights, write(head)), head.allowed
    return head.weights, head.allowed


def _side(tokens: Sequence[Token], choice: MapChoice) -> Side:
    """Return all items of a text, told apart."""
    items = (word_items if choice.shows == "words" else token_items)(tokens)
    counted = np.cumsum([item.kind != "space" for item in items])  # words and special tokens but not white space
    numbers = tuple(int(number) - (item.kind != "space") for number, item in zip(counted, items, strict=True))
    return Side(items, numbers, _groups(items, range(len(tokens))[choice.tokens], choice.special))


def _only_inside(side: Side, inside: range) -> Side:
    """Return the items with tokens in a part, and these tokens alone."""
    places = [place for place, group in enumerate(side.groups) if group != "outside"]
    items = [side.items[place] for place in places]
    return Side(
        tuple(replace(item, tokens=tuple(token for token in item.tokens if token in inside)) for item in items),
        tuple(side.numbers[place] for place in places),
        tuple(side.groups[place] for place in places),
    )


def _groups(items: Sequence[Item], inside: range, special: bool) -> tuple[str, ...]:
    kinds = {"word": SHOWN, "space": "space", "special": SHOWN if special else "special"}
    groups = tuple(kinds[item.kind] if any(token in inside for token in item.tokens) else "outside" for item in items)
    if SHOWN in groups:
        return groups
    return tuple("outside" if group == "outside" else SHOWN for group in groups)  # nothing but special ones or spaces


def _merged(tokens: ArrayLike, rows: Sequence[Item], columns: Sequence[Item], start: int) -> Values:
    """Return (rows, columns) from (queries, keys), sums over the keys of an item and means over its queries."""
    values = np.asarray(tokens)
    queries = item_of_tokens(rows, start + len(values))[start:]  # (queries,)
    return merge_words(values, queries, len(rows), (item_of_tokens(columns, values.shape[1]), len(columns)))
