"""A talk as one HTML file that steps through its scenes without a server. Uses plotly's own JavaScript."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from attnviz.figures.theme import theme_of

__all__ = ["talk_html"]

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "talk"


def talk_html(title: str, scenes: Sequence[Mapping[str, Any]], *, theme: str = "light") -> str:
    """Return a whole page that shows one scene at a time; arrow keys step, and nothing is loaded from elsewhere.

    Args:
        title: of the talk.
        scenes: each with "title", "caption", "question", "notes", "minutes", "text", "alt" and "pictures", a list of
            plotly figures as JSON, made for a stage of 1280 x 720.
        theme: "light" or "dark", of the page around the pictures.

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


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
