"""Made-up maps and labels, and one of each figure, for all tests of figures."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from attnviz import figures

TRICKY = ("<s>", "<b>x</b>", "$x$", "·the", "·cat", "·the", "a&b", "<br>", "·5$", "&lt;", "שלום", "⏎⏎", ".")


def causal_map(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, allowed and scores (n, n) of a causal head that likes the first token."""
    rng = np.random.default_rng(seed)
    allowed = np.tril(np.ones((n, n), dtype=bool))
    scores = 2 * rng.normal(size=(n, n))
    scores[:, 0] += 3
    scores[~allowed] = -np.inf
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True), allowed, scores


def labels(n: int) -> list[str]:
    """Return n labels, some of them equal, some of them like HTML or mathematics."""
    return [TRICKY[i % len(TRICKY)] for i in range(n)]


def thumbnails(n_layers: int = 3, n_heads: int = 2, side: int = 5) -> np.ndarray:
    """Return (layers, heads, side, side) weights with NaN where masked; the last layer lacks its last head."""
    maps = np.empty((n_layers, n_heads, side, side))
    for layer in range(n_layers):
        for head in range(n_heads):
            weights, allowed, _ = causal_map(side, seed=10 * layer + head)
            maps[layer, head] = np.where(allowed, weights, np.nan)
    maps[-1, -1] = np.nan
    return maps


def _head_map(**settings) -> go.Figure:
    weights, allowed, _ = causal_map(13)
    return figures.head_map(weights, labels(13), labels(13), allowed=allowed, **settings)


def _scores(**settings) -> go.Figure:
    return figures.head_map(causal_map(13)[2], labels(13), labels(13), kind="scores", **settings)


def _difference(**settings) -> go.Figure:
    change = causal_map(13, seed=1)[0] - causal_map(13)[0]
    return figures.head_map(change, labels(13), labels(13), allowed=causal_map(13)[1], kind="difference", **settings)


def _row(**settings) -> go.Figure:
    weights, allowed, _ = causal_map(13)
    other = causal_map(13, seed=1)[0]
    row = {"after": other[5], "allowed": allowed[5], "query_label": labels(13)[5]}
    return figures.row_bars(weights[5], labels(13), **row, **settings)


def _next_tokens(**settings) -> go.Figure:
    before = [("·<b>Paris</b>", 0.77), ("$x$", 0.1), ("·the", 0.02)]
    after = [("·the", 0.5), ("⏎", 0.2), ("·the", 0.1)]
    return figures.next_token_bars(before, after, **settings)


def _layers_by_heads(**settings) -> go.Figure:
    values = np.array([[0.1, -0.4], [0.0, np.nan], [0.3, 0.2]])
    return figures.layers_by_heads(values, [0, 2, 7], kind="difference", marked=[(7, 1)], **settings)


def _score_histogram(**settings) -> go.Figure:
    where = np.linspace(-2, 2, 50)
    curves = [("exact", where, np.exp(-abs(where)) / 2), ("$normal$", where, np.exp(-(where**2) / 2) / 2.5)]
    return figures.score_histogram([1, 0, 6, 2], [-2, -1, 0, 1, 2], curves, **settings)


def _share_curves(**settings) -> go.Figure:
    lines = [figures.Line("with <b>1/√d</b>", [0, 0.1, 0.2]), figures.Line("without", [0, 0.5, 1], second=True)]
    return figures.share_curves([1, 2, 4], lines, marked=2, **settings)


def _distance_curve(**settings) -> go.Figure:
    scores = np.cos(np.arange(9))
    rows = {"average": scores / 2, "band": (scores / 2 - 1, scores / 2 + 1), "marked": 3}
    return figures.distance_curve(scores, **rows, **settings)


def _candidates(**settings) -> go.Figure:
    rows = [("L9 H4, <b>chosen</b>", [0.62, 0.11, 0.0]), ("$x$", [0.2, 0.3, 0.0004])]
    rules = [("equal shares", [1 / 3] * 3)]
    return figures.candidate_bars(rows, ["<b>Tom</b>", "the $5", "שלום"], answer=1, rules=rules, **settings)


def _rates(**settings) -> go.Figure:
    rows = [("L9 H4, <b>x</b>", 0.9, 0.8, 0.95), ("$x$", 0.5, np.nan, np.nan), ("שלום", 0.0, 0.0, 0.1)]
    return figures.rate_dots(rows, highlighted=[0], chance=0.5, **settings)


def _cost_curves(**settings) -> go.Figure:
    s = np.array([256, 512, 1024])
    curves = [
        figures.Curve("<b>whole</b>", s, 4.0 * s**2),
        figures.Curve("$blocks$", s, 64.0 * s),
        figures.Curve("s²", s, 1.0 * s**2, guide=True),
    ]
    marks = [figures.Mark(512, 4 * 512**2, "meet at <512>")]
    return figures.cost_curves(curves, unit="bytes", marks=marks, marked=300, markers=True, **settings)


def _flash_grid(**settings) -> go.Figure:
    names = ["0 to 1", "<b>", "$x$"]
    skipped = np.triu(np.ones((3, 3), bool), 1)
    return figures.flash_grid(skipped, (1, 1), query_names=names, key_names=names, **settings)


def _cache_bands(**settings) -> go.Figure:
    sizes = np.abs(np.random.default_rng(0).normal(size=(3, 13)))
    return figures.cache_bands(sizes, ["K 0", "<b>K 1</b>", "$2$"], labels(13), new=2, start=90, **settings)


ALL: dict[str, Callable[..., go.Figure]] = {
    "head_map": lambda **s: _head_map(highlight_query=3, marked=[(4, 1)], forbidden=[(5, 2), (6, 2)], **s),
    "head_map_sqrt": lambda **s: _head_map(scale="sqrt", **s),
    "head_map_without_first": lambda **s: _head_map(scale="without_first", **s),
    "scores": _scores,
    "difference": _difference,
    "saturation": lambda **s: figures.saturation_histogram([5, 0, 3], [1, 0, 7], [0, 0.4, 0.8, 1], n_not_finite=2, **s),
    "gradient": lambda **s: figures.gradient_histogram([5, 2], [3, 4], [0.001, 0.1, 0.5], log_values=True, **s),
    "next_tokens": _next_tokens,
    "row": _row,
    "layers_by_heads": _layers_by_heads,
    "heads_changed": lambda **s: figures.heads_changed([[0.1, 0.4], [0.0, np.nan]], [0, 3], switched=[(0, 1)], **s),
    "score_histogram": _score_histogram,
    "share_curves": _share_curves,
    "sums": lambda **s: figures.sum_bars(np.ones(13), causal_map(13)[0].sum(axis=0), labels(13), **s),
    "components": lambda **s: figures.component_map(np.random.default_rng(0).normal(size=(13, 24)), labels(13), **s),
    "component_bars": lambda **s: figures.component_bars([3.0, -1.0, 0.5, 2.0], highlighted=[0, 3], **s),
    "labelled_bars": lambda **s: figures.labelled_bars([1.5, -0.2], ["<b>x</b>", "$x$"], highlighted=[1], **s),
    "distance_curve": _distance_curve,
    "candidates": _candidates,
    "cache_bands": _cache_bands,
    "cost_curves": _cost_curves,
    "flash_grid": _flash_grid,
    "rates": _rates,
    "overview": lambda **s: figures.overview(thumbnails(), [0, 2, 7], marked=[(2, 1)], **s),
    "layer_overview": lambda **s: figures.layer_overview(np.tile(causal_map(5)[0], (10, 1, 1)), **s),
}
"""Name -> a function that draws that figure; takes title, theme, label_size."""
