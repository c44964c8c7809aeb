"""What the browser tests do on the app's pages: open, go, choose, wait for a map, and read it."""

from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlparse

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page, expect

MAP = ".st-key-head-map .js-plotly-plot"
IDLE = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
RESTS = f"""() => new Promise((resolve) => {{
  const answered = () => !(window.lastAsked > window.lastBegun);
  const place = () => {{
    const main = document.querySelector("[data-testid=stMain]");
    return `${{main?.scrollTop}} of ${{main?.scrollHeight}}`;
  }};
  const look = (times, before) => {{
    const now = place();
    const quiet = answered() && {IDLE} && now === before;
    times > 8 ? resolve(true) : setTimeout(() => look(quiet ? times + 1 : 0, now), 40);
  }};
  look(0, place());
}})"""
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
LET_GO = """() => {
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  focused?.blur();
}"""
GO = """(address) => {
  const mark = `${address.includes("?") ? "&" : "?"}visit=${Math.round(1000 * performance.now())}`;
  history.pushState({}, "", `/${address}${mark}`);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}"""
DRAWN = """(selector) => JSON.stringify(
  document.querySelector(selector)?._fullData?.map((trace) => trace.y && !trace.z
    ? Array.from(trace.y) : Array.from(trace._input.z.bdata)) ?? null)"""
CHANGED = f"([selector, before]) => ![before, 'null'].includes(({DRAWN})(selector))"
WIRE = """
const Socket = window.WebSocket;
const [held, state] = [[], { holding: false }];
const later = (listener) => (event) => (state.holding ? held.push({ listener, event }) : listener(event));
const [RERUN_SCRIPT, NEW_SESSION] = [(11 << 3) | 2, (4 << 3) | 2];  // how these fields begin in streamlit's messages
const begins = (data) => {  // a run: behind the message's hash and metadata, of which each says how long it is
  const bytes = new Uint8Array(data);
  let place = 0;
  const number = () => {
    let [value, shift] = [0, 0];
    for (; bytes[place] & 128; shift += 7) value |= (bytes[place++] & 127) << shift;
    return value | (bytes[place++] << shift);
  };
  while (place < bytes.length) {
    const field = number();
    if (field === NEW_SESSION) return true;
    if ((field & 7) !== 2) return false;
    const length = number();
    place += length;
  }
  return false;
};
window.WebSocket = class extends Socket {
  constructor(...args) {
    super(...args);
    super.addEventListener("message", ({ data }) => { if (begins(data)) window.lastBegun = performance.now(); });
  }
  send(data) {
    if (new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0)[0] === RERUN_SCRIPT) {
      window.lastAsked = performance.now();
    }
    super.send(data);
  }
  set onmessage(listener) { super.onmessage = later(listener); }
  addEventListener(type, listener, ...rest) {
    super.addEventListener(type, type === "message" ? later(listener) : listener, ...rest);
  }
};
window.holdAnswers = () => { state.holding = true; };
window.letAnswersIn = async () => {  // one after another, as they would have come
  while (held.length) {
    const { listener, event } = held.shift();
    listener(event);
    await new Promise((resolve) => setTimeout(resolve));
  }
  state.holding = false;
};
window.allAnswersWait = (word) => new Promise((resolve) => {
  const told = () => held.some(({ event }) => new TextDecoder("latin1").decode(event.data).includes(word));
  const look = (last, quiet) => (quiet > 10 && told() ? resolve(true)
    : setTimeout(() => look(held.length, held.length === last ? quiet + 1 : 0), 50));
  look(-1, 0);
});
"""  # tells when the page asked for a run and heard of one that began, and lets a test hold answers back


def open_app(page: Page, address: str) -> None:
    """Go to the app and wait until it has drawn its map and nothing runs."""
    page.goto(address)
    page.wait_for_selector(f"{MAP} .main-svg")
    rest(page)


def go(page: Page, address: str, chart: str = "") -> None:
    """Bring the open app to another page or address without a reload, and wait until it shows that.

    First what has the focus loses it, which commits a box that was typed into, and that is a run of its own: the app
    takes an address that comes together with a choice for an old one. A name that means nothing makes the address
    differ from all before; the script takes it out again when it ends.

    Args:
        page: a tab with the app.
        address: behind the slash, such as "scratch?step=scores".
        chart: its key, or the beginning of it, to wait for.
    """
    page.evaluate(LET_GO)
    rest(page)
    page.evaluate(GO, address)
    page.wait_for_function("!new URLSearchParams(location.search).has('visit')", polling=50)
    rest(page)
    if chart:
        page.wait_for_selector(f"{plot(chart)} .main-svg")


def until(page: Page, look: Callable[[], Any], expected: Any) -> None:
    """Wait until what is looked at is as expected; fail with both if it never is."""
    for _ in range(1000):
        if (seen := look()) == expected:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"expected {expected!r}, saw {seen!r}")


def rest(page: Page) -> None:
    """Wait until a run has begun after all that was asked, none goes on, and nothing has moved for a moment."""
    page.wait_for_function(RESTS)


def widget(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key}")


