"""Colours of all figures, for a light and a dark page, and text as plotly takes it. Uses plotly.

One colour scale per meaning: `weight` (white to indigo), `signed` for scores and differences (orange below 0, purple
above) and `measure` (teal) for any other number. A forbidden cell, a cell of weight 0 and the page are three different
colours.
"""

import textwrap
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from attnviz.figures.colour import diverging, even_ramp, sequential

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that readers with any common colour blindness can tell apart (Okabe and Ito 2008)."""

_CANDIDATES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # stand out on a light page and on a dark one
_MORE_CANDIDATES = {"light": ("#000000", "#E69F00", "#56B4E9"), "dark": ("#F0E442", "#56B4E9", "#E69F00")}

Settings = dict[str, Any]
"""Part of a figure's description, with the names that plotly gives its settings."""

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

LONGEST = 20  # characters of a label on an axis
_NARROW = 390  # px; titles are broken into lines that fit the width of a phone
_RIGHT_TO_LEFT = {"R", "AL", "RLE", "RLO", "RLI", "LRE", "LRO", "AN"}
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "\n": " ", "\r": " "})


@dataclass(frozen=True)
class Theme:
    """The colours of one kind of page; ramps go from the smallest value to the largest."""

    name: str
    page: str
    text: str
    rule: str  # frames
    grid: str
    accent: str
    masked: str
    set_aside: str  # fill of a column that is left out of the colours
    hatch: str  # lines over that fill
    hover: str  # background of hover labels
    weight: tuple[str, ...]
    measure: tuple[str, ...]
    below: tuple[str, ...]
    above: tuple[str, ...]
    first: str  # two colours to compare with, as before and after
    second: str

    @property
    def signed(self) -> list[list[object]]:
        """The diverging colour scale of scores and differences, zero in its middle."""
        return diverging(self.below, self.above)

    @property
    def measures(self) -> list[list[object]]:
        """The colour scale of numbers from 0 up that are no weights."""
        return sequential(self.measure)

    def weights(self, *, by_root: bool = False) -> list[list[object]]:
        """Return the colour scale of weights, which may follow their square root."""
        return sequential(self.weight, power=2 if by_root else 1)


def _ramp(*anchors: str) -> tuple[str, ...]:
    return tuple(even_ramp(anchors))


THEMES = {
    "light": Theme(
        name="light",
        page="#FFFFFF",
        text="#16181D",
        rule="#C9C7C5",
        grid="#E7E5E4",
        accent="#D55E00",
        masked="#DDDAD8",
        set_aside="#FFFFFF",
        hatch="#8B8D98",
        hover="#FFFFFF",
        weight=_ramp("#EEF0FE", "#A5B4FC", "#6366F1", "#4338CA", "#1E1B4B"),
        measure=_ramp("#EAF6F3", "#7CCDBF", "#14907F", "#0B3B37"),
        below=_ramp("#F4F2F6", "#FDB863", "#E08214", "#B35806", "#7F3B08"),
        above=_ramp("#F4F2F6", "#D8DAEB", "#B2ABD2", "#8073AC", "#5E3A8F"),
        first=OKABE_ITO[0],
        second=OKABE_ITO[5],
    ),
    "dark": Theme(
        name="dark",
        page="#0E1117",
        text="#FAFAFA",
        rule="#4A4E59",
        grid="#262A33",
        accent="#F0E442",
        masked="#30343D",
        set_aside="#0E1117",
        hatch="#7D818C",
        hover="#262A33",
        weight=_ramp("#1A1D33", "#4338CA", "#6366F1", "#A5B4FC", "#EEF2FF"),
        measure=_ramp("#12211F", "#14907F", "#7CCDBF", "#ECFDF9"),
        below=_ramp("#1A1B20", "#7F3B08", "#B35806", "#E08214", "#FDB863"),
        above=_ramp("#1A1B20", "#542788", "#8073AC", "#B2ABD2", "#C4BFDE"),
        first=OKABE_ITO[4],
        second=OKABE_ITO[1],
    ),
}


def theme_of(name: str) -> Theme:
    """Return the colours for a "light" or a "dark" page.

    Raises:
        ValueError: there is no theme of that name.
    """
    if name not in THEMES:
        raise ValueError(f'theme is "light" or "dark", got {name!r}')
    return THEMES[name]


def candidate_colours(theme: str) -> tuple[str, ...]:
    """Return a colour for each of the first seven candidates; an eighth begins again.

    They are Okabe and Ito's without the one that the page would swallow: black on a dark page, yellow on a light one.
    The first four are the same on both.

    Args:
        theme: "light" or "dark".

    Raises:
        ValueError: there is no theme of that name.

    >>> candidate_colours("light")[:2] == candidate_colours("dark")[:2]
    True
    """
    return _CANDIDATES + _MORE_CANDIDATES[theme_of(theme).name]


def escape(label: str) -> str:
    """Return a label so that plotly shows every character as it is.

    Plotly reads `<b>` and the like as mini-HTML and, where MathJax is on the page, text between dollar signs as
    mathematics. Text that runs from right to left is isolated, so that it can't reorder the words around it.

    >>> escape("<s> & $x$")
    '&lt;s&gt; &amp; &#36;x&#36;'
    """
    safe = str(label).translate(_ENTITIES)
    if not _RIGHT_TO_LEFT.isdisjoint(map(unicodedata.bidirectional, safe)):
        return f"\u2068{safe}\u2069"  # FIRST STRONG ISOLATE ... POP DIRECTIONAL ISOLATE
    return safe


def shorten(label: str, limit: int = LONGEST) -> str:
    """Return a label of at most `limit` characters, its middle replaced by "…" where it was longer.

    >>> shorten("unbelievability", 7)
    'unb…ity'
    """
    if len(label) <= limit:
        return label
    head = limit // 2
    return f"{label[:head]}…{label[len(label) - (limit - 1 - head) :]}"


def number(value: float | np.floating[Any]) -> str:
    """Return a number as the pictures print it: three digits, a true minus sign, never a negative zero.

    >>> number(-0.12345), number(-0.0)
    ('−0.123', '0')
    """
    return f"{float(value) + 0.0:.3g}".replace("-", "\u2212")


def wrap(text: str, size: float, width: int = _NARROW) -> str:
    """Return plain text escaped and broken into lines of about `width` px at that type size, so that a phone shows it.

    >>> wrap("a < b", 13)
    'a &lt; b'
    """
    n_characters = max(20, round(width / (0.52 * size)))
    return "<br>".join(map(escape, textwrap.wrap(text, n_characters)))


def on_page(figure: go.Figure) -> go.Figure:
    """Return a copy with the page's own background, for a file that must not depend on what lies under it."""
    copy = go.Figure(figure)
    copy.layout.paper_bgcolor = theme_of(figure.layout.meta["theme"]).page
    return copy
