"""What the ways to find heads share: the trace on the screen, progress, the strip of all heads, and the list."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw, heads_table
from attnviz.app.show.facts import Facts, of_view
from attnviz.app.show.heads_map import head_button
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures import layers_by_heads
from attnviz.figures.theme import theme_of

SIDES = (5, 3)  # widths of the picture and the list
N_LISTED = 12
WIDTH = 96  # px of a button that names a head

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class Bar:
    """A number of a listed head, as it is written, and how long its bar is, from 0 to 1; None: no bar."""

    text: str
    share: float | None


@dataclass(frozen=True)
class Listed:
    """A head in a list, with a bar for each column."""

    layer: int
    head: int
    bars: tuple[Bar, ...]


def shown_trace(visit: Visit) -> Trace:
    """Return the trace whose maps are those on the screen, switches that act on the picture alone included.

    Where the map without the switches is chosen, it is the trace at rest; a difference is no map of weights, and gives
    the trace with them.
    """
    if map_choice(visit).view == "before":
        return visit.rest
    return replace(visit.after, switches=visit.switches) if visit.switched and not visit.in_pass else visit.after


def shown_key(visit: Visit) -> tuple[Hashable, ...]:
    """Return what tells the maps on the screen from others, for the cache."""
    switches, in_pass = (Switches(), False) if map_choice(visit).view == "before" else (visit.switches, visit.in_pass)
    return visit.choice, visit.text, switches, in_pass, visit.part


def with_progress(sentence: str, work: Callable[[OnStep], Any]) -> Any:
    """Do some work that tells how far it is, with a bar that says so, and return what it returns."""
    with passing() as bar:
        return work(lambda done, of: bar.progress(done / of, f"{sentence} {done} of {of}"))


def shown_facts(visit: Visit) -> Facts:
    """Return what is true of numbers of the maps on the screen, for files."""
    return of_view(visit, map_choice(visit).view)


def strip(visit: Visit, values: NDArray[np.float64], layers: Sequence[int], bar_title: str, about: Facts) -> None:
    """Draw one number from 0 to 1 for every head, with the selected head framed."""
    figure = layers_by_heads(
        values,
        layers,
        bar_title=bar_title,
        value_range=(0, 1),
        marked=[(visit.layer, visit.head)],
        how_to_read="Each cell is a head: the stronger the colour, the higher its score; the selected one is framed.",
        theme=visit.theme,
    )
    draw(figure, "found-strip", f"heads found {visit.info.name}", lambda: heads_table(values, layers), about=about)


def one_bar_each(entries: Iterable[tuple[int, int, float]]) -> list[Listed]:
    """Return heads for a list, each with its one number."""
    return [Listed(layer, head, (Bar(f"{value:.2f}", value),)) for layer, head, value in entries]


def head_list(visit: Visit, titles: Sequence[str], heads: Sequence[Listed]) -> None:
    """List heads, each a button that selects it, with its bars; `titles` are those of the columns."""
    with st.container(gap="xxsmall", key="found-heads"):
        with st.container(horizontal=True, gap="small"):
            st.html(_cells(["<b>head</b>"]), width=WIDTH)
            st.html(_cells([f"<b>{escape(title)}</b>" for title in titles]))
        for entry in heads:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                kind = "primary" if (entry.layer, entry.head) == (visit.layer, visit.head) else "secondary"
                head_button("found", entry.layer, entry.head, type=kind, width=WIDTH)
                st.html(_cells([_bar(bar, visit.theme) for bar in entry.bars]))


def _cells(cells: Sequence[str]) -> str:
    inside = "".join(f'<div style="flex:1 1 0;min-width:0">{cell}</div>' for cell in cells)
    return f'<div style="display:flex;gap:0.75rem;font-size:0.875rem">{inside}</div>'


def _bar(bar: Bar, theme: str) -> str:
    look = theme_of(theme)
    if bar.share is None:
        return escape(bar.text)
    width = 100 * min(max(bar.share, 0.0), 1.0)
    filled = f'<div style="height:0.375rem;width:{width:.1f}%;background:{look.first}"></div>'
    return f'{escape(bar.text)}<div style="background:{look.grid}">{filled}</div>'
