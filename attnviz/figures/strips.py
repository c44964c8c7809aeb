"""One number for each head of a model, as a small map of layers and heads. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import square_cells
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import Cell, frames
from attnviz.figures.scales import Ends, scaled
from attnviz.figures.theme import Floats, Settings, escape, number

Across = Literal["layers", "heads"]
Kind = Literal["measure", "difference"]

MOVED = (
    "Each cell is a head: the stronger the colour, the more of its attention moved to other tokens; a head that is "
    "switched off keeps its own map, so look to the layers after it."
)


class HeadsOptions(LookOptions, total=False):
    """Keywords of `layers_by_heads`.

    Attributes:
        kind: "measure", the default, for numbers from 0 up; "difference" for numbers below and above 0.
        bar_title: what the colours measure.
        value_range: lowest and highest coloured value; None, the default: 0 to the largest, for differences as far
            below as above.
        marked: (layer, head) numbers of heads to frame.
        across: what runs from left to right: "layers", the default, or "heads", which suits a narrow page.
        how_to_read: one sentence; "", the default, says where to look.
    """

    kind: Kind
    bar_title: str
    value_range: tuple[float, float] | None
    marked: Sequence[Cell]
    across: Across
    how_to_read: str


@dataclass(frozen=True, kw_only=True)
class _HeadsLook(Look):
    """What `HeadsOptions` says, whole."""

    kind: Kind = "measure"
    bar_title: str = "value"
    value_range: tuple[float, float] | None = None
    marked: Sequence[Cell] = ()
    across: Across = "layers"
    how_to_read: str = ""


def layers_by_heads(values: ArrayLike, layers: Sequence[int], **options: Unpack[HeadsOptions]) -> go.Figure:
    """Draw one number for each head, as a cell at its layer and its head.

    Args:
        values: (layers, heads); NaN where a layer has no such head: the page shows through.
        layers: number of each layer that has attention, rising, perhaps with gaps.
        **options: as `HeadsOptions` and `LookOptions` say; by its height cells have about the size of a fingertip.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, no value is finite, or a marked head doesn't exist.
    """
    return _drawn(values, layers, _HeadsLook.of("layers_by_heads", options))


def heads_changed(
    values: ArrayLike,
    layers: Sequence[int],
    *,
    bar_title: str = "share of attention that moved",
    value_range: tuple[float, float] | None = None,
    switched: Sequence[Cell] = (),
    across: Across = "layers",
    **options: Unpack[LookOptions],
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
        **options: as `LookOptions` says; the title is "Which heads moved".

    Returns:
        A figure as `layers_by_heads` makes it.

    Raises:
        ValueError: shapes don't fit, no value is finite, or a switched head doesn't exist.
    """
    look = Look.of("heads_changed", options, title="Which heads moved")
    own = vars(look) | {"bar_title": bar_title, "value_range": value_range, "marked": switched, "across": across}
    return _drawn(values, layers, _HeadsLook(**own, how_to_read=MOVED))


def head_axes(layers: Sequence[int], n_heads: int, across: Across) -> Settings:
    """Return axes with one category a layer and one a head, named by their numbers, as layout settings."""
    axes = {"layers": _number_axis(layers, "layer"), "heads": _number_axis(range(n_heads), "head")}
    if across not in axes:
        raise ValueError(f'across is "layers" or "heads", got {across!r}')
    down = "heads" if across == "layers" else "layers"
    cells = square_cells(axes[across], axes[down])
    return {name: axis | {"fixedrange": True} for name, axis in cells.items()}


