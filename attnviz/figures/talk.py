"""A talk as one HTML file that steps through its scenes without a server, and figures made to fill its slides.

Uses NumPy, plotly and plotly's own JavaScript.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.offline import get_plotlyjs

from attnviz.figures.look import Look, Words, finish
from attnviz.figures.theme import Settings, shorten, theme_of

ASSETS = resources.files("attnviz.figures") / "talk_player"
LETTER = 0.47  # width of a letter of the app's type, as a share of its size
BAR = 76  # px that a colour bar takes beside a map
FONT = """/* Source Sans, copyright Adobe, under the SIL Open Font License 1.1 (https://openfontlicense.org) */
@font-face { font-family: "Source Sans"; font-weight: 200 900; src: url(data:font/woff2;base64,%s) format("woff2"); }
"""


def talk_html(title: str, scenes: Sequence[Mapping[str, Any]], *, theme: str = "light", font: bytes = b"") -> str:
    """Return a whole page that shows one scene at a time; arrow keys step, and nothing is loaded from elsewhere.

    Args:
        title: of the talk.
        scenes: each with "title", "caption", "question", "notes", "minutes", "alt" and "pictures", a list of plotly
            figures as JSON, made for an area of 1216 x 530; also, if there is something to say, "about", what the
            picture is of, and "sentence", the text in pieces (text, role) with the roles "", "query", "key", "aside".
        theme: "light" or "dark", of the page around the pictures.
        font: Source Sans as a variable woff2 file, to be set into the page; without it the reader's own type is used.

    Raises:
        ValueError: no scene, or no such theme.
    """
    if not scenes:
        raise ValueError("a talk needs at least one scene")
    theme_of(theme)
    deck = json.dumps({"title": title, "scenes": [dict(scene) for scene in scenes]}, ensure_ascii=False)
    parts = {
        "__TITLE__": escape(title),
        "__THEME__": theme,
        "__FONT__": FONT % base64.b64encode(font).decode("ascii") if font else "",
        "__STYLE__": _asset("player.css"),
        "__PLOTLY__": get_plotlyjs(),
        "__DECK__": deck.replace("<", "\\u003c"),  # so that no text can end the script element
        "__SCRIPT__": _asset("player.js"),
    }
    before, *rest = _asset("player.html").split("__")
    page = [before]
    for piece in rest:  # in order, so that a placeholder inside a text stays text
        page.append(parts.get(f"__{piece}__", piece))
    return "".join(page)


def on_slide(
    figure: go.Figure, width: int, height: int, labels: Sequence[str] = (), *, titled: bool = True
) -> go.Figure:
    """Give a figure its place on a slide, in place, and return it; title and notes share one line.

    Args:
        figure: as the functions of this room make it.
        width: of its place in px.
        height: likewise.
        labels: the token labels along its horizontal axis; each of them is printed if they fit.
        titled: keep the figure's title.
    """
    size = figure.layout.template.layout.font.size
    title = _one_line(figure.layout.title.text) if titled else ""
    notes = _one_line(figure.layout.title.subtitle.text)
    light = f'<span style="font-weight:400">{"&#160; " if title else ""}{notes}</span>' if notes else ""
    heading = {"text": title + light, "pad": {"t": 4}, "subtitle": {"text": ""}}
    has_legend = figure.layout.showlegend is not False and sum(trace.type != "heatmap" for trace in figure.data) > 1
    top = 1.35 * (size + 3) * bool(title or notes) + 2.2 * size * has_legend
    figure.update_layout(width=width, height=height, title=heading, margin_t=round(top) + 14)
    if labels:
        figure.update_xaxes(_every_label(labels, (width - 90) / len(labels), size))
    return figure


def map_on_slide(figure: go.Figure, labels: Sequence[str], height: int, *, titled: bool = False) -> go.Figure:
    """Let a square map fill a slide from top to bottom, in place, and return it: its layout then holds its width.

    The names of the axes go, every label is printed if they fit, the colour bar stands beside the cells, and frames
    of cells become thick enough for the last row of seats.

    Args:
        figure: as `head_map` makes it, of as many queries as keys.
        labels: of the tokens.
        height: of its place in px.
        titled: keep the figure's title.
    """
    size = figure.layout.template.layout.font.size
    widest = _widest(labels, size)
    top = round(1.3 * (size + 3)) + 12 if titled else 6
    angle = _every_label(labels, (height - top - 18 - widest) / len(labels), size).get("tickangle", -90)
    lean = math.radians(-angle)
    side = height - top - 22 - max(size, widest * math.sin(lean) + 0.7 * size * math.cos(lean))
    every = _every_label(labels, side / len(labels), size) and {"tickmode": "linear", "dtick": 1, "tickangle": angle}
    figure.update_xaxes(every | {"title": {"text": ""}})
    figure.update_yaxes({"title": {"text": ""}} | ({"tickmode": "linear", "dtick": 1} if every else {}))
    bar = {"orientation": "v", "x": 1.02, "xanchor": "left", "xpad": 0, "y": 1, "yanchor": "top", "ypad": 0}
    bar |= {"len": side / 2, "lenmode": "pixels", "title": {"text": "weight", "side": "top"}}
    figure.update_traces(colorbar=bar, selector={"type": "heatmap"})
    figure.update_shapes(line_width=4)
    margin = {"t": top, "b": 4, "l": 4, "r": 4}
    figure.update_layout(width=round(18 + widest + side + BAR), height=height, margin=margin)
    if not titled:
        figure.update_layout(title={"text": "", "subtitle": {"text": ""}})
    return figure


def code_on_slide(modules: ArrayLike, link: str, *, theme: str, label_size: int, height: int) -> go.Figure:
    """Draw a QR code, black on white on any page since readers of codes expect that.

    Args:
        modules: (side, side) of 0 and 1, the margin of four zeros around the code included.
        link: what it says.
        theme: "light" or "dark".
        label_size: as for other figures.
        height: of the figure in px.
    """
    cells = np.asarray(modules, dtype=np.uint8)
    scale = {"colorscale": [[0, "#FFFFFF"], [1, "#000000"]], "zmin": 0, "zmax": 1, "showscale": False}
    hidden: Settings = {"visible": False, "fixedrange": True}
    side = len(cells) - 0.5
    across = hidden | {"range": [-0.5, side], "constrain": "domain"}
    down = hidden | {"range": [side, -0.5], "scaleanchor": "x", "constrain": "domain"}
    look = Look(theme=theme, label_size=label_size)
    words = Words(f"QR code of {link}", "Point a phone's camera at it to open the address.")
    return finish(
        [go.Heatmap(z=cells, hoverinfo="skip", **scale)], {"xaxis": across, "yaxis": down}, look, words, height=height
    )


def _every_label(labels: Sequence[str], room: float, size: int) -> Settings:
    """Return axis settings that print every label, as level as they can lie with `room` px each; {} if none can."""
    if room < 0.95 * size:
        return {}
    steps = ((_widest(labels, size) + 6, 0), (1.55 * size, -45), (1.2 * size, -60))
    angle = next((angle for needed, angle in steps if room >= needed), -90)
    return {"tickmode": "linear", "dtick": 1, "tickangle": angle}


def _widest(labels: Sequence[str], size: int) -> float:
    return size * LETTER * max(len(shorten(label)) for label in labels)


def _one_line(text: str | None) -> str:
    return (text or "").replace("<br>", " ")


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