def plot(key: str) -> str:
    """Return the selector of a chart, by its key or by the beginning of it."""
    return f"[class*=st-key-{key}] .js-plotly-plot"


def changes(page: Page, key: str, act: Callable[[], None]) -> None:
    """Do something, and wait until that chart shows other numbers than before."""
    before = page.evaluate(DRAWN, plot(key))
    act()
    page.wait_for_function(CHANGED, arg=[plot(key), before], polling=50)
    rest(page)


def unfold(page: Page, title: str, chart: str = "") -> None:
    """Open the expander with that title if it isn't open, and wait for the chart in it."""
    box = page.locator("[data-testid=stExpander] details", has=page.locator("summary", has_text=title)).first
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    if chart:
        page.wait_for_selector(f"{plot(chart)} .main-svg")
    rest(page)


def pick(page: Page, key: str, option: str) -> None:
    """Choose an entry of a drop-down list, by its name or the beginning of it."""
    box = widget(page, key).get_by_role("combobox")
    box.scroll_into_view_if_needed()
    rest(page)
    box.fill(option)  # typing opens the list; a click closes it again where the page moves under the pointer
    page.get_by_role("option", name=option).first.click()


def press_plus(page: Page, key: str) -> None:
    """Click the plus of a number box."""
    widget(page, key).get_by_test_id("stNumberInputStepUp").click()


def fold(page: Page) -> None:
    """Close each box that stands open, as a test before may have left it: what is open belongs to the visitor."""
    opened = page.locator("[data-testid=stExpander] details[open] > summary")
    for _ in range(opened.count()):
        opened.first.click()
        rest(page)


def fill(page: Page, label: str, typed: str) -> None:
    """Type into a box and press Enter."""
    box = page.get_by_label(label, exact=True)
    box.fill(typed)
    box.press("Enter")


def address_of(page: Page) -> dict[str, str]:
    """Return what the address says."""
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def expect_address(page: Page, **said: str) -> None:
    """Wait until the address says this, whatever else it says."""
    until(page, lambda: {name: address_of(page).get(name) for name in said}, said)


def width_beyond(page: Page, width: int) -> float:
    """Make the window that narrow and return by how many px the page is wider."""
    page.set_viewport_size({"width": width, "height": 900})
    rest(page)
    widest = (
        "Math.max(document.documentElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth)"
    )
    return page.evaluate(widest) - width


BOXES = {
    **dict.fromkeys(("shows", "colours", "special", "zoom"), "cells-box"),
    **dict.fromkeys(("measure", "order", "overview-table"), "compare-box"),
    **dict.fromkeys(("palette",), "look-box"),
    **dict.fromkeys(("model", "engine", "precision"), "model-box"),
    **dict.fromkeys(("copy-link", "show-qr", "save-scene"), "share-box"),
    "tour-start": "help-box",
}


def reach(page: Page, key: str) -> Locator:
    """Return a widget, after opening the box that it is in, where it is in one."""
    found = widget(page, key)
    if key in BOXES and widget(page, BOXES[key]).count():
        open_box(page, BOXES[key])
        found.first.wait_for()
    return found


def open_box(page: Page, key: str) -> None:
    """Open a box above the page, if it isn't open."""
    details = widget(page, key).locator("details").first
    if details.get_attribute("open") is None:
        close_boxes(page)  # another one may lie over it
        details.locator("summary").click()


def press(page: Page, key: str) -> None:
    """Click the button with that key, and close the box that it was in."""
    reach(page, key).get_by_role("button").click()
    close_boxes(page)


def take_example(page: Page, title: str) -> None:
    """Click an example by its title."""
    open_box(page, "examples-box")
    page.get_by_role("button", name=title).click()
    close_boxes(page)


def close_boxes(page: Page) -> None:
    """Close the box that is open above the page, if one is."""
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('[class*=-box] details[open]')")


def choose(page: Page, key: str, option: str | bool) -> None:
    """Click an option of a row of buttons, or turn a switch on or off."""
    reach(page, key)
    if isinstance(option, str):
        widget(page, key).get_by_role("radio", name=option, exact=True).click()
    elif chosen(page, key) != option:
        widget(page, key).locator("label").click()


def chosen(page: Page, key: str) -> str | bool:
    """Return which option of a row of buttons is on, or whether a switch is."""
    switch = widget(page, key).locator("input[type=checkbox]")
    if switch.count():
        return switch.is_checked()
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
    page.wait_for_function(SHOWS, arg=[MAP, rows], polling=50)


def numbers(page: Page) -> np.ndarray:
    """Return what the large map shows, NaN where it shows nothing."""
    return np.array(page.evaluate(NUMBERS, MAP), dtype=float)


def labels(page: Page, axis: str) -> list[str]:
    """Return the tick labels of the map as they read, in the order of the tokens."""
    texts = page.locator(f"{MAP} .{axis}tick text").all_text_contents()
    return texts[::-1] if axis == "y" else texts


def cell(page: Page, row: int, column: int, shape: tuple[int, int], chart: str = MAP) -> dict[str, float]:
    """Return the middle of a cell of a map, in px of the window, after scrolling it into sight."""
    area = page.locator(f"{chart} .nsewdrag").first
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
