"""Tell Python which cell of a plotly map was clicked: streamlit's own charts don't say it for heatmaps."""

from collections.abc import Callable

import streamlit as st

from attnviz.app.components.bridge.bridge import unseen


def cell_picker(chart_key: str, start: int, *, on_pick: Callable[[tuple[int, int]], None], key: str) -> None:
    """Listen to clicks on the chart with that key.

    Args:
        chart_key: `key=` of the chart; the map's axes must count its cells from `start`.
        start: index in the text of the first row and column.
        on_pick: called with (query, key) before the next run of the page.
        key: the component's name, unique on the page.
    """

    def tell() -> None:
        cell = st.session_state[key]["cell"]
        if cell is not None:
            on_pick((int(cell[0]), int(cell[1])))

    _listener(key=key, data={"chart": chart_key, "start": start}, on_cell_change=tell)


_listener = unseen("cell_picker", "cell_picker/cell_picker.js")
