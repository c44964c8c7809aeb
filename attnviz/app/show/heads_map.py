"""One number for each head of the model as a map to click, and heads by name as buttons."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.cell_picker.cell_picker import cell_picker
from attnviz.app.shell.visit import Visit, choose_head
from attnviz.app.show.charts import draw, heads_table
from attnviz.app.show.facts import Facts
from attnviz.figures import layers_by_heads

FLAT = 330  # px of a map with many layers and few heads, whose cells are small


def heads_map(
    visit: Visit,
    key: str,
    values: NDArray[np.float64],
    layers: Sequence[int],
    *,
    about: Facts,
    table: NDArray[np.float64] | None = None,
    **look: Any,
) -> None:
    """Draw numbers below and above 0, one a head; a click on a cell selects its head.

    Args:
        visit: whose head is framed.
        key: of the chart.
        values: (layers, heads).
        layers: their numbers.
        about: what is true of the numbers, for the files.
        table: (layers, heads) numbers for the table, if it lists others than the map.
        **look: `bar_title`, `value_range` and `how_to_read` of `attnviz.figures.layers_by_heads`.
    """
    figure = layers_by_heads(
        values,
        layers,
        kind="difference",
        marked=[(visit.layer, visit.head)],
        theme=visit.theme,
        height=FLAT if len(layers) > 2 * values.shape[1] else None,
        **look,
    )
    numbers = values if table is None else table
    draw(figure, key, f"{key} {visit.info.name}", lambda: heads_table(numbers, layers), about=about)
    cell_picker(key, 0, on_pick=partial(_pick, tuple(layers)), key=f"pick-{key}")


def head_buttons(key: str, heads: Iterable[tuple[int, int, str]]) -> None:
    """Show a button for each (layer, head, what to say about it); a click selects the head."""
    with st.container(horizontal=True, gap="small", key=f"heads-{key}"):
        for layer, head, said in heads:
            head_button(key, layer, head, f" {said}" if said else "")


def head_button(key: str, layer: int, head: int, said: str = "", **look: Any) -> None:
    """Show a button that selects a head; `said` stands behind its name."""
    label = f"L{layer} H{head}{said}"
    st.button(label, key=f"{key} {layer} {head}", on_click=choose_head, args=(layer, head), **look)


def signed(value: float) -> str:
    """Return a number with its sign and a true minus.

    >>> signed(-0.125), signed(0.5), signed(-0.001)
    ('−0.12', '+0.50', '0.00')
    """
    text = f"{value:+.2f}".replace("-", "−")
    return text if text[1:] != "0.00" else "0.00"


def _pick(layers: tuple[int, ...], cell: tuple[int, int]) -> None:
    head, row = cell  # layers run from left to right
    choose_head(layers[row], head)
