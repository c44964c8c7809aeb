"""A map that fills its place on a page, without what the page around it says already. Uses plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from attnviz.figures.marks import row_outline
from attnviz.figures.theme import escape, number, shorten, theme_of


def on_stage(
    figure: go.Figure, values: NDArray[np.floating], keys: Sequence[str], *, row: int | None = None
) -> go.Figure:
    """Return a copy of a map whose cells take all the height: no names of axes, the colour bar at the right edge.

    Args:
        figure: as `head_map` and its kin make it.
        values: (rows, columns) that it draws, NaN where the mask forbids.
        keys: what the columns are called.
        row: the one to outline and whose largest value is named beside it; None: no row.
    """
    copy = go.Figure(figure)
    bar = {"orientation": "v", "x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "ypad": 0, "len": 0.6}
    copy.update_traces(colorbar=bar | {"lenmode": "fraction"}, selector={"type": "heatmap"})
    for trace in copy.select_traces({"type": "heatmap"}):
        trace.colorbar.title.text = (trace.colorbar.title.text or "").partition(":")[0]
    copy.update_xaxes(title_text="", domain=[0, 0.84])
    copy.update_yaxes(title_text="")
    copy.update_layout(margin={"l": 4, "r": 4, "t": 6, "b": 4}, height=None)
    if row is not None and np.isfinite(values[row]).any():
        look, best = theme_of(figure.layout.meta["theme"]), int(np.nanargmax(np.abs(values[row])))
        copy.add_shape(row_outline(row, values.shape[1], look.accent))
        named = f"{escape(shorten(keys[best]))}<br><b>{number(float(values[row, best]))}</b>"
        place = {"x": values.shape[1] - 0.5, "xanchor": "left", "xshift": 6, "y": row, "yanchor": "middle"}
        copy.add_annotation(place, text=named, align="left", showarrow=False, font_size=14)
    return copy
