"""One head's map: who looks at whom, as a heat map with queries down and keys across. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.core.values.first_column import first_column_share
from attnviz.figures.axes import MAX_SIDE
from attnviz.figures.cells import FIRST_IS_ELSEWHERE, Cells, MapLook, MapOptions, map_figure, where_allowed
from attnviz.figures.look import Words
from attnviz.figures.marks import Cell, row_outline
from attnviz.figures.scales import Ends, beyond_colours, scaled
from attnviz.figures.theme import Bools, Floats, Settings, number

Kind = Literal["weights", "scores", "difference"]

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


class HeadMapOptions(MapOptions, total=False):
    """Keywords of `head_map`.

    Attributes:
        kind: what the numbers are: "weights", the default, "scores" or "difference".
        value_range: lowest and highest coloured value; None, the default: 0 to 1 for weights, else as far above 0 as
            below it. The colour bar marks an end with values beyond it, and `how_to_read` counts them.
        highlight_query: index in the text of a query whose row gets a thin outline; None, the default: no row does.
        unpaired: (queries, keys) bool, True where the other map of a difference has no such cell: flat grey too, and
            counted in a note of its own; None, the default: nowhere.
        max_labels: print at most so many labels an axis; None, the default: as many as fit without touching.
    """

    kind: Kind
    value_range: tuple[float, float] | None
    highlight_query: int | None
    unpaired: ArrayLike | None
    max_labels: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _HeadLook(MapLook):
    """What `HeadMapOptions` says, checked and whole."""

    kind: Kind = "weights"
    value_range: tuple[float, float] | None = None
    highlight_query: int | None = None
    unpaired: ArrayLike | None = None
    max_labels: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in _NAMES:
            raise ValueError(f'kind is "weights", "scores" or "difference", got {self.kind!r}')
        scales = ("linear",) if self.signed else ("linear", "sqrt", "without_first")
        if self.scale not in scales:
            raise ValueError(f"for {self.kind} scale is one of {scales}, got {self.scale!r}")

    @property
    def signed(self) -> bool:
        """Whether the numbers lie on both sides of 0."""
        return self.kind != "weights"


@dataclass(frozen=True, eq=False)
class _Map(Cells):
    """A checked map of a head, with counts of the cells that aren't drawn."""

    look: _HeadLook
    n_masked: int
    n_broken: int
    n_unpaired: int

    def place(self, cell: Cell) -> Cell:
        """Return the row and column of a cell given by its indices in the text.

        Raises:
            ValueError: the cell is no part of this map.
        """
        row, column = super().place(cell)
        n_queries, n_keys = self.values.shape
        if not (0 <= row < n_queries and 0 <= column < n_keys):
            first_query, first_key = self.look.query_start, self.look.key_start
            raise ValueError(
                f"this map shows queries {first_query} to {first_query + n_queries - 1} and keys "
                f"{first_key} to {first_key + n_keys - 1}, got query {cell[0]}, key {cell[1]} to mark"
            )
        return row, column


def head_map(
    weights: ArrayLike, query_labels: Sequence[str], key_labels: Sequence[str], **options: Unpack[HeadMapOptions]
) -> go.Figure:
    """Draw one head's map with square cells, the first query on top.

    Weights have the fixed range 0 to 1, so that two maps can be compared; scores and differences are centred on 0 with
    as much room above as below. The colour bar states the range. Hover texts name both tokens, their indices and the
    true value, whatever the scale of the colours.

    Args:
        weights: (queries, keys): weights from 0 to 1, scores, or differences between two maps, as `kind` says.
        query_labels: text of each query's token; may repeat.
        key_labels: text of each key's token; may repeat.
        **options: as `HeadMapOptions`, `MapOptions` and `LookOptions` say; the height is 680, and more for larger
            labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: shapes don't fit, there are more than 256 rows or columns, or the numbers can't be what `kind` says.
    """
    look = _HeadLook.of("head_map", options)
    drawn = _checked_map(weights, query_labels, key_labels, look)
    ends = look.value_range or _default_range(drawn)
    number_format = "+.3~g" if look.signed else ".3~g"
    pieces: Settings = {"outlines": _outline(drawn), "max_labels": look.max_labels}
    height = 680 + 20 * max(0, look.label_size - 13)
    return map_figure(drawn, _colours(drawn, ends), number_format, _words(drawn, ends), height=height, **pieces)


