"""Start one of these pages, and let it show one thing after another."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.app_page import GO, LET_GO, rest

APPS = Path(__file__).parent
ROOT = APPS.parents[2]


def serve(script: str) -> Iterator[str]:
    """Run a Streamlit script on a free port, give its address, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", str(APPS / script), "--server.fileWatcherType=none", *options]
    app = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, app)
        yield f"http://127.0.0.1:{port}"
    finally:
        app.terminate()
        app.wait(timeout=10)


def _wait_for(port: int, app: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and app.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the page of the component did not start")


class Board:
    """A page that shows one component after another without a reload, and what it received and complained of."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.frames: list[int] = []  # bytes of each websocket message
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: self.frames.append(len(frame))))
        page.goto(url)
        expect(page.get_by_text("visit 0 is drawn")).to_be_visible()


def show(page: Page, query: str) -> None:
    """Let the open page show something else, all of it new, and wait until it is drawn."""
    page.evaluate(LET_GO)
    rest(page)
    page.evaluate(GO, query)
    visit = page.evaluate("new URLSearchParams(location.search).get('visit')")
    expect(page.get_by_text(f"visit {visit} is drawn")).to_be_visible()
    rest(page)
