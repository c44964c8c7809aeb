"""The large map as it is on the screen: one head's weights, words, sizes or a rollout, and its figure and table.

`shown_map` alone decides what is shown; the picture, its table and exports take their numbers from there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.captions import caption, heading
from attnviz.app.explore.cut import Cut, cut_map
from attnviz.app.explore.sources import MOST_CELLS, Values, chosen_view, is_whole, shown_view
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import map_table
from attnviz.core.export.table_files import Columns
from attnviz.core.text.words import Item
from attnviz.core.trace.pooling import pool_largest
from attnviz.core.trace.records import Token
from attnviz.figures import head_map
from attnviz.figures.map_views import retell, size_map

Kind = Literal["weights", "sizes", "difference"]

BAR_TITLES = {"written": "size of what is written", "rollout": "rollout: share of the row"}
DIFFERENCES = {"written": "difference in size", "rollout": "difference in rollout"}
POOLED = {"written": "size", "rollout": "rollout"}
RETOLD = {
    "words": {"token": "word"},
    "rollout": {"attention weights": "attention rollout", "the row's attention": "the row's share"},
}


@dataclass(frozen=True, eq=False)
class ShownMap:
    """The large map as it is on the screen.

    Attributes:
        shows: "tokens", "words", "written" or "rollout"; `noun`: "token" or "word".
        values: (rows, columns); `allowed`: False where no look is possible.
        rows, columns: the tokens in each row and column; empty for blocks of a pooled map.
        row_labels, column_labels: their texts; `row_numbers`, `column_numbers`: their places in the text, from 0.
        hidden: True if special tokens were left out.
        kind: "weights" lie from 0 to 1, "sizes" are 0 or more, a "difference" lies around 0.
        scale: of the colours, as figures take it.
        heading: over the map; `bar_title`: of its colours, None: a weight's own; `caption`: below it, plain text.
        head_name: "L13 H8" or "all heads"; `file_word`: for names of files, "" for tokens' weights.
    """

    shows: str
    noun: str
    values: Values
    allowed: NDArray[np.bool_]
    rows: tuple[Item, ...]
    columns: tuple[Item, ...]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    row_numbers: tuple[int, ...]
    column_numbers: tuple[int, ...]
    hidden: bool
    kind: Kind
    scale: str
    heading: str
    bar_title: str | None
    caption: str
    head_name: str
    file_word: str

    @property
    def pooled(self) -> bool:
        """True if each square is a block of tokens or words."""
        return not self.rows

    @property
    def name(self) -> str:
        """For names of files: "L13 H8 words"."""
        return f"{self.head_name} {self.file_word}".strip()

    def cell(self, query: int, key: int) -> tuple[int, int] | None:
        """Return the row that one token is in and the column that the other is in; None if they aren't here."""
        places = [
            next((place for place, item in enumerate(side) if token in item.tokens), None)
            for side, token in ((self.rows, query), (self.columns, key))
        ]
        return None if None in places else (places[0], places[1])

    def tokens(self, row: int, column: int) -> tuple[int, int]:
        """Return the tokens that a cell stands for: of a word its last one, which has read all of it."""
        return self.rows[row].tokens[-1], self.columns[column].tokens[-1]


def shown_map(visit: Visit) -> ShownMap:
    """Return the large map that the visitor chose to see: values, labels and the sentences that go with them."""
    shows, reason = chosen_view(visit)
    view = shown_view(visit)
    if is_whole(visit) and view == "difference":
        view = "after"  # the largest of a block would hide what went down
    cut = cut_map(visit, shows, view)
    shown = _shown(visit, cut, f"{reason} {caption(visit, cut)}".strip())
    return _pooled(shown) if max(shown.values.shape) > MOST_CELLS else shown


def shown_figure(visit: Visit, shown: ShownMap, **options: Any) -> Any:
    """Return the figure of a map as the page draws it, with the chosen cell and forbidden looks marked.

    Args:
        visit: what is selected.
        shown: made by `shown_map`.
        **options: handed on to the figure, such as `height`, `theme` or `label_size`.
    """
    starts = _start(shown.row_numbers), _start(shown.column_numbers)
    chosen = (st.session_state.query, st.session_state.key)
    looks = visit.switches.forbidden(visit.layer, visit.head) if shown.shows in ("tokens", "written") else ()
    options = {
        "allowed": shown.allowed,
        "scale": shown.scale,
        "query_start": starts[0],
        "key_start": starts[1],
        "marked": _places(shown, [chosen] if None not in chosen and shown.shows != "rollout" else [], starts),
        "forbidden": _places(shown, looks, starts),
        "theme": visit.theme,
    } | options
    if shown.kind == "sizes":
        return size_map(shown.values, shown.row_labels, shown.column_labels, bar_title=shown.bar_title, **options)
    options |= {"kind": shown.kind, "bar_title": shown.bar_title}
    figure = head_map(shown.values, shown.row_labels, shown.column_labels, **options)
    return retell(figure, RETOLD.get(shown.shows, {}))


