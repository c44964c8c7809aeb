"""One number for each head of a model, as a small map of layers and heads. Uses NumPy and plotly."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import square_cells
from attnviz.figures.colour import sequential
from attnviz.figures.marks import Cell, frames
from attnviz.figures.theme import Settings, colour_bar, escape, finish, number, theme_of

Across = Literal["layers", "heads"]


def layers_by_heads(
    values: ArrayLike,
    layers: Sequence[int],
    *,
    kind: Literal["measure", "difference"] = "measure",
    bar_title: str = "value",
    value_range: tuple[float, float] | None = None,
    marked: Sequence[Cell] = (),
    across: Across = "layers",
    how_to_read: str = "",
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw one number for each head, as a cell at its layer and its head.

    Args:
        values: (layers, heads); NaN where a layer has no such head: the page shows through.
        layers: number of each layer that has attention, rising, perhaps with gaps.
        kind: "measure" for numbers from 0 up, "difference" for numbers below and above 0.
        bar_title: what the colours measure.
        value_range: lowest and highest coloured value; None: 0 to the largest, for differences as far below as above.
        marked: (layer, head) numbers of heads to frame.
        across: what runs from left to right; "heads" suits a narrow page.
        how_to_read: one sentence; "" says where to look.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: so that cells have about the size of a fingertip.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, no value is finite, or a marked head doesn't exist.
    """
    numbers = _checked_heads(values, layers)
    look = theme_of(theme)
    low, high = value_range or _default_range(numbers, kind)
    figure = go.Figure(_cells(numbers, layers, across, number_format="+.3~g" if kind == "difference" else ".3~g"))
    figure.update_traces(
        zmin=low,
        zmax=high,
        colorscale=look.signed if kind == "difference" else sequential(look.measure),
        colorbar=colour_bar(bar_title, label_size, low, high),
    )
    n_heads = numbers.shape[1]
    layout = head_axes(layers, n_heads, across)
    layout |= {"shapes": head_frames(marked, layers, n_heads, across, look.accent)}
    texts = {
        "title": title,
        "alt": _alt(numbers, layers, title, bar_title),
        "how_to_read": how_to_read
        or f"Each cell is a head, named by its layer and its number: the stronger the colour, the "
        f"further its {bar_title} is from 0.",
    }
    n_down = len(layers) if across == "heads" else n_heads
    needed = 80 + 6 * label_size + max(24, round(1.3 * label_size)) * n_down
    return finish(
        figure, layout, theme=look, label_size=label_size, height=height or needed, top=4 * label_size, **texts
    )


def heads_changed(
    values: ArrayLike,
    layers: Sequence[int],
    *,
    bar_title: str = "share of attention that moved",
    value_range: tuple[float, float] | None = None,
    switched: Sequence[Cell] = (),
    across: Across = "layers",
    title: str = "Which heads moved",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw how much each head's map changed when something was switched.

    A head that is switched off keeps its own map: what changes lies in later layers.

    Args:
        values: (layers, heads) from 0 up, as the mean over queries of half the summed absolute differences of a row;
            NaN where a layer has no such head.
        layers: number of each layer that has attention.
        bar_title: what the colours measure.
        value_range: lowest and highest coloured value; None: 0 to the largest.
        switched: (layer, head) numbers of the heads that were switched off, to frame.
        across: what runs from left to right; "heads" suits a narrow page.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the number of rows.

    Returns:
        A figure as `layers_by_heads` makes it.

    Raises:
        ValueError: shapes don't fit, no value is finite, or a switched head doesn't exist.
    """
    return layers_by_heads(
        values,
        layers,
        bar_title=bar_title,
        value_range=value_range,
        marked=switched,
        across=across,
        how_to_read="Each cell is a head: the stronger the colour, the more of its attention moved to other tokens; a "
        "head that is switched off keeps its own map, so look to the layers after it.",
        title=title,
        theme=theme,
        label_size=label_size,
        height=height,
    )


def head_axes(layers: Sequence[int], n_heads: int, across: Across) -> Settings:
    """Return axes with one category a layer and one a head, named by their numbers, as layout settings."""
    axes = {"layers": _number_axis(layers, "layer"), "heads": _number_axis(range(n_heads), "head")}
    if across not in axes:
        raise ValueError(f'across is "layers" or "heads", got {across!r}')
    down = "heads" if across == "layers" else "layers"
    cells = square_cells(axes[across], axes[down])
    return {name: axis | {"fixedrange": True} for name, axis in cells.items()}


def head_frames(
    heads: Sequence[Cell], layers: Sequence[int], n_heads: int, across: Across, colour: str
) -> list[Settings]:
    """Return a frame round each (layer, head) on those axes, as layout shapes.

    Raises:
        ValueError: there is no such head.
    """
    if not heads:
        return []
    places = [_place(head, layers, n_heads) for head in heads]
    return [frames(places if across == "heads" else [place[::-1] for place in places], colour)]


def _checked_heads(values: ArrayLike, layers: Sequence[int]) -> NDArray[np.float32]:
    numbers = np.array(values, dtype=np.float32)
    if numbers.ndim != 2 or len(numbers) != len(layers) or numbers.size == 0:
        raise ValueError(f"values must be ({len(layers)} layers, heads), got {numbers.shape}")
    if not np.isfinite(numbers).any():
        raise ValueError("no head has a finite value: there is nothing to draw")
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _default_range(numbers: NDArray[np.float32], kind: str) -> tuple[float, float]:
    if kind not in ("measure", "difference"):
        raise ValueError(f'kind is "measure" or "difference", got {kind!r}')
    largest = float(np.nanmax(np.abs(numbers))) or 1.0
    return (0.0 if kind == "measure" else -largest), largest


def _cells(numbers: NDArray[np.float32], layers: Sequence[int], across: Across, number_format: str) -> go.Heatmap:
    heads = np.arange(numbers.shape[1], dtype=np.int16)
    layer_numbers = np.array(layers, dtype=np.int16)
    if across == "layers":
        place: Settings = {"x": layer_numbers, "y": heads, "z": numbers.T, "hovertemplate": "L%{x} H%{y}: "}
    else:
        place = {"x": heads, "y": layer_numbers, "z": numbers, "hovertemplate": "L%{y} H%{x}: "}
    place["hovertemplate"] += f"%{{z:{number_format}}}<extra></extra>"
    return go.Heatmap(hoverongaps=False, xgap=1, ygap=1, **place)


def _number_axis(numbers: Sequence[int], name: str) -> Settings:
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": np.array(numbers, dtype=np.int16),
        "range": [-0.5, len(numbers) - 0.5],
        "title": {"text": escape(name)},
        "ticks": "",
        "tickangle": 0,
    }


def _place(cell: Cell, layers: Sequence[int], n_heads: int) -> Cell:
    layer, head = cell
    if layer not in layers or not 0 <= head < n_heads:
        raise ValueError(f"there is no head L{layer} H{head}: layers {list(layers)}, heads 0 to {n_heads - 1}")
    return list(layers).index(layer), head


def _alt(numbers: NDArray[np.float32], layers: Sequence[int], title: str, bar_title: str) -> str:
    order = np.argsort(-np.abs(np.nan_to_num(numbers)), axis=None, kind="stable")[:3]
    places = [divmod(int(place), numbers.shape[1]) for place in order]
    strongest = ", ".join(f"L{layers[row]} H{head} {number(numbers[row, head])}" for row, head in places)
    counted = f"{np.isfinite(numbers).sum()} heads in {len(layers)} layers"
    return f"{title + ': ' if title else ''}{bar_title} of {counted}. Strongest: {strongest}."
