"""Marks on the cells of a map, as layout shapes: frames, crosses, hatching. Uses plotly's settings.

Coordinates count cells from the map's upper left corner (row 0, column 0). All marks of one kind are one path, so that
a hundred of them cost no more than one, and they grow and shrink with the cells.
"""

from collections.abc import Iterable

from attnviz.figures.theme import Settings

Cell = tuple[int, int]  # (row, column)


def frames(cells: Iterable[Cell], colour: str) -> Settings:
    """Return a frame round each cell."""
    return _path((_box(row, column, column) for row, column in cells), colour, width=2)


def row_outline(row: int, n_columns: int, colour: str) -> Settings:
    """Return a thin outline round a whole row."""
    return _path([_box(row, 0, n_columns - 1)], colour, width=1.5)


def crosses(cells: Iterable[Cell], colour: str) -> Settings:
    """Return a cross in each cell."""
    both = (-0.3, -0.3, 0.3, 0.3), (-0.3, 0.3, 0.3, -0.3)
    return _path((_line(cell, *ends) for cell in cells for ends in both), colour, width=1.5)


def hatching(cells: Iterable[Cell], colour: str) -> Settings:
    """Return slanted lines through each cell that run on into the next."""
    slants = (-0.5, 0, 0, -0.5), (-0.5, 0.5, 0.5, -0.5), (0, 0.5, 0.5, 0)
    return _path((_line(cell, *ends) for cell in cells for ends in slants), colour, width=1)


def upright(place: float, colour: str, dash: str) -> Settings:
    """Return a thin line from top to bottom, at a place of the horizontal axis."""
    line = {"color": colour, "width": 1, "dash": dash}
    ends = {"xref": "x", "yref": "paper", "x0": place, "x1": place, "y0": 0, "y1": 1}
    return {"type": "line", "line": line, "layer": "below"} | ends


def _line(cell: Cell, x0: float, y0: float, x1: float, y1: float) -> str:
    """A line between two points given as distances from the cell's middle."""
    row, column = cell
    return f"M{column + x0:g},{row + y0:g}L{column + x1:g},{row + y1:g}"


def _box(row: int, first_column: int, last_column: int) -> str:
    left, right, top, bottom = first_column - 0.5, last_column + 0.5, row - 0.5, row + 0.5
    return f"M{left:g},{top:g}L{right:g},{top:g}L{right:g},{bottom:g}L{left:g},{bottom:g}Z"


def _path(strokes: Iterable[str], colour: str, *, width: float) -> Settings:
    return {"type": "path", "path": "".join(strokes), "line": {"color": colour, "width": width}}
