"""One head's map: who looks at whom, as a heat map with queries down and keys across. Uses NumPy and plotly."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.core.values.first_column import first_column_share
from attnviz.figures.axes import positions, square_cells, token_axis
from attnviz.figures.colour import sequential
from attnviz.figures.full_names import unseen_names
from attnviz.figures.marks import Cell, crosses, frames, hatching, row_outline
from attnviz.figures.theme import Settings, Theme, colour_bar, finish, number, theme_of

Kind = Literal["weights", "scores", "difference"]
Scale = Literal["linear", "sqrt", "without_first"]

MAX_SIDE = 256  # cells a side; more would be smaller than a pixel on most screens
QUERY_AXIS = "query: the token that looks"
KEY_AXIS = "key: the token it looks at"

_NAMES = {"weights": "attention weights", "scores": "attention scores", "difference": "differences in attention weight"}
_BAR_TITLES = {
    "weights": "weight: share of the row",
    "scores": "score, before the softmax",
    "difference": "difference in weight",
}
_READING = {
    "weights": "Each row is a token that looks, each column a token it looks at: the stronger the colour, the larger "
    "the share of the row's attention; flat grey cells are forbidden by the mask.",
    "scores": "Each cell is a query times a key, before the softmax: purple is above 0, orange below, and only the "
    "differences within a row matter; flat grey cells are forbidden by the mask.",
    "difference": "Each cell shows how much its weight changed: purple gained, orange lost, the colour between them "
    "stayed as it was; flat grey cells are forbidden by the mask.",
}


@dataclass(frozen=True)
class _Map:
    """A checked map: values (queries, keys) as float32, NaN where nothing is drawn."""

    values: NDArray[np.float32]
    query_labels: Sequence[str]
    key_labels: Sequence[str]
    query_start: int
    key_start: int
    kind: Kind
    scale: Scale
    n_masked: int
    n_broken: int
    n_unpaired: int

    @property
    def first_is_aside(self) -> bool:
        """Whether the text's first token is a column here that the colours leave out."""
        return self.scale == "without_first" and self.key_start == 0 and len(self.key_labels) > 1

    @property
    def coloured(self) -> NDArray[np.float32]:
        """The values that get colours, NaN elsewhere."""
        if not self.first_is_aside:
            return self.values
        rest = self.values.copy()
        rest[:, 0] = np.nan
        return rest


