"""One head's picture as a file: HTML with all that it needs inside, or PNG and SVG by an installed browser."""

import html
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psutil

from attnviz.core.maps.choice import MapChoice, Scale
from attnviz.core.maps.shown import shown_map
from attnviz.core.trace.head import Head

SECONDS = 30  # for the browser
SIDE = (420, 1600)  # px of the map
CELL = 24
ROUND_THE_MAP = 240  # px for labels, titles and the colour bar

# In a process of its own, so that a browser that hangs can be ended: kaleido's own limit begins when the browser has
# answered, and waits for ever for one that doesn't. No MathJax: it would be fetched from the network.
_DRAW = """
import json, sys, kaleido
figure, options = json.load(sys.stdin)
picture = kaleido.calc_fig_sync(figure, options, kopts={"mathjax": False})
sys.stdout.buffer.write(picture)
"""


def head_figure(head: Head, *, title: str, theme: str, scale: Scale) -> tuple[Any, str]:
    """Return the map of a head, and a sentence on what it leaves out, empty if nothing."""
    from attnviz.figures import on_page
    from attnviz.figures.shown_map import shown_figure

    shown, left_out = shown_map(head, head, MapChoice(scale=scale)), ""
    if shown.pooled:
        largest = f"largest weight of {shown.block} x {shown.block} tokens"
        shown, left_out = replace(shown, bar_title=largest, scale=scale), f"Each square is the {largest}."
    height = round(min(max(CELL * max(shown.values.shape), SIDE[0]), SIDE[1])) + ROUND_THE_MAP
    return on_page(shown_figure(shown, title=title, theme=theme, height=height)), left_out


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
