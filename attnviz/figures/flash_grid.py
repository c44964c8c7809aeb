"""The grid of blocks that FlashAttention walks through: done, in work, left out, to come. Uses NumPy and plotly."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import MAX_SIDE, positions, square_cells, token_axis
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import Cell, frames, hatching
from attnviz.figures.theme import Bools, Settings, Theme, escape

STATES = ("to come", "done", "left out", "in work")
SIGNS = ("", "✓", "", "●")
MOST_SIGNS = 20  # blocks a side that have room for a sign


def flash_grid(
    skipped: ArrayLike,
    now: Cell,
    *,
    query_names: Sequence[str],
    key_names: Sequence[str],
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw the blocks of one head's attention, row after row from left to right, up to the one that is in work.

    Args:
        skipped: (rows, columns) bool, True for blocks that the mask forbids altogether.
        now: row and column of the block that is worked on; those before it are done.
        query_names: which queries each row holds.
        key_names: which keys each column holds.
        **options: as `LookOptions` says; the height is 420 and more for larger labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, or there is no such block.
    """
    look = Look.of("flash_grid", options)
    states = _states(np.asarray(skipped, bool), now, query_names, key_names)
    down, across = token_axis(query_names, title="block of queries"), token_axis(key_names, title="block of keys")
    layout = square_cells(across, down) | {"shapes": _marks(states, now, look.colours)}
    words = _words(states, f"queries {query_names[now[0]]}, keys {key_names[now[1]]}", look)
    cells = _cells(states, query_names, key_names, look.colours)
    return finish([cells], layout, look, words, height=330 + 7 * look.label_size)


def _states(skipped: Bools, now: Cell, query_names: Sequence[str], key_names: Sequence[str]) -> NDArray[np.int8]:
    """Return (rows, columns): 0 to come, 1 done, 2 left out, 3 in work."""
    shape = (len(query_names), len(key_names))
    if skipped.shape != shape or not 1 <= min(shape) <= max(shape) <= MAX_SIDE:
        raise ValueError(f"expected {shape} blocks, 1 to {MAX_SIDE} a side, as the names say, got {skipped.shape}")
    if not (0 <= now[0] < shape[0] and 0 <= now[1] < shape[1]):
        raise ValueError(f"the block in work is one of {shape[0]} by {shape[1]}, got {now}")
    states = (np.arange(skipped.size).reshape(shape) < now[0] * shape[1] + now[1]).astype(np.int8)
    states[skipped] = 2
    if not skipped[now]:
        states[now] = 3
    return states


def _marks(states: NDArray[np.int8], now: Cell, theme: Theme) -> list[Settings]:
    left_out = [(int(row), int(column)) for row, column in np.argwhere(states == 2)]
    over = [hatching(left_out, theme.hatch)] if left_out else []
    return [*over, frames([now], theme.accent)]


def _cells(states: NDArray[np.int8], query_names: Sequence[str], key_names: Sequence[str], theme: Theme) -> go.Heatmap:
    colours = (theme.page, theme.measure[len(theme.measure) // 4], theme.masked, theme.measure[len(theme.measure) // 2])
    steps = [[(i + end) / len(STATES), colour] for i, colour in enumerate(colours) for end in (0, 1)]
    signs: Settings = {}
    if max(states.shape) <= MOST_SIGNS:
        signs = {"text": [[SIGNS[state] for state in line] for line in states], "texttemplate": "%{text}"}
    place: Settings = {"x": positions(states.shape[1]), "y": positions(states.shape[0]), "xgap": 2, "ygap": 2}
    scale: Settings = {"zmin": -0.5, "zmax": len(STATES) - 0.5, "colorscale": steps, "showscale": False}
    return go.Heatmap(z=states, **place, **scale, **_hover(states, query_names, key_names), **signs)


def _hover(states: NDArray[np.int8], query_names: Sequence[str], key_names: Sequence[str]) -> Settings:
    if states.size > MOST_SIGNS**2:
        return {"hoverinfo": "skip"}
    rows, columns = ([escape(name) for name in names] for names in (query_names, key_names))
    texts = [
        [f"queries {row}, keys {column}: {STATES[state]}" for column, state in zip(columns, line, strict=True)]
        for row, line in zip(rows, states, strict=True)
    ]
    return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}


def _words(states: NDArray[np.int8], in_work: str, look: Look) -> Words:
    n_down, n_across = states.shape
    to_come, done, left_out = (int((states == state).sum()) for state in range(3))
    return Words(
        alt=f"{look.opening}a grid of {n_down} by {n_across} blocks. In work: {in_work}. Done: "
        f"{done}, left out: {left_out}, to come: {to_come}.",
        how_to_read="Each cell is a block of queries (row) and keys (column): ● in work, ✓ done, hatched ones are "
        "left out because the mask forbids them.",
    )
