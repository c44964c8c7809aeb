"""One head's picture as a file: HTML with all that it needs inside, or PNG and SVG by an installed browser."""

import html
import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import psutil

from attnviz.core.export.head_files import HeadNumbers
from attnviz.core.trace.pooling import pool_largest

MOST_CELLS = 160  # a side; longer texts are pooled
SECONDS = 30  # for the browser
SIDE = (420, 1600)  # px of the map
CELL = 24
ROUND_THE_MAP = 240  # px for labels, titles and the colour bar

# In a process of its own, so that a browser that hangs can be ended. No MathJax: it would be fetched from the network.
_DRAW = """
import json, sys, kaleido
figure, options = json.load(sys.stdin)
picture = kaleido.calc_fig_sync(figure, options, kopts={"mathjax": False})
sys.stdout.buffer.write(picture)
"""


def head_figure(numbers: HeadNumbers, *, title: str, theme: str, scale: Any) -> tuple[Any, str]:
    """Return the map of a head, and a sentence on what it leaves out, empty if nothing."""
    from attnviz.figures import head_map, on_page

    weights, allowed, left_out, bar = numbers.weights, numbers.allowed, "", None
    labels = [[token.label for token in tokens] for tokens in (numbers.queries, numbers.keys)]
    if max(weights.shape) > MOST_CELLS:
        weights, allowed, block = pool_largest(np.nan_to_num(weights), allowed, MOST_CELLS)
        labels = [_spans(len(tokens), block) for tokens in (numbers.queries, numbers.keys)]
        left_out = f"Each square is the largest weight of {block} x {block} tokens."
        bar = f"largest weight of {block} x {block} tokens"
    height = round(min(max(CELL * max(weights.shape), SIDE[0]), SIDE[1])) + ROUND_THE_MAP
    figure = head_map(
        weights, *labels, allowed=allowed, scale=scale, title=title, theme=theme, bar_title=bar, height=height
    )
    return on_page(figure), left_out


def _spans(n_tokens: int, block: int) -> list[str]:
    """Return the first and last index of each block of tokens; the last block may be smaller."""
    return [f"{start}–{min(start + block, n_tokens) - 1}" for start in range(0, n_tokens, block)]


def page(figure: Any, title: str) -> str:
    """Return one HTML file with plotly inside; opened, it asks no server for anything."""
    from attnviz.figures import THEMES

    look, meta = THEMES[figure.layout.meta["theme"]], figure.layout.meta
    body = figure.to_html(
        include_plotlyjs=True, full_html=False, config={"displaylogo": False, "responsive": True}, default_width="100%"
    )
    style = f"margin:1rem;background:{look.page};color:{look.text};font-family:sans-serif"
    caption = " ".join([meta["how_to_read"], *meta["notes"]])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
        f'<body style="{style}">\n<figure style="margin:0" aria-label="{html.escape(meta["alt"])}">{body}\n'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>\n</body>\n</html>\n"
    )


def image(figure: Any, kind: str, *, seconds: float = SECONDS) -> bytes:
    """Return a "png" or an "svg" of a figure, drawn by an installed Chromium or Chrome.

    Raises:
        ValueError: no browser, a browser that fails, or none that answers in time.
    """
    height = int(figure.layout.height)
    options = {"format": kind, "width": height, "height": height, "scale": 2 if kind == "png" else 1}
    drawing = subprocess.Popen(
        [sys.executable, "-c", _DRAW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    request = f"[{figure.to_json()}, {json.dumps(options)}]".encode()
    try:
        picture, said = drawing.communicate(request, timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(drawing)
        raise ValueError(f"the browser gave no {kind} in {seconds:g} seconds; write .html instead") from None
    if drawing.returncode or not picture:
        raise ValueError(_why(kind, said.decode("utf-8", "replace")))
    return picture


def _end(drawing: subprocess.Popen[bytes]) -> None:
    """End the process and the browser that it started, which lives in a session of its own."""
    family = [psutil.Process(drawing.pid)]
    family += family[0].children(recursive=True)
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    drawing.wait()
    psutil.wait_procs(family, timeout=5)


def _why(kind: str, said: str) -> str:
    if "ChromeNotFoundError" in said:
        return f"a {kind} is drawn by Chromium or Chrome, and none is installed; install one, or write .html instead"
    if "No module named 'kaleido'" in said:
        return f"a {kind} needs the package kaleido: pip install -r requirements.txt"
    lines = [line for line in said.splitlines() if line.strip()]
    return f"the browser gave no {kind}: {(lines or ['no reason given'])[-1].strip()[:200]}"
