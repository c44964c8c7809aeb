"""The Explore page in Chromium: a click on a thumbnail against the smallest page, and what goes over the wire."""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.timing import ROOT
from tests.benchmarks.tracing import SENTENCE
from tests.chromium import CHROMIUM_FLAGS, find_chromium

CLICKS = 15

WATCH = """
() => {
  const numbers = () => JSON.stringify(document.querySelector('.st-key-head-map .js-plotly-plot')?.data?.[0]?.z ?? null)
  const before = numbers()
  window.redrawn = new Promise((resolve) => {
    document.addEventListener('pointerdown', () => {
      const started = performance.now()
      const look = () => numbers() === before ? requestAnimationFrame(look)
        : requestAnimationFrame(() => resolve(performance.now() - started))
      look()
    }, { capture: true, once: true })
  })
}
"""


@contextlib.contextmanager
def served(script: str) -> Iterator[str]:
    """Run a Streamlit script and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless=true", f"--server.port={port}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*command, "--server.fileWatcherType=none"], cwd=ROOT, env=os.environ, **quiet)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def measure() -> dict[str, Any]:
    """Return milliseconds from click to redrawn map for both pages, their ratio, and kilobytes of the first view."""
    from playwright.sync_api import sync_playwright

    with (
        served("app.py") as app,
        served("tests/benchmarks/one_heatmap.py") as small,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        open_page(browser, app).close()  # loads the model
        ours, theirs = open_page(browser, app), open_page(browser, small)
        milliseconds: dict[str, list[float]] = {"thumbnail": [], "smallest_page": []}
        for click in range(CLICKS + 1):
            pair = {"thumbnail": click_thumbnail(ours, click), "smallest_page": click_button(theirs)}
            for name, value in pair.items():
                milliseconds[name] += [value] if click else []
        pairs = zip(milliseconds["thumbnail"], milliseconds["smallest_page"], strict=True)
        found: dict[str, Any] = {f"{name}_ms": round(statistics.median(v), 1) for name, v in milliseconds.items()}
        found["thumbnail_over_smallest_page"] = round(statistics.median(a / b for a, b in pairs), 2)
        found["first_view_kb"] = first_view(browser, app)
        browser.close()
    return found


def open_page(browser: Any, address: str, **options: Any) -> Any:
    """Open a page of 1400 x 1000 and wait until its map is drawn and nothing runs."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, **options)
    page.goto(address)
    page.wait_for_selector(".st-key-head-map .js-plotly-plot .main-svg", timeout=120_000)
    settle(page)
    return page


def settle(page: Any) -> None:
    """Wait until the script has run to its end and a second has passed."""
    page.wait_for_function("!document.querySelector('[data-test-script-state=running]')", timeout=120_000)
    time.sleep(1)


def click_thumbnail(page: Any, number: int) -> float:
    """Click a thumbnail that isn't selected and return the milliseconds until the map shows its head."""
    canvas = page.locator(".st-key-overview canvas").first
    box = canvas.bounding_box()
    row, column = number % 12, (number * 4) % 9
    page.evaluate(WATCH)
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / 9, box["y"] + box["height"] * (row + 0.5) / 30)
    milliseconds = page.evaluate("window.redrawn")
    settle(page)
    return milliseconds


def click_button(page: Any) -> float:
    """Click the smallest page's button and return the milliseconds until its map has changed."""
    page.evaluate(WATCH)
    page.get_by_role("button", name="next").click()
    milliseconds = page.evaluate("window.redrawn")
    settle(page)
    return milliseconds


def first_view(browser: Any, address: str) -> dict[str, float]:
    """Return kilobytes that the server sends for the first view of the landing text and of 128 tokens."""
    from urllib.parse import quote

    text = (SENTENCE * 9).split()
    found = {}
    for name, query in (("landing text", ""), ("128 tokens", "?text=" + quote(" ".join(text[:112])))):
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        received: list[int] = []
        page.on("websocket", lambda ws, to=received: ws.on("framereceived", lambda f, to=to: to.append(len(f))))
        page.goto(address + query)
        page.wait_for_selector(".st-key-head-map .js-plotly-plot .main-svg", timeout=120_000)
        settle(page)
        n_tokens = page.evaluate("document.querySelector('.st-key-head-map .js-plotly-plot').calcdata[0][0].z.length")
        found[name] = {"kb": round(sum(received) / 1000, 1), "tokens": n_tokens}
        page.close()
    return found
