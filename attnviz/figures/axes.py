"""Axes that carry tokens: whole positions as categories, token text as what is printed there.

The positions are the categories, so two tokens with the same text never merge. The text comes in through `labelalias`,
which plotly applies after it has chosen which ticks fit at the size the chart really has: labels are thinned on the
reader's screen, again after each zoom, while hover texts name every token. Uses plotly's axis settings.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnviz.figures.look import Look
from attnviz.figures.theme import LONGEST, Settings, escape, shorten, wrap

MAX_SIDE = 256  # cells a side; more would be smaller than a pixel on most screens
QUERY_AXIS = "query: the token that looks"
KEY_AXIS = "key: the token it looks at"

LEANING: Settings = {"autotickangles": [0, -60]}  # labels lie level or lean, as they fit
TICKED: Settings = {"fixedrange": True, "ticks": "outside", "ticklen": 4}


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


def tokens_down(labels: Sequence[str], *, start: int = 0, title: str = "") -> Settings:
    """Return an axis with one category a token from top to bottom, for bars or cells that lie in rows."""
    down = token_axis(labels, start=start, title=title)
    return down | {"range": down["range"][::-1], "fixedrange": True, "ticks": ""}


def tokens_across(labels: Sequence[str], *, start: int = 0, title: str) -> Settings:
    """Return an axis with one category a token from left to right, for bars that stand on it."""
    return token_axis(labels, start=start, title=title) | LEANING | {"showline": True}


def named_axis(title: str) -> Settings:
    """Return an axis of numbers that has a name and keeps its range."""
    return {"title": {"text": escape(title)}, "fixedrange": True}


def long_named_axis(title: str, look: Look) -> Settings:
    """Return an axis of numbers whose name is broken into lines that a phone shows."""
    return {"title": {"text": wrap(title, look.label_size, width=300)}, "fixedrange": True}


def is_shortened(label: str) -> bool:
    """Return whether an axis prints only a part of a label.

    >>> is_shortened("cat"), is_shortened("=" * 64)
    (False, True)
    """
    return len(label) > LONGEST


def square_cells(horizontal: Settings, vertical: Settings) -> Settings:
    """Return both axes as layout settings: first row on top, cells square, the map in the upper left of its room."""
    frame: Settings = {"constrain": "domain", "showline": True, "mirror": True}
    across = horizontal | frame | LEANING | {"constraintoward": "left", "side": "bottom"}
    down = vertical | frame | {"constraintoward": "top", "scaleanchor": "x", "range": vertical["range"][::-1]}
    return {"xaxis": across, "yaxis": down}
