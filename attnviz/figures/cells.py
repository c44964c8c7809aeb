"""What maps of queries and keys share: options, checked cells, traces, axes and marks. Uses NumPy and plotly."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import KEY_AXIS, QUERY_AXIS, positions, square_cells, token_axis
from attnviz.figures.full_names import unseen_names
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import Cell, crosses, frames, hatching
from attnviz.figures.theme import Bools, Floats, Settings

Scale = Literal["linear", "sqrt", "without_first"]

FIRST_IS_ELSEWHERE = "The text's first token is not in this part of the map."


class MapOptions(LookOptions, total=False):
    """Keywords of every map of queries and keys.

    Attributes:
        allowed: (queries, keys) bool, False where the mask forbids: flat grey, without hover. None, the default: only
            scores of -inf are forbidden.
        scale: how values become colours: "linear", the default; "sqrt", which tells small ones apart; or
            "without_first", which hatches the column of the text's first token, where heads rest, and fits the colours
            to the other columns.
        query_start: index in the text of the first row, when this is a part of a map; 0 if not given.
        key_start: index in the text of the first column; 0 if not given.
        marked: (query, key) indices in the text of cells to frame.
        forbidden: (query, key) indices in the text of cells that the reader forbade, drawn with a cross.
        bar_title: what the colours measure.
    """

    allowed: ArrayLike | None
    scale: Scale
    query_start: int
    key_start: int
    marked: Iterable[Cell]
    forbidden: Iterable[Cell]
    bar_title: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class MapLook(Look):
    """What `MapOptions` says, whole."""

    allowed: ArrayLike | None = None
    scale: Scale = "linear"
    query_start: int = 0
    key_start: int = 0
    marked: Iterable[Cell] = ()
    forbidden: Iterable[Cell] = ()
    bar_title: str | None = None

    @property
    def by_root(self) -> bool:
        """Whether colours follow the square root of the values."""
        return self.scale == "sqrt"


@dataclass(frozen=True, eq=False)
class Cells:
    """A checked map.

    Attributes:
        values: (queries, keys), NaN where nothing is drawn.
        query_labels: text of each row's token; `key_labels`: of each column's.
        look: as its caller chose it.
    """

    values: Floats
    query_labels: Sequence[str]
    key_labels: Sequence[str]
    look: MapLook

    @property
    def first_is_aside(self) -> bool:
        """Whether the text's first token is a column here that the colours leave out."""
        return self.look.scale == "without_first" and self.look.key_start == 0 and len(self.key_labels) > 1

    @property
    def coloured(self) -> Floats:
        """The values that get colours, NaN elsewhere."""
        if not self.first_is_aside:
            return self.values
        rest = self.values.copy()
        rest[:, 0] = np.nan
        return rest

    def place(self, cell: Cell) -> Cell:
        """Return the row and column of a cell given by its indices in the text."""
        return cell[0] - self.look.query_start, cell[1] - self.look.key_start


def where_allowed(allowed: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """Return what a mask allows, which is all where there is none."""
    return np.ones(shape, dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)


def map_figure(
    cells: Cells,
    colours: Settings,
    number_format: str,
    words: Words,
    *,
    height: int = 680,
    outlines: Sequence[Settings] = (),
    max_labels: int | None = None,
) -> go.Figure:
    """Return the figure of a map, marks that its look asks for on it.

    Args:
        cells: what is drawn.
        colours: of its values, with their bar.
        number_format: of the values in hover texts, as plotly writes formats.
        words: what the figure says about itself.
        height: of the whole figure in px, if its caller chose none.
        outlines: further marks.
        max_labels: print at most so many labels an axis; None: as many as fit without touching.
    """
    look = cells.look
    ground = {"plot_bgcolor": look.colours.masked, "dragmode": "zoom", "shapes": _marks(cells, outlines)}
    layout = _axes(cells, max_labels) | ground
    traces = _traces(cells, colours, number_format)
    return finish(traces, layout, look, words, height=height, top=4 * look.label_size)


def _traces(cells: Cells, colours: Settings, number_format: str) -> list[go.Heatmap]:
    columns = positions(len(cells.key_labels), cells.look.key_start)
    rows = positions(len(cells.query_labels), cells.look.query_start)
    hover = f"%{{y}} (%{{y:d}}) → %{{x}} (%{{x:d}}): %{{z:{number_format}}}<extra></extra>"
    common: Settings = {"y": rows, "hoverongaps": False, "hovertemplate": hover}
    traces = [go.Heatmap(x=columns, z=cells.coloured, **colours, **common)]
    if cells.first_is_aside:  # its own trace, so that hover still tells the true value
        aside = cells.look.colours.set_aside
        flat = {"colorscale": [[0, aside], [1, aside]], "showscale": False}
        traces.append(go.Heatmap(x=columns[:1], z=cells.values[:, :1], **flat, **common))
    return traces + unseen_names(traces[0], cells.values, cells.query_labels, cells.key_labels)


def _axes(cells: Cells, max_labels: int | None) -> Settings:
    look = cells.look
    across = token_axis(cells.key_labels, start=look.key_start, title=KEY_AXIS, max_labels=max_labels)
    down = token_axis(cells.query_labels, start=look.query_start, title=QUERY_AXIS, max_labels=max_labels)
    return square_cells(across, down)


def _marks(cells: Cells, outlines: Sequence[Settings]) -> list[Settings]:
    """Return hatching over a column that is set aside, outlines, frames and crosses."""
    colours = cells.look.colours
    marks: list[Settings] = []
    if cells.first_is_aside:
        rows = np.flatnonzero(np.isfinite(cells.values[:, 0]))
        marks.append(hatching(((int(row), 0) for row in rows), colours.hatch))
    marks += outlines
    if framed := [cells.place(cell) for cell in cells.look.marked]:
        marks.append(frames(framed, colours.accent))
    if crossed := [cells.place(cell) for cell in cells.look.forbidden]:
        marks.append(crosses(crossed, colours.text))
    return marks
