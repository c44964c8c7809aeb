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

from tests.browser.app_page import WIRE
from tests.browser.apps.server import Board, serve
from tests.browser.tabs import SIZE, Tabs
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


@pytest.fixture(scope="package")
def app_url(tmp_path_factory: pytest.TempPathFactory, chromium_path: str) -> Iterator[str]:
    """Start the app on a free port, give its address, end it after the last browser test; it wrote no traceback."""
    app_log = tmp_path_factory.mktemp("app") / "log.txt"
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
    assert "Traceback" not in app_log.read_text()


@pytest.fixture(scope="package")
def browser(chromium_path: str) -> Iterator[Browser]:
    """Start Chromium, and end it after the last browser test."""
    expect.set_options(timeout=PAGE_SECONDS * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def tabs(browser: Browser, app_url: str) -> Iterator[Tabs]:
    """Return the app's tabs that stay open from test to test; each is opened when first asked for."""
    found = Tabs(browser, app_url, patience=PAGE_SECONDS)
    yield found
    found.close()


@pytest.fixture
def tab(tabs: Tabs, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Return the open app on a light page of 1280 x 900; `go` brings it to an address."""
    with tabs.lent("light", request.session) as page:
        yield page


@pytest.fixture
def dark_tab(tabs: Tabs, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Return the open app on a dark page."""
    with tabs.lent("dark", request.session) as page:
        yield page


@pytest.fixture
def other_tab(tabs: Tabs, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Return the open app of another visitor, who shares nothing with the first."""
    with tabs.lent("other", request.session) as page:
        yield page


@pytest.fixture
def context(tabs: Tabs) -> Iterator[BrowserContext]:
    """Return the light context with nothing stored, allowed to use the clipboard; each tab in it is a visitor."""
    yield tabs.context("light")
    tabs.tidy("light")


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Open an empty tab, for tests of what loading does; `page.goto(app_url)` goes to the app."""
    return context.new_page()


@pytest.fixture(scope="package")
def board_of_all(browser: Browser) -> Iterator[Board]:
    """Open a page of components without the app around them, and end it after the last browser test."""
    context = browser.new_context(viewport=SIZE, color_scheme="light", accept_downloads=True)
    context.add_init_script(WIRE)
    for url in serve("components.py"):
        yield Board(context.new_page(), url)
    context.close()


@pytest.fixture
def board(board_of_all: Board) -> Iterator[Page]:
    """Return the page of components, for `show`; fail if it threw an error."""
    board_of_all.errors.clear()
    yield board_of_all.page
    board_of_all.page.set_viewport_size(SIZE)
    board_of_all.page.emulate_media(color_scheme="light")
    board_of_all.page.mouse.move(0, 0)
    assert board_of_all.errors == []


@pytest.fixture
def frames(board_of_all: Board) -> list[int]:
    """Return the list that grows by the bytes of each websocket message that the page of components receives."""
    return board_of_all.frames


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
