"""What the browser tests do on the app's pages: open, choose, wait for a map, read it, and watch what goes wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from urllib.parse import urlparse

import numpy as np
from PIL import Image
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

MAP = ".st-key-head-map .js-plotly-plot"
IDLE = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
NUMBERS = """(selector) => {
  const rows = document.querySelector(selector)?.calcdata?.[0]?.[0]?.z;
  return rows ? Array.from(rows, (row) => Array.from(row, (value) => Number.isFinite(value) ? value : null)) : null;
}"""
SHOWS = f"""([selector, expected]) => {{
  const numbers = ({NUMBERS})(selector);
  const close = (a, b) => a === null || b === null ? a === b : Math.abs(a - b) < 1e-4;
  return numbers?.length === expected.length && numbers.every((row, i) =>
    row.length === expected[i].length && row.every((value, j) => close(value, expected[i][j])));
}}"""
SLOW_ANSWERS = """
const Socket = window.WebSocket;
const [held, state] = [[], { holding: false }];
const later = (listener) => (event) => (state.holding ? held.push({ listener, event }) : listener(event));
window.WebSocket = class extends Socket {
  set onmessage(listener) { super.onmessage = later(listener); }
  addEventListener(type, listener, ...rest) {
    super.addEventListener(type, type === "message" ? later(listener) : listener, ...rest);
  }
};
window.holdAnswers = () => { state.holding = true; };
window.letAnswersIn = () => {
  state.holding = false;
  held.splice(0).forEach(({ listener, event }) => listener(event));
};
window.allAnswersWait = (word) => new Promise((resolve) => {
  const told = () => held.some(({ event }) => new TextDecoder("latin1").decode(event.data).includes(word));
  const look = (last, quiet) => (quiet > 10 && told() ? resolve(true)
    : setTimeout(() => look(held.length, held.length === last ? quiet + 1 : 0), 50));
  look(-1, 0);
});
"""  # with it a test decides when the page hears what the server sent, as if the way were long


def open_app(page: Page, address: str) -> None:
    """Go to the app and wait until it has drawn its map and nothing runs."""
    page.goto(address)
    page.wait_for_selector(f"{MAP} .main-svg")
    rest(page)


def rest(page: Page) -> None:
    """Wait until no script runs and none has started for a moment."""
    page.wait_for_function(
        f"""() => new Promise((resolve) => {{
          let quiet = 0;
          const look = () => {{ quiet = {IDLE} ? quiet + 1 : 0; quiet > 8 ? resolve(true) : setTimeout(look, 40); }};
          look();
        }})"""
    )


def widget(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key}")


def choose(page: Page, key: str, option: str) -> None:
    """Click an option of a row of buttons."""
    widget(page, key).get_by_role("radio", name=option, exact=True).click()


def chosen(page: Page, key: str) -> str:
    """Return which option of a row of buttons is on."""
    return widget(page, key).locator("[role=radio][aria-checked=true]").inner_text()


def run_text(page: Page, text: str) -> None:
    """Type a text and press Ctrl+Enter."""
    area = page.get_by_label("Your text")
    area.fill(text)
    area.press("Control+Enter")


def expect_head(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", name=f"{name}: who looks at whom")).to_be_visible()


def expect_map(page: Page, weights: np.ndarray, allowed: np.ndarray | None = None) -> None:
    """Wait until the large map shows these weights, nothing where they aren't allowed."""
    visible = np.ones(weights.shape, bool) if allowed is None else allowed
    rows = [
        [float(value) if seen else None for value, seen in zip(*row, strict=True)]
        for row in zip(weights, visible, strict=True)
    ]
    page.wait_for_function(SHOWS, arg=[MAP, rows])


def numbers(page: Page) -> np.ndarray:
    """Return what the large map shows, NaN where it shows nothing."""
    return np.array(page.evaluate(NUMBERS, MAP), dtype=float)


def labels(page: Page, axis: str) -> list[str]:
    """Return the tick labels of the map as they read, in the order of the tokens."""
    texts = page.locator(f"{MAP} .{axis}tick text").all_text_contents()
    return texts[::-1] if axis == "y" else texts


def cell(page: Page, row: int, column: int, shape: tuple[int, int]) -> dict[str, float]:
    """Return the middle of a cell of the large map, in px of the window, after scrolling it into sight."""
    area = page.locator(f"{MAP} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    return {
        "x": box["x"] + box["width"] * (column + 0.5) / shape[1],
        "y": box["y"] + box["height"] * (row + 0.5) / shape[0],
    }


def thumbnail(page: Page, layer: int, head: int) -> dict[str, float]:
    """Return where a head's thumbnail lies in the picture of all heads."""
    size = page.locator(".overview .outline").bounding_box()["width"]
    return {"x": (head + 0.5) * (size + 4) - 2, "y": (layer + 0.5) * (size + 4) - 2}


def colour_at(page: Page, x: float, y: float) -> tuple[int, ...]:
    """Return the colour of one px of the window."""
    shot = Image.open(BytesIO(page.screenshot(clip={"x": x, "y": y, "width": 1, "height": 1}))).convert("RGB")
    return shot.getpixel((0, 0))


def assert_no_error_box(page: Page) -> None:
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").all_inner_texts() == []


class Traffic:
    """All that a tab asks for and is sent."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.received: list[int] = []  # bytes of each websocket message
        self.sent: list[int] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        socket.on("framereceived", lambda frame: self.received.append(len(frame)))
        socket.on("framesent", lambda frame: self.sent.append(len(frame)))


@contextmanager
def watched(context: BrowserContext) -> Iterator[None]:
    """Fail, after the block, if a tab of this visitor asked another host for anything, or wrote an error."""
    faults: list[str] = []

    def look_at_request(request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")) and urlparse(request.url).hostname != "127.0.0.1":
            faults.append(request.url)

    def look_at_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    def look_at_page(page: Page) -> None:
        page.on("websocket", lambda socket: urlparse(socket.url).hostname == "127.0.0.1" or faults.append(socket.url))
        page.on("pageerror", lambda error: faults.append(str(error)))

    listeners = {"request": look_at_request, "console": look_at_message, "page": look_at_page}
    for event, look in listeners.items():
        context.on(event, look)
    yield
    for event, look in listeners.items():
        context.remove_listener(event, look)
    assert faults == []
