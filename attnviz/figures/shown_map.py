"""The one picture of a head's map as it is shown, for pages, slides, files and the command line. Uses plotly."""

from typing import Any

import plotly.graph_objects as go

from attnviz.core.maps.shown import ShownMap
from attnviz.figures.heatmap import head_map
from attnviz.figures.map_views import retell, size_map

RETOLD = {
    "words": {"token": "word"},
    "rollout": {"attention weights": "attention rollout", "the row's attention": "the row's share"},
}


def shown_figure(shown: ShownMap, **options: Any) -> go.Figure:
    """Draw a map with the chosen cell and forbidden looks marked.

    Args:
        shown: made by `attnviz.core.maps.shown.shown_map`.
        **options: `title`, `theme`, `label_size` and `height`, as `head_map` takes them.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".
    """
    starts = shown.rows.start, shown.columns.start
    marked, forbidden = (
        [(row + starts[0], column + starts[1]) for row, column in places] for places in (shown.framed, shown.crossed)
    )
    options |= {"query_start": starts[0], "key_start": starts[1], "marked": marked, "forbidden": forbidden}
    options |= {"allowed": shown.allowed, "scale": shown.scale, "bar_title": shown.bar_title}
    labels = shown.rows.labels, shown.columns.labels
    if shown.kind == "sizes":
        return size_map(shown.values, *labels, **options)
    return retell(head_map(shown.values, *labels, kind=shown.kind, **options), RETOLD.get(shown.shows, {}))
