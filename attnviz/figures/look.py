"""How a figure looks as its caller chooses, and the frame that all share: type, title, notes, a description.

Figures carry the template themselves, so that they look the same on a page, in a notebook and in a saved file,
whatever plotly's default template is at that moment. Uses plotly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import repeat
from typing import Any, Self, TypedDict

import plotly.graph_objects as go

from attnviz.figures.theme import OKABE_ITO, Settings, Theme, theme_of, wrap

FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", "Segoe UI", Roboto, Arial, sans-serif'
CLEAR = "rgba(0,0,0,0)"
MIN_LABEL_SIZE = 12  # px; smaller labels can't be read by everybody


class LookOptions(TypedDict, total=False):
    """Keywords that every figure takes.

    Attributes:
        title: plain text over the picture; some figures have one of their own.
        theme: "light", the default, or "dark".
        label_size: height of the labels in px, at least 12; the default is 13.
        height: of the whole figure in px; None, the default: as high as what is drawn needs.
    """

    title: str
    theme: str
    label_size: int
    height: int | None


@dataclass(frozen=True, kw_only=True)
class Look:
    """What `LookOptions` says, checked and whole. Figures with many options of their own extend both."""

    title: str = ""
    theme: str = "light"
    label_size: int = 13
    height: int | None = None

    def __post_init__(self) -> None:
        """Check what was chosen.

        Raises:
            ValueError: there is no such theme, or `label_size` is below 12.
        """
        theme_of(self.theme)
        size = self.label_size
        if size < MIN_LABEL_SIZE:
            raise ValueError(f"label_size is at least {MIN_LABEL_SIZE} px, so that labels can be read, got {size}")

    @classmethod
    def of(cls, figure: str, options: Mapping[str, Any], **defaults: Any) -> Self:
        """Return the look that a figure's keywords ask for.

        Args:
            figure: name of the function that was called with them.
            options: its keywords.
            **defaults: what this figure has in place of the defaults of all figures.

        Raises:
            TypeError: the figure has no such keyword.
            ValueError: a value is none of those that it may have.
        """
        unknown = [name for name in options if name not in {field.name for field in fields(cls)}]
        if unknown:
            raise TypeError(f"{figure}() got an unexpected keyword argument {unknown[0]!r}")
        return cls(**{**defaults, **options})

    @property
    def colours(self) -> Theme:
        """The colours of the theme."""
        return theme_of(self.theme)

    @property
    def opening(self) -> str:
        """What a description begins with: the title and a colon, nothing where there is no title."""
        return f"{self.title}: " if self.title else ""


@dataclass(frozen=True)
class Words:
    """What a figure says about itself, in plain text.

    Attributes:
        alt: what the picture shows, for readers who don't see it; kept in `figure.layout.meta["alt"]` with the notes
            behind it.
        how_to_read: one sentence, kept in `figure.layout.meta["how_to_read"]`.
        notes: sentences printed under the title, because the picture would mislead without them; also kept in the meta.
        asides: sentences that both texts end with, because the picture shows them by a sign.
    """

    alt: str
    how_to_read: str
    notes: Sequence[str] = ()
    asides: Sequence[str] = ()


def finish(
    traces: Sequence[Settings], layout: Settings, look: Look, words: Words, *, height: int, top: int = 0
) -> go.Figure:
    """Return a figure of traces with its layout, type, title, notes and description.

    All of the layout is set at once: plotly checks a layout as a whole, which takes some milliseconds each time.

    Args:
        traces: what is drawn, as plotly's objects.
        layout: axes, shapes and what else is the picture's own.
        look: as its caller chose it.
        words: what it says about itself.
        height: of the whole figure in px, if its caller chose none.
        top: px to leave free between the titles and the drawing, for a colour bar or a legend.
    """
    figure = go.Figure(traces)
    heading, titles = _heading(look, words.notes)
    alt = " ".join([words.alt, *words.notes, *words.asides])
    how_to_read = " ".join([words.how_to_read, *words.asides])
    meta = {"alt": alt, "how_to_read": how_to_read, "notes": list(words.notes), "theme": look.theme}
    figure.layout = layout | {
        "template": _template(look.colours, look.label_size),
        "height": look.height or height,
        "title": heading,
        "margin": {"l": 8, "r": 16, "t": titles + top + 14, "b": 8},
        "meta": meta,
    }
    return figure


def _heading(look: Look, notes: Sequence[str]) -> tuple[Settings, int]:
    """Return title and notes as plotly's title, and the px that they take."""
    title_size = look.label_size + 3
    head = wrap(look.title, title_size * 1.1)  # bold is wider
    small = "<br>".join(map(wrap, notes, repeat(look.label_size)))
    titles = 1.3 * (title_size * _n_lines(head) + look.label_size * (_n_lines(small) + bool(small)))
    pad = 6 if _n_lines(head) < 2 else 6 + 0.7 * title_size  # plotly.js 4.1 sets a broken title 0.7 em too high
    heading: Settings = {"text": head, "font": {"size": title_size, "weight": 600}, "pad": {"t": pad}}
    if small:
        heading["subtitle"] = {"text": small, "font": {"size": look.label_size}}
    return heading, round(titles)


def _n_lines(wrapped: str) -> int:
    return 1 + wrapped.count("<br>") if wrapped else 0


@cache
def _template(theme: Theme, label_size: int) -> go.layout.Template:
    axis = _axis(theme, label_size)
    title = {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": label_size, "color": theme.text},
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": theme.page,
            "colorway": list(OKABE_ITO),
            "title": title | {"automargin": True},
            "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
            "hoverlabel": _hover(theme, max(label_size, 14)),
            "modebar": {"bgcolor": CLEAR, "color": theme.hatch, "activecolor": theme.text},
            "dragmode": False,
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def _axis(theme: Theme, label_size: int) -> Settings:
    colours = {"linecolor": theme.rule, "tickcolor": theme.rule, "gridcolor": theme.grid}
    texts = {"tickfont": {"size": label_size}, "title": {"font": {"size": label_size}, "standoff": 10}}
    return colours | texts | {"automargin": True, "showgrid": False, "zeroline": False}


def _hover(theme: Theme, size: int) -> Settings:
    font = {"family": FONT, "size": size, "color": theme.text}
    return {"bgcolor": theme.hover, "bordercolor": theme.rule, "font": font, "namelength": -1, "align": "left"}
