"""The page Cost in a browser: each part opens from its link, its controls act, and a measurement can be stopped."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.app_page import assert_no_error_box, choose, rest, widget

FIRST = {"grows": "cost-curves", "matrix": "matrix-curves", "flash": "flash-grid"}
TITLES = {"grows": "1. What grows how", "matrix": "2. The score matrix", "flash": "3. FlashAttention, step by step"}
CELLS = "(selector) => Array.from(document.querySelector(selector).calcdata[0][0].z, (row) => Array.from(row))"
START = 60_000  # ms that a measuring process, or an answer beside it, may take on a busy machine
TOO_WIDE = "document.querySelector('[data-testid=stMain]').scrollWidth - window.innerWidth"


@pytest.fixture
def open_part(context: BrowserContext, app_url: str) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a part from its link in a new tab; fail when one breaks or calls another host."""
    pages: list[Page] = []
    faults: list[str] = []

    def visit(part: str, address: str = "") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.extend(_elsewhere(request.url)))
        page.goto(f"{app_url}/cost?cost_part={part}&{address}")
        page.wait_for_selector(f"{plot(FIRST[part])} .main-svg" if part in FIRST else ".st-key-start-timing")
        rest(page)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        assert_no_error_box(page)
    assert faults == []


def _elsewhere(url: str) -> list[str]:
    return [] if url.startswith(("data:", "blob:")) or urlparse(url).hostname == "127.0.0.1" else [url]


def plot(key: str) -> str:
    return f".st-key-{key} .js-plotly-plot"


@pytest.mark.parametrize("part", FIRST)
def test_a_part_opens_from_its_link_with_its_formula_and_code(open_part: Callable[..., Page], part: str) -> None:
    page = open_part(part)
    expect(page.get_by_role("heading", name=TITLES[part])).to_be_visible()
    expect(page.locator(".katex-display").first).to_be_visible()
    expect(page.locator("[data-testid=stLatex] .katex-error")).to_have_count(0)
    page.get_by_role("button", name="Show the answer").click()
    expect(page.get_by_role("button", name="Hide the answer")).to_be_visible()
    page.get_by_text("The code that made these pictures").click()
    expect(page.locator(f".st-key-code-{part} [data-testid=stCode]").first).to_contain_text("def ")
    rest(page)


@pytest.mark.parametrize("part", FIRST)
def test_a_part_fits_a_phone(open_part: Callable[..., Page], part: str) -> None:
    page = open_part(part)
    page.set_viewport_size({"width": 420, "height": 900})
    rest(page)
    assert page.evaluate(TOO_WIDE) <= 0


def test_a_slider_moves_the_meeting_point_and_the_link_keeps_it(open_part: Callable[..., Page]) -> None:
    page = open_part("grows")
    expect(page.get_by_role("heading", name=re.compile("From s = 24,576 on"))).to_be_visible()
    widget(page, "cost_d").get_by_role("slider").press("ArrowRight")
    expect(page.get_by_role("heading", name=re.compile("From s = 30,720 on"))).to_be_visible()
    page.get_by_text("with the MLP", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("From s = 10,240 on"))).to_be_visible()
    rest(page)
    assert "cost_d=5120" in page.url and "cost_mlp=off" in page.url
    page.reload()
    expect(page.get_by_role("heading", name=re.compile("From s = 10,240 on"))).to_be_visible()
    rest(page)


def test_a_published_model_brings_its_sizes(open_part: Callable[..., Page]) -> None:
    page = open_part("grows")
    widget(page, "cost_model").locator("input").click()
    page.get_by_role("option", name="SmolLM2-135M").click()
    expect(page.get_by_role("heading", name=re.compile(r"From s = 3,072 on \(5.33 d\)"))).to_be_visible()
    expect(widget(page, "cost_d").get_by_role("slider")).to_have_attribute("aria-valuetext", "576")
    rest(page)


def test_the_film_goes_on_and_back(open_part: Callable[..., Page]) -> None:
    page = open_part("flash", "cost_block=4&cost_at=0")
    assert page.evaluate(CELLS, plot("flash-grid")) == [[3, 2, 2], [0, 0, 2], [0, 0, 0]]
    for step in (2, 3, 4, 5):
        page.get_by_role("button", name="Next block").click()
        expect(page.get_by_text(f"Block {step} of 9", exact=True)).to_be_visible()
    rest(page)
    assert page.evaluate(CELLS, plot("flash-grid")) == [[1, 2, 2], [1, 3, 2], [0, 0, 0]]
    assert "cost_at=4" in page.url
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page.get_by_text("Block 4 of 9", exact=True)).to_be_visible()
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text("This row is finished.")).to_be_visible()
    rest(page)
    assert page.evaluate(CELLS, plot("flash-grid")) == [[1, 2, 2], [1, 1, 2], [1, 1, 3]]


def test_stop_stops_and_a_second_visitor_waits(open_part: Callable[..., Page]) -> None:
    first, second = open_part("measured"), open_part("measured")
    first.get_by_role("button", name="Measure on this machine").click()
    expect(first.get_by_text(re.compile(r"[1-9]\d* of 30 measured"))).to_be_visible(timeout=START)
    second.get_by_role("button", name="Measure on this machine").click()
    expect(second.get_by_text("Another visitor is measuring")).to_be_visible(timeout=START)
    first.get_by_role("button", name="Stop").click()
    expect(first.get_by_text("Stopped. What was measured until then is shown.")).to_be_visible(timeout=START)
    expect(first.get_by_role("button", name="Measure again")).to_be_visible(timeout=START)
    expect(second.get_by_text(re.compile(r"of 30 measured"))).to_be_visible(timeout=START)
    choose(second, "cost_part", "1 What grows how")  # leaving the part breaks nothing
    second.wait_for_selector(f"{plot('cost-curves')} .main-svg")
    choose(second, "cost_part", "4 Measured here")
    second.get_by_role("button", name="Stop").click()
    expect(second.get_by_role("button", name=re.compile("^Measure"))).to_be_visible(timeout=START)
    for page in (first, second):
        rest(page)
