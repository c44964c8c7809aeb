"""Axes that carry tokens: whole positions as categories, token text as what is printed there.

The positions are the categories, so two tokens with the same text never merge. The text comes in through `labelalias`,
which plotly applies after it has chosen which ticks fit at the size the chart really has: labels are thinned on the
reader's screen, again after each zoom, while hover texts name every token. Uses plotly's axis settings.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnviz.figures.theme import Settings, escape, shorten


def positions(n: int, start: int = 0) -> NDArray[np.int32]:
    """Return start, start + 1 .. as whole numbers: the coordinates of n tokens."""
    return np.arange(start, start + n, dtype=np.int32)


def token_axis(labels: Sequence[str], *, start: int = 0, title: str, max_labels: int | None = None) -> Settings:
    """Return an axis with one category a token.

    Args:
        labels: text of each token; may repeat.
        start: index of the first of them in the whole text.
        title: printed beside the axis; escaped here.
        max_labels: print at most so many labels; None: as many as fit without touching.
    """
    n_labels = len(labels)
    axis: Settings = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": positions(n_labels, start),
        "labelalias": {str(start + i): escape(shorten(label)) for i, label in enumerate(labels)},
        "range": [-0.5, n_labels - 0.5],
        "minallowed": -0.5,
        "maxallowed": n_labels - 0.5,
        "title": {"text": escape(title)},
        "ticks": "outside",
        "ticklen": 4,
    }
    return axis if max_labels is None else axis | {"nticks": max_labels}


def is_shortened(label: str) -> bool:
    """Return whether an axis prints only a part of a label.

    >>> is_shortened("cat"), is_shortened("=" * 64)
    (False, True)
    """
    return shorten(label) != label


def square_cells(horizontal: Settings, vertical: Settings) -> Settings:
    """Return both axes as layout settings: first row on top, cells square, the map in the upper left of its room."""
    frame = {"constrain": "domain", "showline": True, "mirror": True}
    down = list(reversed(vertical["range"]))
    return {
        "xaxis": horizontal | frame | {"constraintoward": "left", "autotickangles": [0, -60], "side": "bottom"},
        "yaxis": vertical | frame | {"constraintoward": "top", "scaleanchor": "x", "range": down},
    }
