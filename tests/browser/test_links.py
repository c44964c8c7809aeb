"""The page's link: the button copies it on every page, it opens the same picture, and its QR code says the same."""

from collections.abc import Callable
from io import BytesIO
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
import segno
from PIL import Image
from playwright.sync_api import Page, expect

from attnviz.app.shell.share import LEAST, QUIET
from tests.browser.app_page import choose, close_boxes, fold, go, reach, rest, run_text, until, widget

TEXT = "The tired cat sat on the mat because it was soft"
SHOWN = """() => ({
  charts: [...document.querySelectorAll(".js-plotly-plot")].map(({ _fullData: data, layout }) => JSON.stringify([
    layout.title?.text,
    data.map(({ x, y, z, text }) => [x, y, z, text].map((part) => part && Array.from(part, (row) => [row].flat()))),
  ])),
  words: document.querySelector("[data-testid=stMain]").innerText,
})"""


def step_up(page: Page) -> None:
    widget(page, "step_a_layer_up").or_(page.get_by_role("button", name="arrow_upward")).first.click()


# page, address, a click that changes it, and what the link has to say then
VISITS: dict[str, tuple[str, Callable[[Page], None], str]] = {
    "": ("layer=4&head=5&temperature=2&causal=off&acts=pass&view=difference&strip=lines", step_up, "layer=3"),
    "scratch": ("layer=9&head=4&rows=5&step=scores", lambda page: choose(page, "source", "random numbers"), "source="),
    "pronouns": ("layer=9&head=4&candidates=2", lambda page: choose(page, "click", "the answer"), "click=answer"),
    "generate": (
        "model=untrained&layer=2&head=1&warmth=1.5&seed=7&top_k=40",
        lambda page: widget(page, "write-step").get_by_role("button").click(),
        "written=1",
    ),
    "cost": ("cost_d=1024", lambda page: choose(page, "cost_part", "2 The score matrix"), "=matrix"),
    "talk": ("deck=who_is_it&layer=3", lambda page: None, "deck=who_is_it"),
}


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    expect(widget(page, "copy-link").or_(widget(page, "share-box")).first).to_be_visible()
    rest(page)


def copied(page: Page) -> str:
    reach(page, "copy-link").get_by_role("button").click()
    expect(widget(page, "copy-link").get_by_text("Copied")).to_be_visible()
    close_boxes(page)
    return page.evaluate("navigator.clipboard.readText()")


def show_code(page: Page) -> np.ndarray:
    """Open the QR code and return it as (squares, squares), True where it is black, as it looks on the screen."""
    reach(page, "show-qr").get_by_role("button").click()
    code = page.get_by_role("img", name="QR code of this page's link")
    expect(code).to_be_visible()
    assert code.bounding_box()["width"] >= LEAST
    n_squares = int(code.evaluate("(image) => atob(image.src.split(',')[1]).match(/viewBox=.0 0 (\\d+)/)[1]"))
    file = page.context.new_page()  # the picture on a ground of another colour
    source, side = code.get_attribute("src"), 8 * n_squares
    file.set_content(f'<body style="margin: 0; background: red"><img src="{source}" width="{side}" height="{side}">')
    shot = file.locator("img").screenshot()
    file.close()
    return squares(shot, n_squares)


def squares(shot: bytes, n: int) -> np.ndarray:
    grey = np.asarray(Image.open(BytesIO(shot)).convert("RGB"), dtype=int)[4::8, 4::8]
    assert grey.shape == (n, n, 3) and set(map(tuple, grey.reshape(-1, 3))) == {(0, 0, 0), (255, 255, 255)}
    return grey[..., 0] == 0


def code_of(link: str) -> np.ndarray:
    return np.pad(np.array(segno.make(link, micro=False, error="l").matrix, dtype=bool), QUIET)


def as_parts(link: str) -> tuple[str, dict[str, list[str]]]:
    return urlsplit(link).path, parse_qs(urlsplit(link).query)


@pytest.mark.parametrize("name", VISITS)
def test_a_copied_link_opens_the_same_picture(tab: Page, other_tab: Page, app_url: str, name: str) -> None:
    address, change, says = VISITS[name]
    go(tab, f"{name}?{address}&text={quote(TEXT)}")
    fold(tab)
    change(tab)
    tab.wait_for_url(lambda url: says in url)
    rest(tab)
    link = copied(tab)
    assert link == tab.url and link.startswith(f"{app_url}/{name}?")
    shown = tab.evaluate(SHOWN)
    assert all(len(chart) > 100 for chart in shown["charts"]) and (shown["charts"] or name == "talk")
    go(other_tab, link.removeprefix(f"{app_url}/"))
    fold(other_tab)
    other_tab.wait_for_function(f"(n) => ({SHOWN})().charts.length === n", arg=len(shown["charts"]), polling=50)
    rest(other_tab)
    until(other_tab, lambda: other_tab.evaluate(SHOWN)["charts"], shown["charts"])
    until(other_tab, lambda: other_tab.evaluate(SHOWN)["words"].split("\n"), shown["words"].split("\n"))
    until(other_tab, lambda: as_parts(other_tab.url), as_parts(link))


def test_somebody_new_opens_a_link_and_a_code_that_says_the_same(page: Page, app_url: str) -> None:
    link = f"{app_url}/cost?model=untrained&layer=2&head=1&cost_part=matrix&text={quote(TEXT)}"
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    open_page(page, link)
    page.wait_for_selector(".st-key-matrix-curves .main-svg")
    expect(page.get_by_label("Your text")).to_have_value(TEXT)
    until(page, lambda: as_parts(page.url), as_parts(link))
    widget(page, "copy-link").get_by_role("button").click()  # without a clipboard it stands ready to be copied
    field = page.get_by_label("Link to this page")
    expect(field).to_have_value(page.url)
    chosen = field.evaluate("(field) => field.value.slice(field.selectionStart, field.selectionEnd)")
    assert chosen == page.url
    code = show_code(page)
    on_code = page.get_by_role("dialog").locator("code").inner_text()
    np.testing.assert_array_equal(code, code_of(on_code))
    assert as_parts(on_code) == as_parts(link)  # letters may be escaped in another way
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (" ".join(f"word{i}" for i in range(180)), "is too long for a QR code"),
        ("".join(chr(0x4E00 + 7 * i % 20_000) for i in range(6000)), "the link leaves it out"),
    ],
)
def test_a_long_link_has_no_code_and_says_so(tab: Page, words: str, sentence: str) -> None:
    go(tab, "talk?model=untrained")
    run_text(tab, words)
    rest(tab)
    widget(tab, "show-qr").get_by_role("button").click()
    expect(tab.get_by_role("dialog").get_by_text(sentence)).to_be_visible()
    expect(tab.get_by_role("img", name="QR code of this page's link")).to_have_count(0)
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
