"""Every chart as files to download: picture, one HTML file, its table, and a script that computes one head again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

import attnviz
from attnviz.app.components.save_picture.save_picture import save_picture
from attnviz.app.shell.share import page_link
from attnviz.app.shell.visit import Visit
from attnviz.app.show.facts import Facts, where
from attnviz.core.export.head_files import (
    HeadNumbers,
    file_name_of,
    head_csv,
    head_json,
    head_npz,
    numbers_of,
    picture_file_name,
    script_of,
)
from attnviz.core.export.table_files import Columns, table_csv, table_json, table_npz
from attnviz.core.trace.head import Head
from attnviz.core.trace.switches import Switches
from attnviz.figures import figure_html

MIMES = {
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "npz": "application/octet-stream",
    "py": "text/x-python",
}
LABELS = {"html": "HTML", "csv": "CSV", "json": "JSON", "npz": "NPZ", "py": "Python script"}
HELP = {
    "html": "One file that opens without a network, with the picture as it is here.",
    "csv": "The numbers as a table for a spreadsheet.",
    "json": "The numbers for a program.",
    "npz": "The numbers for NumPy.",
    "py": "Loads the model with attnviz and computes these weights again.",
}
TABLES: Mapping[str, Callable[[Columns, Facts], str | bytes]] = {"csv": table_csv, "json": table_json, "npz": table_npz}
HEADS: Mapping[str, Callable[[HeadNumbers], str | bytes]] = {"csv": head_csv, "json": head_json, "npz": head_npz}
MOST_WORDS = 8  # of the text in a file's title

Makers = Mapping[str, Callable[[], str | bytes]]
"""What makes a file, by its ending; called only when the visitor wants it."""


@dataclass(frozen=True, eq=False)
class HeadFiles:
    """The files of one head's weights as a picture shows them, its tile the tokens that are shown.

    Attributes:
        head: which weights; `link`: the page's address.
    """

    head: Head
    link: str

    def numbers(self) -> HeadNumbers:
        """Return weights, scores and mask, with all that says where they come from."""
        numbers = numbers_of(self.head, version=attnviz.__version__)
        return replace(numbers, about=dict(numbers.about) | {"link": self.link})

    def script(self) -> str:
        """Return a Python program that computes the weights again."""
        return script_of(self.head, version=attnviz.__version__)

    def name(self, ending: str) -> str:
        """Return a file's name that says what is inside."""
        shown = self.head.queries
        name = file_name_of(self.head, ending)
        if shown is None:
            return name
        return f"{name.removesuffix(f'.{ending}')}-tokens-{shown.start}-{shown.stop - 1}.{ending}"


def head_of(visit: Visit, view: str, tokens: slice) -> HeadFiles | None:
    """Return the files of the selected head's weights as the map shows them; None for a view that shows no weights.

    Args:
        visit: what the visitor looks at.
        view: "after" or "before" the switches; any other isn't one head's weights.
        tokens: those that are drawn one by one.
    """
    if view not in ("after", "before"):
        return None
    shown = None if tokens.start == 0 and tokens.stop >= visit.n_tokens else tokens
    return HeadFiles(visit.head_in(view).tile(shown, shown), page_link())


def files_row(
    figure: Any, key: str, name: str, columns: Columns, *, about: Facts, head: HeadFiles | None = None
) -> None:
    """Show a button for each kind of file that a chart can be saved as.

    Args:
        figure: as it is drawn; None for one of attnviz's own components, which the browser saves as HTML too.
        key: of the chart.
        name: what it shows, in a few words.
        columns: its table, for files of a chart that isn't one head's map.
        about: what is true of the numbers, as attnviz.app.show.facts makes it.
        head: the head whose map it is; its files say more than `about`.
    """
    facts = where() | dict(about)
    named = head.name if head else partial(_named, name, facts)
    makers = _head_makers(figure, head) if head else _table_makers(figure, _title(name, facts), columns, facts)
    with st.container(horizontal=True, gap="small", key=f"{key}-files"):
        save_picture(key, named("png").removesuffix(".png"), key=f"{key}-picture", html=figure is None)
        for ending, make in makers.items():
            st.download_button(
                LABELS[ending],
                make,
                named(ending),
                MIMES[ending],
                key=f"{key}-{ending}",
                on_click="ignore",
                help=HELP[ending],
            )


def _table_makers(figure: Any, title: str, columns: Columns, facts: Mapping[str, Any]) -> Makers:
    page = {} if figure is None else {"html": partial(figure_html, figure, title=title, about=facts)}
    return page | {ending: partial(make, columns, facts) for ending, make in TABLES.items()}


def _head_makers(figure: Any, head: HeadFiles) -> Makers:
    def page() -> str:
        about = head.numbers().about
        return figure_html(figure, title=_title(f"{head.head.name} {about['title']}", about), about=about)

    numbers = {ending: partial(_written, make, head) for ending, make in HEADS.items()}
    can_run = head.head.trace.model.engine in ("torch", "numpy")
    return {"html": page} | numbers | ({"py": head.script} if can_run else {})


def _written(make: Callable[[HeadNumbers], str | bytes], head: HeadFiles) -> str | bytes:
    return make(head.numbers())


def _named(name: str, facts: Mapping[str, Any], ending: str) -> str:
    switches = Switches(**facts["switches"]) if "switches" in facts else None
    return picture_file_name(name, ending, text=facts.get("text", ""), switches=switches)


def _title(name: str, facts: Mapping[str, Any]) -> str:
    words = facts.get("text", "").split()
    text = " ".join(words[:MOST_WORDS]) + " …" * (len(words) > MOST_WORDS)
    return f"{name}: “{text}” (attnviz)" if text else f"{name} (attnviz)"
