"""A figure as one HTML file that needs no network: the picture, how to read it, and what it is of. Needs plotly."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

import plotly.graph_objects as go

from attnviz.figures.theme import on_page, theme_of

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 1.5rem; background: {page}; color: {text}; font-family: "Segoe UI", Roboto, Arial, sans-serif; }}
h1 {{ font-size: 1.25rem; }}
p {{ max-width: 60rem; line-height: 1.45; }}
th {{ padding-right: 1rem; text-align: left; font-weight: 600; vertical-align: top; white-space: nowrap; }}
td {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
a {{ color: inherit; }}
</style>
</head>
<body>
<h1>{title}</h1>
<div role="img" aria-label="{alt}">{figure}</div>
<p>{how_to_read}</p>
<table>
{facts}
</table>
</body>
</html>
"""


def figure_html(figure: go.Figure, *, title: str, about: Mapping[str, Any]) -> str:
    """Return a whole page with the figure, which makes no request: plotly's own JavaScript is inside (4.8 MB).

    Args:
        figure: as attnviz.figures makes them, with "alt", "how_to_read" and "theme" in `layout.meta`.
        title: of the page; says what is inside.
        about: facts to print under the picture; "link" becomes a link, what isn't text is written as JSON.
    """
    theme = theme_of(figure.layout.meta["theme"])
    drawn = on_page(figure).to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    rows = [f"<tr><th>{escape(name)}</th><td>{_cell(name, value)}</td></tr>" for name, value in about.items()]
    said = {name: escape(figure.layout.meta[name]) for name in ("alt", "how_to_read")}
    colours = {"page": theme.page, "text": theme.text}
    return PAGE.format(title=escape(title), figure=drawn, facts="\n".join(rows), **said, **colours)


def _cell(name: str, value: Any) -> str:
    said = escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return f'<a href="{said}">{said}</a>' if name == "link" else said
