"""Charts keep their size and their whole range when the browser draws them anew, as on the way to full screen and back.

plotly writes into the layout that it is given: which part of its room a map with square cells takes, and the range that
was zoomed to. streamlit (1.67) keeps that layout, and a new chart made of it takes both for what was asked for: each
time the map is squeezed into the room that is left, and "Reset axes" goes back to the zoom. Needs streamlit.
"""

from attnviz.app.components.bridge.bridge import unseen


def keep_plots(*, key: str) -> None:
    """Watch over all charts of the page.

    Args:
        key: the component's name, unique on the page.
    """
    _keeper(key=key)


_keeper = unseen("plots", "plots/plots.js")
