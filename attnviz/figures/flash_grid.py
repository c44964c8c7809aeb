"""The grid of blocks that FlashAttention walks through: done, in work, left out, to come. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, square_cells, token_axis
from attnviz.figures.heatmap import MAX_SIDE
from attnviz.figures.marks import Cell, frames, hatching
from attnviz.figures.theme import Settings, Theme, escape, finish, theme_of

STATES = ("to come", "done", "left out", "in work")
SIGNS = ("", "✓", "", "●")
MOST_SIGNS = 20  # blocks a side that have room for a sign


def flash_grid(
    skipped: ArrayLike,
    now: Cell,
    *,
    query_names: Sequence[str],
    key_names: Sequence[str],
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw the blocks of one head's attention, row after row from left to right, up to the one that is in work.

    Args:
        skipped: (rows, columns) bool, True for blocks that the mask forbids altogether.
        now: row and column of the block that is worked on; those before it are done.
        query_names: which queries each row holds.
        key_names: which keys each column holds.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: 420, and more for larger labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, or there is no such block.
    """
    states = _states(np.asarray(skipped, bool), now, query_names, key_names)
    look = theme_of(theme)
    figure = go.Figure(_cells(states, query_names, key_names, look))
    down, across = token_axis(query_names, title="block of queries"), token_axis(key_names, title="block of keys")
    layout: Settings = square_cells(across, down)
    left_out = [(int(row), int(column)) for row, column in np.argwhere(states == 2)]
    layout |= {"shapes": [frames([now], look.accent)]}
    if left_out:
        layout["shapes"] = [hatching(left_out, look.hatch), *layout["shapes"]]
    counts = [int((states == state).sum()) for state in range(len(STATES))]
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}a grid of {states.shape[0]} by {states.shape[1]} blocks. In work: queries "
        f"{query_names[now[0]]}, keys {key_names[now[1]]}. Done: "
        f"{counts[1]}, left out: {counts[2]}, to come: {counts[0]}.",
        how_to_read="Each cell is a block of queries (row) and keys (column): ● in work, ✓ done, hatched ones are "
        "left out because the mask forbids them.",
        label_size=label_size,
        height=height or 330 + 7 * label_size,
    )


def _states(
    skipped: NDArray[np.bool_], now: Cell, query_names: Sequence[str], key_names: Sequence[str]
) -> NDArray[np.int8]:
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


def _cells(states: NDArray[np.int8], query_names: Sequence[str], key_names: Sequence[str], look: Theme) -> go.Heatmap:
    colours = (look.page, look.measure[len(look.measure) // 4], look.masked, look.measure[len(look.measure) // 2])
    steps = [[(i + end) / len(STATES), colour] for i, colour in enumerate(colours) for end in (0, 1)]
    texts = [
        [
            f"queries {escape(row)}, keys {escape(column)}: {STATES[state]}"
            for column, state in zip(key_names, line, strict=True)
        ]
        for row, line in zip(query_names, states, strict=True)
    ]
    signs: Settings = {}
    if max(states.shape) <= MOST_SIGNS:
        signs = {"text": [[SIGNS[state] for state in line] for line in states], "texttemplate": "%{text}"}
    if states.size > MOST_SIGNS**2:
        texts = None
    return go.Heatmap(
        x=positions(states.shape[1]),
        y=positions(states.shape[0]),
        z=states,
        zmin=-0.5,
        zmax=len(STATES) - 0.5,
        colorscale=steps,
        showscale=False,
        xgap=2,
        ygap=2,
        hovertext=texts,
        hoverinfo="skip" if texts is None else None,
        hovertemplate=None if texts is None else "%{hovertext}<extra></extra>",
        **signs,
    )
