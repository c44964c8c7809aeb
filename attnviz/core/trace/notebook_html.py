"""A trace as a small piece of HTML for notebooks: what it is, and all heads in small, without further libraries."""

import html
from itertools import groupby

import numpy as np

from attnviz.core.heads.survey import Survey, survey
from attnviz.core.trace.trace import Trace

__all__ = ["trace_html"]

CELL = 26  # px of a thumbnail
GAP = 4
SIDE = 10  # tiles along a thumbnail: few, so that the output of a notebook stays small
LEVELS = 5  # of opacity
MOST_TOKENS = 60  # that are written out
INDIGO = (67, 56, 202)


def trace_html(trace: Trace) -> str:
    """Return a table of facts, the tokens, and a thumbnail of every head as inline SVG.

    Everything from the text is escaped; there is no script, and nothing is loaded from elsewhere.
    """
    part = trace.parts[0]
    n_heads = max(trace.heads(layer, part=part) for layer in trace.layers_of(part))
    facts = {
        "model": f"{trace.model.title}, revision {trace.model.revision}, {trace.model.dtype}",
        "tokens": f"{len(trace.tokens)}" + (f" ({trace.n_cut} more were cut)" if trace.n_cut else ""),
        "layers": f"{len(trace.layers_of(part))} of {n_heads} heads",
        "parts": ", ".join(trace.parts),
    }
    rows = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items())
    shown = [html.escape(token.label) for token in trace.tokens[:MOST_TOKENS]]
    words = " ".join(f"<code>{label}</code>" for label in shown)
    more = f" … {len(trace.tokens) - MOST_TOKENS} more" if len(trace.tokens) > MOST_TOKENS else ""
    return (
        f"<div><table>{rows}</table><p>{words}{more}</p>{_heads_svg(trace, part)}"
        "<p><small>Each square is a head: queries down, keys across, darker is more weight.</small></p></div>"
    )


def _heads_svg(trace: Trace, part: str) -> str:
    found = survey(trace, part=part, size=SIDE)
    n_layers, n_heads = found.thumbnails.shape[:2]
    step = CELL + GAP
    width, height = 34 + n_layers * step, 20 + n_heads * step
    labels = [f"<text x='{36 + i * step}' y='12' font-size='12'>L{n}</text>" for i, n in enumerate(found.layers)]
    labels += [f"<text x='2' y='{20 + h * step + 16}' font-size='12'>H{h}</text>" for h in range(n_heads)]
    heads = [
        _thumbnail(found, row, head, 34 + row * step, 20 + head * step)
        for row in range(n_layers)
        for head in range(n_heads)
    ]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' role='img' "
        f"aria-label='{n_layers} layers of {n_heads} heads' fill='currentColor' style='max-width:100%;height:auto'>"
        f"{''.join(labels)}{''.join(heads)}</svg>"
    )


def _thumbnail(found: Survey, row: int, head: int, x: int, y: int) -> str:
    """Return one head as tiles whose opacity is the weight; those of one opacity are strokes of one path."""
    tiles = found.thumbnails[row, head]
    if np.isnan(tiles).all():
        return ""
    paths: dict[int, list[str]] = {}
    for query, levels in enumerate(np.rint(np.nan_to_num(tiles) * LEVELS).astype(int).tolist()):
        key = 0
        for level, several in groupby(levels):
            length = len(list(several))
            if level:
                paths.setdefault(level, []).append(f"M{key} {query}h{length}")  # as wide as a tile: a row of tiles
            key += length
    drawn = "".join(f"<path d='{''.join(d)}' opacity='{level / LEVELS:g}'/>" for level, d in paths.items())
    scale = f"scale({CELL / max(tiles.shape):.4g}) translate(0,.5)"
    return (
        f"<g transform='translate({x},{y})'><title>L{found.layers[row]} H{head}</title>"
        f"<rect width='{CELL}' height='{CELL}' fill='#8884'/>"
        f"<g stroke='rgb{INDIGO}' transform='{scale}'>{drawn}</g></g>"
    )