def shown_table(shown: ShownMap) -> Columns:
    """Return a column of rows' names and one of values for each column of the map; empty where no look is possible."""
    sides = [
        [Token(number, 0, label, "", 0, 0, False) for number, label in zip(numbers, labels, strict=True)]
        for numbers, labels in (
            (shown.row_numbers, shown.row_labels),
            (shown.column_numbers, shown.column_labels),
        )
    ]
    return map_table(shown.values, shown.allowed, *sides)


def _shown(visit: Visit, cut: Cut, sentences: str) -> ShownMap:
    rows, columns = cut.shown_rows, cut.shown_columns
    shown_rows, shown_columns = (tuple(cut.rows[i] for i in rows), tuple(cut.columns[i] for i in columns))
    difference = cut.view == "difference"
    column_numbers = tuple(cut.column_numbers[i] for i in columns)
    return ShownMap(
        shows=cut.shows,
        noun="word" if cut.shows == "words" else "token",
        values=cut.values[np.ix_(rows, columns)],
        allowed=cut.allowed[np.ix_(rows, columns)],
        rows=shown_rows,
        columns=shown_columns,
        row_labels=tuple(item.label for item in shown_rows),
        column_labels=tuple(item.label for item in shown_columns),
        row_numbers=tuple(cut.row_numbers[i] for i in rows),
        column_numbers=column_numbers,
        hidden="special" in (*cut.row_groups, *cut.column_groups),
        kind="difference" if difference else "sizes" if cut.shows == "written" else "weights",
        scale="linear" if difference else _scale(column_numbers),
        heading=heading(visit, cut.shows),
        bar_title=(DIFFERENCES if difference else BAR_TITLES).get(cut.shows),
        caption=sentences,
        head_name="all heads" if cut.shows == "rollout" else visit.name,
        file_word="" if cut.shows == "tokens" else cut.shows,
    )


def _scale(column_numbers: tuple[int, ...]) -> str:
    """Return the chosen colours; those without the first token need its column, or to know that it isn't here."""
    lost = column_numbers[0] > 0 and _start(column_numbers) == 0
    return "linear" if lost and st.session_state.colours == "without_first" else st.session_state.colours


def _pooled(whole: ShownMap) -> ShownMap:
    """Return a map whose squares are the largest values of blocks of rows and columns."""
    values, allowed, block = pool_largest(whole.values, whole.allowed, MOST_CELLS)
    name = POOLED.get(whole.shows, "weight")
    blocks = f"Each square is the largest {name} of {block} x {block} {whole.noun}s. Show a part to see single tokens."
    return replace(
        whole,
        values=values,
        allowed=allowed,
        rows=(),
        columns=(),
        row_labels=_blocks(whole.row_numbers, block),
        column_labels=_blocks(whole.column_numbers, block),
        row_numbers=tuple(range(values.shape[0])),
        column_numbers=tuple(range(values.shape[1])),
        scale="linear" if whole.scale == "without_first" else whole.scale,
        bar_title=f"largest {name}",
        caption=f"{blocks} {whole.caption}".strip(),
    )


def _blocks(numbers: tuple[int, ...], block: int) -> tuple[str, ...]:
    """Return a name for each block of neighbours.

    >>> _blocks((0, 1, 2), 2)
    ('0–1', '2–2')
    """
    starts = range(0, len(numbers), block)
    return tuple(f"{numbers[i]}–{numbers[min(i + block, len(numbers)) - 1]}" for i in starts)


def _start(numbers: tuple[int, ...]) -> int:
    """Return the first of neighbours' numbers, which axes count on from; 0 where one is missing between them."""
    return numbers[0] if numbers[-1] - numbers[0] == len(numbers) - 1 else 0


def _places(shown: ShownMap, looks: Iterable[tuple[int, int]], starts: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the cells of looks as the figure counts them, without those that aren't on the screen."""
    cells = [shown.cell(query, key) for query, key in looks]
    return [(cell[0] + starts[0], cell[1] + starts[1]) for cell in cells if cell is not None]
