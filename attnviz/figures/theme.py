"""Colours, type and the frame that all figures share, for a light and a dark page.

One colour scale per meaning: `weight` (white to indigo), `signed` for scores and differences (orange below 0, purple
above) and `measure` (teal) for any other number. A forbidden cell, a cell of weight 0 and the page are three different
colours. Figures carry the template themselves, so that they look the same on a page, in a notebook and in a saved file,
whatever plotly's default template is at that moment. Uses plotly.
"""

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import plotly.graph_objects as go

from attnviz.figures.colour import diverging, even_ramp

FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", "Segoe UI", Roboto, Arial, sans-serif'
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that readers with any common colour blindness can tell apart (Okabe and Ito 2008)."""

_CANDIDATES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # stand out on a light page and on a dark one
_MORE_CANDIDATES = {"light": ("#000000", "#E69F00", "#56B4E9"), "dark": ("#F0E442", "#56B4E9", "#E69F00")}

Settings = dict[str, Any]
"""Part of a figure's description, with the names that plotly gives its settings."""

MIN_LABEL_SIZE = 12  # px; smaller labels can't be read by everybody
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
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in safe):
        return f"\u2068{safe}\u2069"  # FIRST STRONG ISOLATE ... POP DIRECTIONAL ISOLATE
    return safe


def shorten(label: str, limit: int = 20) -> str:
    """Return a label of at most `limit` characters, its middle replaced by "…" where it was longer.

    >>> shorten("unbelievability", 7)
    'unb…ity'
    """
    if len(label) <= limit:
        return label
    head = limit // 2
    return f"{label[:head]}…{label[len(label) - (limit - 1 - head) :]}"


def number(value: float) -> str:
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
    return "<br>".join(escape(line) for line in textwrap.wrap(text, n_characters))


def check_names(names: Sequence[str]) -> None:
    """Refuse anything but one name for what is drawn first and one for what is compared with it."""
    if len(names) != 2 or isinstance(names, str):
        raise ValueError(f"names are two strings, one for each of the two series, got {names!r}")


def finish(
    figure: go.Figure,
    layout: Settings,
    *,
    theme: Theme,
    title: str,
    alt: str,
    how_to_read: str,
    label_size: int,
    height: int,
    notes: Sequence[str] = (),
    asides: Sequence[str] = (),
    top: int = 0,
) -> go.Figure:
    """Give a figure its layout, type, title, notes and description, and return it.

    All of the layout is set at once: plotly checks a layout as a whole, which takes some milliseconds each time.

    Args:
        figure: changed in place; what its layout held before is gone.
        layout: axes, shapes and what else is the picture's own.
        theme: colours.
        title: plain text; escaped here.
        alt: what the picture shows, for readers who don't see it; plain text, kept in `figure.layout.meta["alt"]` with
            the notes behind it.
        how_to_read: one sentence, kept in `figure.layout.meta["how_to_read"]`.
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px.
        notes: sentences printed under the title, because the picture would mislead without them; also kept in the meta.
        asides: sentences that the description and `how_to_read` end with, because the picture shows them by a sign.
        top: px to leave free between the titles and the drawing, for a colour bar or a legend.

    Raises:
        ValueError: `label_size` is below 12.
    """
    if label_size < MIN_LABEL_SIZE:
        raise ValueError(f"label_size is at least {MIN_LABEL_SIZE} px, so that labels can be read, got {label_size}")
    title_size = label_size + 3
    head = wrap(title, title_size * 1.1)  # bold is wider
    small = "<br>".join(wrap(note, label_size) for note in notes)
    titles = 1.3 * (title_size * _n_lines(head) + label_size * (_n_lines(small) + bool(small)))
    pad = 6 if _n_lines(head) < 2 else 6 + 0.7 * title_size  # plotly.js 4.1 sets a broken title 0.7 em too high
    heading: Settings = {"text": head, "font": {"size": title_size, "weight": 600}, "pad": {"t": pad}}
    if small:
        heading["subtitle"] = {"text": small, "font": {"size": label_size}}
    meta = {"alt": " ".join([alt, *notes, *asides]), "how_to_read": " ".join([how_to_read, *asides])}
    figure.layout = layout | {
        "template": _template(theme, label_size),
        "height": height,
        "title": heading,
        "margin": {"l": 8, "r": 16, "t": round(titles) + top + 14, "b": 8},
        "meta": meta | {"notes": list(notes), "theme": theme.name},
    }
    return figure


def on_page(figure: go.Figure) -> go.Figure:
    """Return a copy with the page's own background, for a file that must not depend on what lies under it."""
    copy = go.Figure(figure)
    copy.layout.paper_bgcolor = theme_of(figure.layout.meta["theme"]).page
    return copy


def colour_bar(
    title: str,
    label_size: int,
    low: float,
    high: float,
    *,
    by_root: bool = False,
    beyond: tuple[bool, bool] = (False, False),
) -> Settings:
    """Return a colour bar that lies over the drawing, where it takes no width from the cells and fits a narrow page.

    Args:
        title: what the colours measure; escaped here.
        label_size: height of its labels in px.
        low: value at its left end, printed there, so that the bar states the range.
        high: value at its right end, printed there.
        by_root: the colours follow the square root of the value; prints more of the small values.
        beyond: whether values lie below `low`, and above `high`: those ends get "≤" and "≥".
    """
    font = {"size": label_size}
    parts = (0, 0.1, 0.25, 0.5, 1) if by_root else (0, 0.5, 1)
    ticks = [float(low + (high - low) * part) for part in parts]
    signs = ["≤ " * beyond[0], *[""] * (len(ticks) - 2), "≥ " * beyond[1]]
    return {
        "orientation": "h",
        "title": {"text": escape(title), "side": "top", "font": font},
        "tickfont": font,
        "tickmode": "array",
        "tickvals": ticks,
        "ticklabeloverflow": "allow",  # else a wide number at an end is left out
        "ticktext": [f"{sign}{number(tick)}" for sign, tick in zip(signs, ticks, strict=True)],
        "lenmode": "pixels",
        "len": 15 * label_size,
        "thickness": 12,
        "outlinewidth": 0,
        "ypad": 6,
        "xpad": 0,
        "x": 0,
        "xanchor": "left",
        "y": 0.9995,  # just below 1: at 1 plotly.js 4.1 pushes the figure's title up and out of the picture
        "yanchor": "bottom",
    }


def _n_lines(wrapped: str) -> int:
    return 1 + wrapped.count("<br>") if wrapped else 0


@cache
def _template(theme: Theme, label_size: int) -> go.layout.Template:
    axis = {
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
        "linecolor": theme.rule,
        "tickcolor": theme.rule,
        "gridcolor": theme.grid,
        "tickfont": {"size": label_size},
        "title": {"font": {"size": label_size}, "standoff": 10},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": label_size, "color": theme.text},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": theme.page,
            "colorway": list(OKABE_ITO),
            "title": {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
            | {"automargin": True},
            "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
            "hoverlabel": {
                "bgcolor": theme.hover,
                "bordercolor": theme.rule,
                "font": {"family": FONT, "size": max(label_size, 14), "color": theme.text},
                "namelength": -1,
                "align": "left",
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.hatch, "activecolor": theme.text},
            "dragmode": False,
            "xaxis": axis,
            "yaxis": axis,
        }
    )