def head_cells(layers: Sequence[int], n_heads: int, across: Across, value: str = "") -> Settings:
    """Return where the cells of those axes lie, and hover texts that name their heads.

    Args:
        layers: number of each layer.
        n_heads: how many a layer has.
        across: what runs from left to right.
        value: what follows the name of a head, as plotly writes it.
    """
    places = {"layers": np.array(layers, dtype=np.int16), "heads": np.arange(n_heads, dtype=np.int16)}
    x, y, name = ("layers", "heads", "L%{x} H%{y}") if across == "layers" else ("heads", "layers", "L%{y} H%{x}")
    return {"x": places[x], "y": places[y], "hoverongaps": False, "hovertemplate": f"{name}{value}<extra></extra>"}


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


def _drawn(values: ArrayLike, layers: Sequence[int], look: _HeadsLook) -> go.Figure:
    numbers = _checked_heads(values, layers)
    n_heads = numbers.shape[1]
    reading = (
        "Each cell is a head, named by its layer and its number: the stronger the colour, the "
        f"further its {look.bar_title} is from 0."
    )
    words = Words(_alt(numbers, layers, look), look.how_to_read or reading)
    colours = look.colours.signed if look.kind == "difference" else look.colours.measures
    scale = scaled(colours, look.value_range or _default_range(numbers, look.kind), look, look.bar_title)
    frame = head_frames(look.marked, layers, n_heads, look.across, look.colours.accent)
    layout = head_axes(layers, n_heads, look.across) | {"shapes": frame}
    n_down = len(layers) if look.across == "heads" else n_heads
    height = 80 + 6 * look.label_size + max(24, round(1.3 * look.label_size)) * n_down
    figure = finish([_cells(numbers, layers, look)], layout, look, words, height=height, top=4 * look.label_size)
    return figure.update_traces(scale)


def _checked_heads(values: ArrayLike, layers: Sequence[int]) -> Floats:
    numbers = np.array(values, dtype=np.float32)
    if numbers.ndim != 2 or len(numbers) != len(layers) or numbers.size == 0:
        raise ValueError(f"values must be ({len(layers)} layers, heads), got {numbers.shape}")
    if not np.isfinite(numbers).any():
        raise ValueError("no head has a finite value: there is nothing to draw")
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _default_range(numbers: Floats, kind: str) -> Ends:
    if kind not in ("measure", "difference"):
        raise ValueError(f'kind is "measure" or "difference", got {kind!r}')
    largest = float(np.nanmax(np.abs(numbers))) or 1.0
    return (0.0 if kind == "measure" else -largest), largest


def _cells(numbers: Floats, layers: Sequence[int], look: _HeadsLook) -> go.Heatmap:
    value = ": %{z:+.3~g}" if look.kind == "difference" else ": %{z:.3~g}"
    z = numbers.T if look.across == "layers" else numbers
    return go.Heatmap(z=z, xgap=1, ygap=1, **head_cells(layers, numbers.shape[1], look.across, value))


def _number_axis(numbers: Sequence[int], name: str) -> Settings:
    categories = {"type": "category", "categoryorder": "array", "categoryarray": np.array(numbers, dtype=np.int16)}
    ends = [-0.5, len(numbers) - 0.5]
    return categories | {"range": ends, "title": {"text": escape(name)}, "ticks": "", "tickangle": 0}


def _place(cell: Cell, layers: Sequence[int], n_heads: int) -> Cell:
    layer, head = cell
    if layer not in layers or not 0 <= head < n_heads:
        raise ValueError(f"there is no head L{layer} H{head}: layers {list(layers)}, heads 0 to {n_heads - 1}")
    return list(layers).index(layer), head


def _alt(numbers: Floats, layers: Sequence[int], look: _HeadsLook) -> str:
    order = np.argsort(-np.abs(np.nan_to_num(numbers)), axis=None, kind="stable")[:3]
    places = [divmod(int(place), numbers.shape[1]) for place in order]
    strongest = ", ".join(f"L{layers[row]} H{head} {number(numbers[row, head])}" for row, head in places)
    counted = f"{np.isfinite(numbers).sum()} heads in {len(layers)} layers"
    return f"{look.opening}{look.bar_title} of {counted}. Strongest: {strongest}."
