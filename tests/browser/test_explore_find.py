"""The head finder in a browser: drawing with the mouse, and selecting what was found."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.app_page import assert_no_error_box, expect_head, open_app, rest, watched, widget

PATIENCE = 60_000  # milliseconds: the first page loads the model
DRAWING = ".st-key-drawn-map .js-plotly-plot"
N_TOKENS = 11  # of the landing text


@pytest.fixture(autouse=True)
def quiet(context: BrowserContext) -> Iterator[None]:
    """Fail a test whose page called another host or wrote an error to the console; be patient with a busy machine."""
    expect.set_options(timeout=PATIENCE)
    with watched(context):
        yield


def click_cell(page: Page, query: int, key: int) -> None:
    area = page.locator(f"{DRAWING} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    middle = [(place + 0.5) / N_TOKENS for place in (key, query)]
    page.mouse.click(box["x"] + box["width"] * middle[0], box["y"] + box["height"] * middle[1])
    rest(page)


def test_a_drawn_cell_finds_the_head_that_looks_there(page: Page, app_url: str) -> None:
    open_app(page, f"{app_url}/?tool=find&find_by=drawn&layer=0&head=0")
    page.wait_for_selector(f"{DRAWING} .main-svg")
    rest(page)
    click_cell(page, 10, 3)  # "it" to "car"
    expect(page).to_have_url(re.compile(r"drawn=10\.3"))
    found = widget(page, "found-heads").get_by_role("button")
    expect(found).to_have_count(12)
    expect(found.first).to_have_text("L13 H8")
    found.first.click()
    expect_head(page, "L13 H8")
    rest(page)
    click_cell(page, 10, 3)
    expect(page.get_by_text("Nothing is drawn yet.")).to_be_visible()
    assert_no_error_box(page)


def test_a_phone_shows_all_four_ways(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{app_url}/?tool=find&find_by=like")
    rest(page)
    options = widget(page, "find_by").get_by_role("radio")
    expect(options).to_have_count(4)
    expect(widget(page, "found-heads").get_by_role("button")).to_have_count(12)
    rights = [option.bounding_box()["x"] + option.bounding_box()["width"] for option in options.all()]
    bars = widget(page, "found-heads").bounding_box()
    assert max(*rights, bars["x"] + bars["width"]) <= 420
    assert_no_error_box(page)
