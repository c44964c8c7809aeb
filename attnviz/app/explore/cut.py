"""The large map with all its keys, and which of its rows and columns are on the screen."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.sources import Made, Values, is_whole, source_map, window
from attnviz.app.shell.visit import Visit
from attnviz.core.text.words import Item, item_of_tokens, merge_words, token_items, weight_on, word_items
from attnviz.core.values.value_weighted import row_shares

SHOWN = "shown"


@dataclass(frozen=True, eq=False)
class Cut:
    """A map and what is shown of it.

    Attributes:
        shows, view: what the cells show, and whether with the switches, without, or the difference.
        values: (rows, columns) all of them; `allowed`: where a look is possible.
        rows, columns: what they stand for; `row_numbers`, `column_numbers`: their places in the text.
        row_groups, column_groups: "shown", or why it isn't: "outside", "special", "space".
        shares: (shown rows, columns) of a row's weight, or of its size, with the switches where a difference is drawn.
    """

    shows: str
    view: str
    values: Values
    allowed: NDArray[np.bool_]
    rows: tuple[Item, ...]
    columns: tuple[Item, ...]
    row_numbers: tuple[int, ...]
    column_numbers: tuple[int, ...]
    row_groups: tuple[str, ...]
    column_groups: tuple[str, ...]
    shares: Values

    @property
    def shown_rows(self) -> NDArray[np.int64]:
        """Places of the rows on the screen."""
        return np.flatnonzero([group == SHOWN for group in self.row_groups])

    @property
    def shown_columns(self) -> NDArray[np.int64]:
        """Places of the columns on the screen."""
        return np.flatnonzero([group == SHOWN for group in self.column_groups])

    def share(self, *groups: str) -> float:
        """Return how much of the shown rows goes to columns of these groups, as the mean over these rows."""
        return weight_on(self.shares, [group in groups for group in self.column_groups])


def cut_map(visit: Visit, shows: str, view: str) -> Cut:
    """Return the map of what the cells show, with words put together and rows and columns told apart."""
    part = slice(0, None) if is_whole(visit) else window(visit)
    queries, keys = visit.after.tokens_of(visit.part)
    items = word_items if shows == "words" else token_items
    all_rows, columns = items(queries), items(keys)
    inside, inside_keys = range(len(queries))[part], range(len(keys))[part]
    numbered = [(n, _within(row, inside)) for n, row in zip(_numbers(all_rows), all_rows, strict=True)]
    numbered = [(number, row) for number, row in numbered if row.tokens]
    rows = tuple(row for _, row in numbered)
    row_groups, column_groups = (_groups(side, seen) for side, seen in ((rows, inside), (columns, inside_keys)))

    def made(which: str) -> Made:
        values, allowed = source_map(visit, shows, which, part)
        return _merged(values, allowed, rows, columns, part.start) if shows == "words" else (values, allowed)

    values, allowed = made(view)
    reference = made("after")[0] if view == "difference" else values
    kept = reference[[group == SHOWN for group in row_groups]]
    return Cut(
        shows=shows,
        view=view,
        values=values,
        allowed=allowed,
        rows=rows,
        columns=columns,
        row_numbers=tuple(number for number, _ in numbered),
        column_numbers=_numbers(columns),
        row_groups=row_groups,
        column_groups=column_groups,
        shares=row_shares(kept) if shows == "written" else kept,
    )


def _within(item: Item, inside: Container[int]) -> Item:
    return replace(item, tokens=tuple(token for token in item.tokens if token in inside))


def _numbers(items: Sequence[Item]) -> tuple[int, ...]:
    """Return each item's place in the text: tokens are counted, or words and special tokens but not white space."""
    counted = np.cumsum([item.kind != "space" for item in items])
    return tuple(int(number) - (item.kind != "space") for number, item in zip(counted, items, strict=True))


def _groups(items: Sequence[Item], inside: Container[int]) -> tuple[str, ...]:
    groups = tuple(_group(item, inside) for item in items)
    if SHOWN in groups:
        return groups
    return tuple("outside" if group == "outside" else SHOWN for group in groups)  # nothing but special ones or spaces


def _group(item: Item, inside: Container[int]) -> str:
    if not any(token in inside for token in item.tokens):
        return "outside"
    if item.kind == "special":
        return SHOWN if st.session_state.special else "special"
    return "space" if item.kind == "space" else SHOWN


def _merged(
    values: Values, allowed: NDArray[np.bool_], rows: Sequence[Item], columns: Sequence[Item], start: int
) -> Made:
    queries = item_of_tokens(rows, start + len(values))[start:]  # (queries,)
    keys = item_of_tokens(columns, values.shape[1]), len(columns)
    words, seen = (merge_words(tokens, queries, len(rows), keys) for tokens in (values, allowed))
    return words, seen > 0
