"""A trace as a small piece of HTML for notebooks: what it is, and all heads in small, without further libraries."""

import html
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from attnviz.core.trace.records import Float, ModelInfo, Token

CELL = 26  # px of a thumbnail
GAP = 4
LEVELS = 5  # of opacity
MOST_TOKENS = 60  # that are written out
INDIGO = (67, 56, 202)


def trace_html(model: ModelInfo, tokens: Sequence[Token], n_cut: int, layers: Sequence[int], thumbnails: Float) -> str:
    """Return a table of facts, the tokens, and a thumbnail of every head as inline SVG.

    Everything from the text is escaped; there is no script, and nothing is loaded from elsewhere.

    Args:
        model: what ran.
        tokens: of the text; `n_cut`: how many more were left out.
        n_cut: see `tokens`.
        layers: numbers of the layers.
        thumbnails: (layers, heads, rows, columns) weights, NaN where masked and for heads that a layer lacks.
    """
    facts = {
        "model": f"{model.title}, revision {model.revision}, {model.dtype}",
        "tokens": f"{len(tokens)}" + (f" ({n_cut} more were cut)" if n_cut else ""),
        "layers": f"{len(layers)} of {thumbnails.shape[1]} heads",
        "parts": ", ".join(model.parts),
    }
    rows = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items())
    words = " ".join(f"<code>{html.escape(token.label)}</code>" for token in tokens[:MOST_TOKENS])
    more = f" … {len(tokens) - MOST_TOKENS} more" if len(tokens) > MOST_TOKENS else ""
    return (
        f"<div><table>{rows}</table><p>{words}{more}</p>{_heads_svg(layers, thumbnails)}"
        "<p><small>Each square is a head: queries down, keys across, darker is more weight.</small></p></div>"
    )


def _heads_svg(layers: Sequence[int], thumbnails: Float) -> str:
    n_layers, n_heads = thumbnails.shape[:2]
    step = CELL + GAP
    width, height = 34 + n_layers * step, 20 + n_heads * step
    labels = [f"<text x='{36 + i * step}' y='12' font-size='12'>L{n}</text>" for i, n in enumerate(layers)]
    labels += [f"<text x='2' y='{20 + h * step + 16}' font-size='12'>H{h}</text>" for h in range(n_heads)]
    heads = [
        _thumbnail(f"L{layer} H{head}", thumbnails[row, head], 34 + row * step, 20 + head * step)
        for row, layer in enumerate(layers)
        for head in range(n_heads)
    ]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' role='img' "
        f"aria-label='{n_layers} layers of {n_heads} heads' fill='currentColor' style='max-width:100%;height:auto'>"
        f"{''.join(labels)}{''.join(heads)}</svg>"
    )


def _thumbnail(name: str, tiles: Float, x: int, y: int) -> str:
    """Return one head as tiles whose opacity is the weight; those of one opacity are strokes of one path."""
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
        f"<g transform='translate({x},{y})'><title>{name}</title>"
        f"<rect width='{CELL}' height='{CELL}' fill='#8884'/>"
        f"<g stroke='rgb{INDIGO}' transform='{scale}'>{drawn}</g></g>"
    )