def head_map(
    weights: ArrayLike,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    allowed: ArrayLike | None = None,
    kind: Kind = "weights",
    scale: Scale = "linear",
    value_range: tuple[float, float] | None = None,
    query_start: int = 0,
    key_start: int = 0,
    highlight_query: int | None = None,
    marked: Iterable[Cell] = (),
    forbidden: Iterable[Cell] = (),
    unpaired: ArrayLike | None = None,
    max_labels: int | None = None,
    bar_title: str | None = None,
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw one head's map with square cells, the first query on top.

    Weights have the fixed range 0 to 1, so that two maps can be compared; scores and differences are centred on 0 with
    as much room above as below. The colour bar states the range. Hover texts name both tokens, their indices and the
    true value, whatever the scale of the colours.

    Args:
        weights: (queries, keys): weights from 0 to 1, scores, or differences between two maps, as `kind` says.
        query_labels: text of each query's token; may repeat.
        key_labels: text of each key's token; may repeat.
        allowed: (queries, keys) bool, False where the mask forbids: flat grey, without hover. None: only scores of -inf
            are forbidden.
        kind: what the numbers are.
        scale: how weights become colours: "linear"; "sqrt", which tells small weights apart; or "without_first", which
            hatches the column of the text's first token, where heads rest, and fits the colours to the other columns.
        value_range: lowest and highest coloured value; None: as said above. The colour bar marks an end with values
            beyond it, and `how_to_read` counts them.
        query_start: index in the text of the first row, when this is a part of a map.
        key_start: index in the text of the first column.
        highlight_query: index in the text of a query whose row gets a thin outline.
        marked: (query, key) indices in the text of cells to frame.
        forbidden: (query, key) indices in the text of cells that the reader forbade, drawn with a cross.
        unpaired: (queries, keys) bool, True where the other map of a difference has no such cell: flat grey too, and
            counted in a note of its own.
        max_labels: print at most so many labels an axis; None: as many as fit without touching.
        bar_title: what the colours measure; None: by `kind`.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: 680, and more for larger labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, there are more than 256 rows or columns, or the numbers can't be what `kind` says.
    """
    _check_choice(kind, scale)
    drawn = _checked_map(weights, query_labels, key_labels, allowed, unpaired, kind, scale, query_start, key_start)
    look = theme_of(theme)
    low, high = value_range or _default_range(drawn)
    signed = kind != "weights"
    ends = {"beyond": beyond(drawn.values, low, high)} if signed else {}
    bar = colour_bar(bar_title or _BAR_TITLES[kind], label_size, low, high, by_root=scale == "sqrt", **ends)
    figure = go.Figure(_traces(drawn, look, low, high, bar))
    layout: Settings = square_cells(
        token_axis(key_labels, start=key_start, title=KEY_AXIS, max_labels=max_labels),
        token_axis(query_labels, start=query_start, title=QUERY_AXIS, max_labels=max_labels),
    )
    layout |= {"shapes": _shapes(drawn, look, highlight_query, marked, forbidden)}
    layout |= {"plot_bgcolor": look.masked, "dragmode": "zoom"}
    notes, asides = _notes(drawn, low, high), beyond_colours(drawn.values, low, high) if signed else []
    texts: Settings = {"title": title, "alt": _alt(drawn, title), "how_to_read": _READING[kind]}
    texts |= {"notes": notes, "asides": asides}
    needed = 680 + 20 * max(0, label_size - 13)
    return finish(
        figure, layout, theme=look, label_size=label_size, height=height or needed, top=4 * label_size, **texts
    )


def beyond(values: NDArray[np.floating], low: float, high: float) -> tuple[bool, bool]:
    """Return whether values lie below the colour bar, and above it.

    >>> beyond(np.array([[-3.0, 1.0]]), -2, 2)
    (True, False)
    """
    below, above = _outside(values, low, high)
    return bool(below.any()), bool(above.any())


def beyond_colours(values: NDArray[np.floating], low: float, high: float) -> list[str]:
    """Return a sentence that says how many cells lie beyond the colour bar, and how far; none if no cell does.

    >>> beyond_colours(np.array([[-3.0, 1.0]]), -2, 2)
    ['1 cell lies beyond the ends of the colour bar, at −3.']
    """
    below, above = _outside(values, low, high)
    outside = values[below | above]
    if not outside.size:
        return []
    farthest = number(outside[np.argmax(np.abs(outside))])
    if outside.size == 1:
        return [f"1 cell lies beyond the ends of the colour bar, at {farthest}."]
    return [f"{outside.size} cells lie beyond the ends of the colour bar, the farthest at {farthest}."]


def _outside(values: NDArray[np.floating], low: float, high: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    room = 1e-5 * (high - low)  # float32 and float64 may round an end of the bar apart
    return values < low - room, values > high + room


def _check_choice(kind: str, scale: str) -> None:
    if kind not in _NAMES:
        raise ValueError(f'kind is "weights", "scores" or "difference", got {kind!r}')
    scales = ("linear", "sqrt", "without_first") if kind == "weights" else ("linear",)
    if scale not in scales:
        raise ValueError(f"for {kind} scale is one of {scales}, got {scale!r}")


def _checked_map(
    weights: ArrayLike,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    allowed: ArrayLike | None,
    unpaired: ArrayLike | None,
    kind: Kind,
    scale: Scale,
    query_start: int,
    key_start: int,
) -> _Map:
    values = np.array(weights, dtype=np.float32)  # a copy: masked cells become NaN below
    visible = np.ones(values.shape, dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    alone = np.zeros(values.shape, dtype=bool) if unpaired is None else np.asarray(unpaired, dtype=bool)
    expected = (len(query_labels), len(key_labels))
    if values.shape != expected or visible.shape != expected or alone.shape != expected or 0 in expected:
        raise ValueError(
            f"the map must have at least one cell and be (queries, keys) = {expected} as the labels say, "
            f"got {values.shape} with allowed {visible.shape}"
        )
    if max(expected) > MAX_SIDE:
        raise ValueError(
            f"a map has at most {MAX_SIDE} rows and columns, got {expected}: pass a tile of it, with query_start and "
            "key_start, or pool it first"
        )
    if kind == "scores":
        visible = visible & ~np.isneginf(values)
    broken = visible & ~alone & ~np.isfinite(values)
    values[~visible | alone | broken] = np.nan
    if kind == "weights" and np.any((values < -1e-4) | (values > 1.01)):  # room for half precision
        raise ValueError(
            f"weights lie between 0 and 1, got {np.nanmin(values):.3g} to {np.nanmax(values):.3g}; for numbers before "
            'the softmax pass kind="scores", for differences kind="difference"'
        )
    left_out = {"n_masked": ~visible & ~alone, "n_broken": broken, "n_unpaired": alone}
    counts = {name: int(np.count_nonzero(cells)) for name, cells in left_out.items()}
    return _Map(values, query_labels, key_labels, query_start, key_start, kind, scale, **counts)


def _default_range(drawn: _Map) -> tuple[float, float]:
    largest = float(np.abs(np.nan_to_num(drawn.coloured)).max()) or 1.0
    if drawn.kind == "weights":
        return 0.0, largest if drawn.first_is_aside else 1.0
    return -largest, largest


def _traces(drawn: _Map, look: Theme, low: float, high: float, bar: Settings) -> list[go.Heatmap]:
    z = "%{z:.3~g}" if drawn.kind == "weights" else "%{z:+.3~g}"
    common = {
        "y": positions(len(drawn.query_labels), drawn.query_start),
        "hoverongaps": False,
        "hovertemplate": "%{y} (%{y:d}) → %{x} (%{x:d}): " + z + "<extra></extra>",
    }
    colours = look.signed
    if drawn.kind == "weights":
        colours = sequential(look.weight, power=2 if drawn.scale == "sqrt" else 1)
    columns = positions(len(drawn.key_labels), drawn.key_start)
    scale = {"zmin": low, "zmax": high, "colorscale": colours, "colorbar": bar}
    traces = [go.Heatmap(x=columns, z=drawn.coloured, **scale, **common)]
    if drawn.first_is_aside:  # its own trace, so that hover still tells the true weight
        flat = {"colorscale": [[0, look.set_aside], [1, look.set_aside]], "showscale": False}
        traces.append(go.Heatmap(x=columns[:1], z=drawn.values[:, :1], **flat, **common))
    return traces + unseen_names(traces[0], drawn.values, drawn.query_labels, drawn.key_labels)


def _shapes(
    drawn: _Map, look: Theme, highlight_query: int | None, marked: Iterable[Cell], forbidden: Iterable[Cell]
) -> list[Settings]:
    shapes = []
    if drawn.first_is_aside:
        rows = np.flatnonzero(np.isfinite(drawn.values[:, 0]))
        shapes.append(hatching(((int(row), 0) for row in rows), look.hatch))
    if highlight_query is not None:
        row, _ = _place(drawn, (highlight_query, drawn.key_start))
        shapes.append(row_outline(row, len(drawn.key_labels), look.accent))
    if framed := [_place(drawn, cell) for cell in marked]:
        shapes.append(frames(framed, look.accent))
    if crossed := [_place(drawn, cell) for cell in forbidden]:
        shapes.append(crosses(crossed, look.text))
    return shapes


def _place(drawn: _Map, cell: Cell) -> Cell:
    """Return the row and column of a cell given by its indices in the text."""
    row, column = cell[0] - drawn.query_start, cell[1] - drawn.key_start
    n_queries, n_keys = drawn.values.shape
    if not (0 <= row < n_queries and 0 <= column < n_keys):
        raise ValueError(
            f"this map shows queries {drawn.query_start} to {drawn.query_start + n_queries - 1} and keys "
            f"{drawn.key_start} to {drawn.key_start + n_keys - 1}, got query {cell[0]}, key {cell[1]} to mark"
        )
    return row, column


def _notes(drawn: _Map, low: float, high: float) -> list[str]:
    notes = []
    if drawn.first_is_aside:
        share = first_column_share(np.nan_to_num(drawn.values), np.isfinite(drawn.values))
        weight = "" if np.isnan(share) else f" On average it gets {share:.0%} of a row's attention."
        colours = f"Colours run from {number(low)} to {number(high)}."
        notes.append(f"Hatched: the first token, left out of the colours.{weight} {colours}")
    elif drawn.scale == "without_first":
        notes.append("The text's first token is not in this part of the map.")
    if drawn.scale == "sqrt":
        notes.append("Colours follow the square root of the weight, so that small weights show.")
    if drawn.kind == "difference" and not np.any(np.nan_to_num(drawn.values)):
        notes.append("The two maps are equal: every difference is 0.")
    if drawn.n_unpaired:
        notes.append(f"Grey as well: {drawn.n_unpaired} cells that only one map has.")
    if drawn.n_broken:
        notes.append(f"Left blank: allowed cells that are not finite numbers, {drawn.n_broken} of them.")
    return notes


def _alt(drawn: _Map, title: str) -> str:
    n_queries, n_keys = drawn.values.shape
    parts = [f"{title}: " if title else "", f"{_NAMES[drawn.kind]}, {n_queries} queries down, {n_keys} keys across."]
    has_choice = np.isfinite(drawn.values).sum(axis=1, keepdims=True) > 1
    size = np.where(has_choice, np.abs(np.nan_to_num(drawn.coloured)), 0.0)
    if size.any():
        row, column = divmod(int(size.argmax()), n_keys)
        value = number(drawn.values[row, column])
        parts.append(f" Strongest: from {drawn.query_labels[row]} to {drawn.key_labels[column]}, {value}.")
    if drawn.n_masked:
        parts.append(f" Forbidden by the mask: {drawn.n_masked} cells.")
    return "".join(parts)