def _checked_map(weights: ArrayLike, query_labels: Sequence[str], key_labels: Sequence[str], look: _HeadLook) -> _Map:
    values = np.array(weights, dtype=np.float32)  # a copy: masked cells become NaN below
    visible = where_allowed(look.allowed, values.shape)
    alone = np.zeros(values.shape, dtype=bool) if look.unpaired is None else np.asarray(look.unpaired, dtype=bool)
    _check_shapes(values, visible, alone, (len(query_labels), len(key_labels)))
    if look.kind == "scores":
        visible = visible & ~np.isneginf(values)
    broken = visible & ~alone & ~np.isfinite(values)
    values[~visible | alone | broken] = np.nan
    if not look.signed:
        _check_weights(values)
    left_out = {"n_masked": ~visible & ~alone, "n_broken": broken, "n_unpaired": alone}
    counts = {name: int(np.count_nonzero(cells)) for name, cells in left_out.items()}
    return _Map(values, query_labels, key_labels, look, **counts)


def _check_shapes(values: Floats, visible: Bools, alone: Bools, expected: tuple[int, int]) -> None:
    if {values.shape, visible.shape, alone.shape} != {expected} or 0 in expected:
        raise ValueError(
            f"the map must have at least one cell and be (queries, keys) = {expected} as the labels say, "
            f"got {values.shape} with allowed {visible.shape}"
        )
    if max(expected) > MAX_SIDE:
        raise ValueError(
            f"a map has at most {MAX_SIDE} rows and columns, got {expected}: pass a tile of it, with query_start and "
            "key_start, or pool it first"
        )


def _check_weights(values: Floats) -> None:
    if np.any((values < -1e-4) | (values > 1.01)):  # room for half precision
        raise ValueError(
            f"weights lie between 0 and 1, got {np.nanmin(values):.3g} to {np.nanmax(values):.3g}; for numbers before "
            'the softmax pass kind="scores", for differences kind="difference"'
        )


def _default_range(drawn: _Map) -> Ends:
    largest = float(np.abs(np.nan_to_num(drawn.coloured)).max()) or 1.0
    if drawn.look.signed:
        return -largest, largest
    return 0.0, largest if drawn.first_is_aside else 1.0


def _colours(drawn: _Map, ends: Ends) -> Settings:
    look = drawn.look
    title = look.bar_title or _BAR_TITLES[look.kind]
    if look.signed:
        return scaled(look.colours.signed, ends, look, title, beyond=drawn.values)
    return scaled(look.colours.weights(by_root=look.by_root), ends, look, title, by_root=look.by_root)


def _outline(drawn: _Map) -> list[Settings]:
    """Return the outline of the row that was asked for; none as a rule."""
    look = drawn.look
    if look.highlight_query is None:
        return []
    row, _ = drawn.place((look.highlight_query, look.key_start))
    return [row_outline(row, len(drawn.key_labels), look.colours.accent)]


def _words(drawn: _Map, ends: Ends) -> Words:
    look = drawn.look
    asides = beyond_colours(drawn.values, ends) if look.signed else []
    return Words(_alt(drawn), _READING[look.kind], _notes(drawn, ends), asides)


def _notes(drawn: _Map, ends: Ends) -> list[str]:
    look = drawn.look
    notes = []
    if drawn.first_is_aside:
        notes.append(_aside_note(drawn, ends))
    elif look.scale == "without_first":
        notes.append(FIRST_IS_ELSEWHERE)
    if look.by_root:
        notes.append("Colours follow the square root of the weight, so that small weights show.")
    if look.kind == "difference" and not np.any(np.nan_to_num(drawn.values)):
        notes.append("The two maps are equal: every difference is 0.")
    if drawn.n_unpaired:
        notes.append(f"Grey as well: {drawn.n_unpaired} cells that only one map has.")
    if drawn.n_broken:
        notes.append(f"Left blank: allowed cells that are not finite numbers, {drawn.n_broken} of them.")
    return notes


def _aside_note(drawn: _Map, ends: Ends) -> str:
    share = first_column_share(np.nan_to_num(drawn.values), np.isfinite(drawn.values))
    weight = "" if np.isnan(share) else f" On average it gets {share:.0%} of a row's attention."
    colours = f"Colours run from {number(ends[0])} to {number(ends[1])}."
    return f"Hatched: the first token, left out of the colours.{weight} {colours}"


def _alt(drawn: _Map) -> str:
    n_queries, n_keys = drawn.values.shape
    parts = [drawn.look.opening, f"{_NAMES[drawn.look.kind]}, {n_queries} queries down, {n_keys} keys across."]
    has_choice = np.isfinite(drawn.values).sum(axis=1, keepdims=True) > 1
    size = np.where(has_choice, np.abs(np.nan_to_num(drawn.coloured)), 0.0)
    if size.any():
        row, column = divmod(int(size.argmax()), n_keys)
        value = number(drawn.values[row, column])
        parts.append(f" Strongest: from {drawn.query_labels[row]} to {drawn.key_labels[column]}, {value}.")
    if drawn.n_masked:
        parts.append(f" Forbidden by the mask: {drawn.n_masked} cells.")
    return "".join(parts)
