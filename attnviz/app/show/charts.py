"""A chart on a page: the figure, how to read it, and its numbers and files when asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.shell import palette
from attnviz.app.shell.markdown import plain
from attnviz.app.show.facts import Facts
from attnviz.app.show.files import HeadFiles, files_row
from attnviz.core.export.table_files import Columns
from attnviz.core.maps.shown import ShownMap
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Token
from attnviz.figures import head_map
from attnviz.figures.palettes import in_palette

Table = Mapping[str, Any] | Callable[[], Columns]
"""The columns of a table, or what makes them."""


def draw(
    figure: Any,
    key: str,
    filename: str,
    table: Table,
    *,
    about: Facts,
    head: HeadFiles | None = None,
) -> None:
    """Show a figure that is already in the page's theme, its description for screen readers, its table and its files.

    Args:
        figure: with "alt" and "how_to_read" in `layout.meta`, as attnviz.figures makes them.
        key: unique on the page.
        filename: of pictures saved from the browser, without ending.
        table: its columns, or what makes them, called only when the visitor opens it.
        about: what is true of the numbers, for the files, as attnviz.app.show.facts makes it.
        head: the head whose weights the figure shows, as attnviz.app.show.files.head_of makes it: its files hold
            scores and mask too, and a script.
    """
    draw_alone(figure, key, filename)
    numbers_box(figure, key, filename, table, about=about, head=head)


def draw_alone(figure: Any, key: str, filename: str, *, fills: bool = False) -> None:
    """Show a figure as `draw` does, without what stands below it; `fills`: as high as its place."""
    options = {"format": "svg", "filename": f"attnviz {filename}", "scale": 2}
    st.plotly_chart(
        in_palette(figure, palette.chosen()),
        key=key,
        height="stretch" if fills else "content",
        theme=None,
        alt=figure.layout.meta["alt"],
        config={"toImageButtonOptions": options, "displaylogo": False},
    )


def numbers_box(
    figure: Any,
    key: str,
    filename: str,
    table: Table,
    *,
    about: Facts,
    head: HeadFiles | None = None,
) -> None:
    """Offer how to read a figure, its table and its files; see `draw`."""
    figure = in_palette(figure, palette.chosen())
    box = st.expander("How to read it, numbers, files", key=f"{key}-table", on_change="rerun", type="compact")
    if box.open:
        with box:
            st.caption(plain(figure.layout.meta["how_to_read"]))
            columns = dict(table() if callable(table) else table)
            st.dataframe(columns, hide_index=True, height=300, key=f"{key}-numbers")
            files_row(figure, key, filename, columns, about=about, head=head)


@dataclass(frozen=True, eq=False)
class TokenMap:
    """Numbers of each query and key.

    Attributes:
        values: (queries, keys); `allowed`: True where the query may see the key.
        queries, keys: the tokens.
    """

    values: NDArray[Any]
    allowed: NDArray[np.bool_]
    queries: Sequence[Token]
    keys: Sequence[Token]

    def figure(self, **look: Any) -> Any:
        """Return the map, as `attnviz.figures.head_map` draws it, each token at its place in the text."""
        rows, columns = ([token.label for token in side] for side in (self.queries, self.keys))
        look |= {"query_start": self.queries[0].index, "key_start": self.keys[0].index}
        return head_map(self.values, rows, columns, allowed=self.allowed, **look)

    def table(self) -> Columns:
        """Return a column of queries and one of values for each key; empty where the mask forbids."""
        shown = np.where(self.allowed, self.values.astype(np.float64).round(6), np.nan)
        names = [_name(token) for token in self.keys]
        return {"query": [_name(token) for token in self.queries], **dict(zip(names, shown.T, strict=True))}


def of_head(head: Head) -> TokenMap:
    """Return the weights of a head's tile."""
    return TokenMap(head.weights, head.allowed, *head.tokens)


def draw_map(shown: TokenMap, key: str, filename: str, *, about: Facts, **look: Any) -> None:
    """Show a map of queries and keys with its table and files; see `draw`, and `head_map` for its look."""
    draw(shown.figure(**look), key, filename, shown.table, about=about)


def shown_table(shown: ShownMap) -> Columns:
    """Return a column of rows' names and one of values for each column of the map; empty where no look is possible."""
    sides = [
        [Token(number, 0, label, "", 0, 0, False) for number, label in zip(axis.numbers, axis.labels, strict=True)]
        for axis in (shown.rows, shown.columns)
    ]
    return TokenMap(shown.values, shown.allowed, *sides).table()


def heads_table(values: NDArray[np.float64], layers: Sequence[int]) -> Columns:
    """Return a column of layers and one of values for each head."""
    columns = {f"H{head}": values[:, head].round(6) for head in range(values.shape[1])}
    return {"layer": [f"L{layer}" for layer in layers], **columns}


def _name(token: Token) -> str:
    return f"{token.index} {token.label}"
