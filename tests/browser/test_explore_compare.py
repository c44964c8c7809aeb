"""Compare in a browser: a link shows the same two maps again, and what is typed or clicked goes into the link."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from attnviz.app.explore.compare.text_pairs import all_pairs
from attnviz.app.shell.fields import LANDING
from tests.browser.app_page import SHOWS, assert_no_error_box, choose, open_app, rest, watched, widget

CAUSAL = np.tri(11, dtype=bool)  # of the landing text
PATIENCE = 60_000  # milliseconds


@pytest.fixture(autouse=True)
def quiet(context: BrowserContext) -> Iterator[None]:
    """Fail a test whose page called another host or wrote an error to the console; be patient with a busy machine."""
    expect.set_options(timeout=PATIENCE)
    with watched(context):
        yield


def expect_maps(page: Page, **maps: np.ndarray) -> None:
    """Wait until the maps of these names show these numbers, nothing where one is NaN."""
    for name, numbers in maps.items():
        rows = [[float(value) if np.isfinite(value) else None for value in row] for row in numbers]
        page.wait_for_function(SHOWS, arg=[f".st-key-compare-{name} .js-plotly-plot", rows])


def test_a_link_shows_the_same_two_heads_and_their_difference(
    page: Page, browser: Browser, app_url: str, smollm2: Any
) -> None:
    trace = smollm2.trace(LANDING)
    a, b = (np.where(CAUSAL, trace.weights(*head), np.nan) for head in ((13, 8), (9, 4)))
    open_app(page, f"{app_url}/?{urlencode({'tool': 'compare', 'versus': 'head', 'b_layer': 9, 'b_head': 4})}")
    expect_maps(page, a=a, b=b, difference=b - a)
    rest(page)
    box = page.get_by_label("B's head")
    box.fill("3")
    box.press("Enter")
    b = np.where(CAUSAL, trace.weights(9, 3), np.nan)
    expect_maps(page, a=a, b=b, difference=b - a)
    rest(page)
    assert "b_head=3" in page.url
    context = browser.new_context(viewport={"width": 420, "height": 900})
    with watched(context):
        other = context.new_page()
        open_app(other, page.url)
        expect_maps(other, a=a, b=b, difference=b - a)
        left, right = (widget(other, f"compare-{name}").bounding_box() for name in "ab")
        assert right["y"] > left["y"] + left["height"] / 2 and right["x"] == pytest.approx(left["x"], abs=1)
        assert_no_error_box(other)
    context.close()


def test_a_pair_runs_in_its_model_and_a_typed_text_takes_its_place(
    page: Page, app_url: str, smollm2: Any, minilm: Any
) -> None:
    pair = all_pairs()[0]
    open_app(page, f"{app_url}/?tool=compare")
    expect_maps(page, a=np.where(CAUSAL, smollm2.trace(LANDING).weights(13, 8), np.nan))
    choose(page, "versus", "another text")
    rest(page)
    page.get_by_role("button", name=pair.title).click()
    a, b = (minilm.trace(text).weights(3, 1) for text in (pair.text, pair.b_text))
    expect_maps(page, a=a, b=b)
    rest(page)
    expect(page.get_by_label("Your text")).to_have_value(pair.text)
    box = page.get_by_label("B's text")
    box.fill("The animal didn't cross the road")
    box.press("Enter")
    expect_maps(page, a=a, b=minilm.trace("The animal didn't cross the road").weights(3, 1))
    rest(page)
    assert "b_text=The+animal+didn%27t+cross+the+road" in page.url and "versus=text" in page.url
    assert_no_error_box(page)
