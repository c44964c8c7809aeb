"""Hover texts that name a token in full where its axis shortens it: two long runs of "=" read alike there.

Of a map only the rows and columns with such a token cost anything: each gets a copy on top of it that nobody sees and
whose hover knows the name. Uses NumPy and plotly.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from attnviz.figures.axes import is_shortened
from attnviz.figures.theme import Floats, Settings, escape

# The place is given as y0 or x0, counted in categories: plotly puts an array of one category at the first of the axis.
UNSEEN: Settings = {"opacity": 0, "showscale": False, "colorscale": [[0, "#000"], [1, "#000"]], "hoverongaps": False}


def named_in_full(template: str, labels: Sequence[str], axis: str) -> Settings:
    """Return the hover of bars or dots along an axis of tokens.

    Args:
        template: a `hovertemplate` that names the token as "%{x}" or "%{y}".
        labels: text of each bar's token.
        axis: "x" or "y", the one that carries the tokens.

    >>> named_in_full("%{x}: %{y}", ["cat"], "x")
    {'hovertemplate': '%{x}: %{y}'}
    >>> named_in_full("%{x}: %{y}", ["cat", "=" * 21], "x")["hovertemplate"]
    '%{customdata}: %{y}'
    """
    if not any(map(is_shortened, labels)):
        return {"hovertemplate": template}
    names = [escape(label) for label in labels]
    return {"hovertemplate": template.replace(f"%{{{axis}}}", "%{customdata}"), "customdata": names}


def unseen_names(
    drawn: go.Heatmap, values: Floats, rows: Sequence[str] = (), columns: Sequence[str] = ()
) -> list[go.Heatmap]:
    """Return traces to lay over a map, one for each row and each column whose token the axis shortens; none as a rule.

    Args:
        drawn: the map's trace, with its `hovertemplate`.
        values: (rows, columns) as hover says them, NaN where it says nothing.
        rows: text of each row's token; none: rows are no tokens.
        columns: text of each column's token; none: columns are no tokens.
    """
    long_rows, long_columns = _shortened(rows), _shortened(columns)
    traces = [_row(drawn, values, rows[row], row, columns if long_columns else ()) for row in long_rows]
    rest = values.copy()
    rest[long_rows] = np.nan  # their own traces name both sides
    return traces + [_column(drawn, rest, columns[column], column) for column in long_columns]


def _shortened(labels: Sequence[str]) -> list[int]:
    return [place for place, label in enumerate(labels) if is_shortened(label)]


def _row(drawn: go.Heatmap, values: Floats, name: str, row: int, columns: Sequence[str]) -> go.Heatmap:
    said = drawn.hovertemplate.replace("%{y}", "%{meta[0]}")
    place: Settings = {"x": drawn.x, "y0": row, "dy": 1, "z": values[row : row + 1]}
    if columns:
        said = said.replace("%{x}", "%{text}")
        place["text"] = [[escape(label) for label in columns]]
    return go.Heatmap(meta=[escape(name)], hovertemplate=said, **place, **UNSEEN)


def _column(drawn: go.Heatmap, values: Floats, name: str, column: int) -> go.Heatmap:
    said = drawn.hovertemplate.replace("%{x}", "%{meta[0]}")
    place = {"x0": column, "dx": 1, "y": drawn.y, "z": values[:, column : column + 1]}
    return go.Heatmap(meta=[escape(name)], hovertemplate=said, **place, **UNSEEN)
