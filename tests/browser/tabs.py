"""The app's tabs that stay open from test to test: to load the app takes longer than to go elsewhere in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.browser.app_page import WIRE, assert_no_error_box, rest

SIZE = {"width": 1280, "height": 900}
SCHEMES = {"light": "light", "dark": "dark", "other": "light"}  # of each tab, which has a context of its own


def watch(page: Page) -> list[str]:
    """Return a list that grows by what a tab should not do: ask another host, or write an error."""
    faults: list[str] = []

    def look_at_address(url: str) -> None:
        if not url.startswith(("data:", "blob:")) and urlparse(url).hostname != "127.0.0.1":
            faults.append(url)

    def look_at_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    page.on("request", lambda request: look_at_address(request.url))
    page.on("websocket", lambda socket: look_at_address(socket.url))
    page.on("console", look_at_message)
    page.on("pageerror", lambda error: faults.append(str(error)))
    return faults


class Tabs:
    """Contexts, and the one tab of the app that stays open in each."""

    def __init__(self, browser: Browser, url: str, *, patience: float) -> None:
        self.browser, self.url, self.patience = browser, url, patience
        self.contexts: dict[str, BrowserContext] = {}
        self.pages: dict[str, Page] = {}
        self.faults: dict[str, list[str]] = {}

    def context(self, name: str) -> BrowserContext:
        """Return a context; a small page in it keeps the process that has the app's compiled scripts."""
        if name not in self.contexts:
            context = self.browser.new_context(
                viewport=SIZE,
                color_scheme=SCHEMES[name],
                permissions=["clipboard-read", "clipboard-write"],
                accept_downloads=True,
            )
            context.set_default_timeout(1000 * self.patience)
            context.add_init_script(WIRE)
            context.new_page().goto(f"{self.url}/_stcore/health")
            self.contexts[name] = context
        return self.contexts[name]

    @contextmanager
    def lent(self, name: str, session: pytest.Session) -> Iterator[Page]:
        """Give a tab for one test; after one that failed the next gets a new tab."""
        failed_before = session.testsfailed
        page = self.pages.get(name) or self._open(name)
        self.faults[name].clear()
        healthy = False
        try:
            yield page
            if session.testsfailed == failed_before:
                assert_no_error_box(page)
                assert self.faults[name] == []
                healthy = True
        finally:
            if not healthy:
                print(f"the {name} tab, at {page.url}, complained of: {self.faults[name]}")
                self.pages.pop(name)
            self.tidy(name)

    def tidy(self, name: str) -> None:
        """Close what a test opened beside the tab, and put back what it changed."""
        context = self.context(name)
        kept, *others = context.pages
        for page in others:
            if page is not self.pages.get(name):
                page.close()
        if page := self.pages.get(name):
            page.set_viewport_size(SIZE)
            page.emulate_media(color_scheme=SCHEMES[name])
            page.mouse.move(0, 0)
        context.set_offline(False)
        kept.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")

    def close(self) -> None:
        for context in self.contexts.values():
            context.close()

    def _open(self, name: str) -> Page:
        page = self.context(name).new_page()
        page.goto(f"{self.url}/talk?model=untrained")  # the lightest page, and the model that loads at once
        page.wait_for_selector("[data-testid=stSidebar] .st-key-palette input:enabled")  # connected, and drawn
        rest(page)
        self.pages[name], self.faults[name] = page, watch(page)
        return page
