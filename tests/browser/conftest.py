"""A running app and a Chromium to look at it with, started with the first browser test and ended with the last."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.chromium import CHROMIUM_FLAGS, CHROMIUM_NAMES, find_chromium

ROOT = Path(__file__).parents[2]
START_SECONDS = 60
PAGE_SECONDS = 120  # the first page loads the default model, and a busy machine takes its time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder as a browser test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the installed Chromium or Chrome; without one skip the test, and on CI fail it."""
    found = find_chromium()
    if found is None:
        sentence = f"no browser to test in: install one of {', '.join(CHROMIUM_NAMES)}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(sentence)
    return found


@pytest.fixture(scope="session")
def app_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with all that the running app printed."""
    return tmp_path_factory.mktemp("app") / "log.txt"


@pytest.fixture(scope="package")
def app_url(app_log: Path, chromium_path: str) -> Iterator[str]:
    """Start the app on a free port, give its address, and end it after the last browser test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--server.headless=true", "--server.address=127.0.0.1", "--server.fileWatcherType=none"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", *options]
    with app_log.open("w") as log:
        app = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_healthy(url, app, app_log)
        yield url
    finally:
        app.terminate()
        try:
            app.wait(timeout=10)
        except subprocess.TimeoutExpired:
            app.kill()
            app.wait()


@pytest.fixture(scope="package")
def browser(chromium_path: str) -> Iterator[Browser]:
    """Start Chromium, and end it after the last browser test."""
    expect.set_options(timeout=PAGE_SECONDS * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def warm_contexts(browser: Browser, app_url: str) -> Iterator[dict[str, BrowserContext]]:
    """Open a light and a dark context that last; a tab in each keeps the process with the app's compiled scripts."""
    contexts = {}
    for scheme in ("light", "dark"):
        contexts[scheme] = browser.new_context(
            viewport={"width": 1280, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts[scheme].set_default_timeout(PAGE_SECONDS * 1000)
        contexts[scheme].new_page().goto(f"{app_url}/_stcore/health")
    yield contexts
    for context in contexts.values():
        context.close()


@pytest.fixture
def contexts(warm_contexts: dict[str, BrowserContext]) -> Iterator[dict[str, BrowserContext]]:
    """Return the contexts by colour scheme, with nothing stored; what a test opens in them is closed after it."""
    yield warm_contexts
    for context in warm_contexts.values():
        kept, *opened = context.pages
        for page in opened:
            page.close()
        context.set_offline(False)
        context.clear_cookies()
        kept.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")


@pytest.fixture
def context(contexts: dict[str, BrowserContext]) -> BrowserContext:
    """Return the light context: 1280 x 900, allowed to use the clipboard; each tab in it is a visitor of its own."""
    return contexts["light"]


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Open an empty tab; `page.goto(app_url)` goes to the app."""
    return context.new_page()


def _wait_until_healthy(url: str, app: subprocess.Popen, log: Path) -> None:
    """Return when the app answers; raise with what it printed when it ends, or says nothing for too long."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and app.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not start within {START_SECONDS} s; it printed:\n{log.read_text()}")
