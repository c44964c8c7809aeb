"""A chart on its way to full screen and back: as large as before, and "Reset axes" shows all of it again."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.app_page import open_app, rest, watched, widget

HOW_IT_IS = """(plot) => {
  const { width, height } = plot.querySelector(".nsewdrag").getBoundingClientRect();
  const { xaxis, yaxis } = plot._fullLayout;
  return { size: [width, height], x: [...xaxis.range], y: [...yaxis.range] };
}"""
LEAVE = {
    "button": lambda page: button(page, "Close fullscreen").click(),
    "Escape": lambda page: page.keyboard.press("Escape"),
}
CHARTS = [("head-map", {}), ("compare-a", {"tool": "compare"})]


def button(page: Page, title: str) -> Any:
    return page.locator(f'.modebar-btn[data-title="{title}"]:visible').first


def plot(page: Page, key: str) -> Any:
    return widget(page, key).locator(".js-plotly-plot")


def go_full(page: Page, key: str) -> None:
    plot(page, key).hover()
    widget(page, key).locator('.modebar-btn[data-title="Fullscreen"]').click()
    expect(button(page, "Close fullscreen")).to_be_attached()
    rest(page)


def settled(page: Page, key: str) -> dict[str, Any]:
    """Return how large the map is and what it shows, once it has stopped changing."""
    last = None
    for _ in range(50):
        found = plot(page, key).evaluate(HOW_IT_IS)
        if found == last:
            return found
        last = found
        page.wait_for_timeout(100)
    raise AssertionError(f"{key} never comes to rest: {last}")


@pytest.mark.parametrize("leave", LEAVE)
def test_a_map_comes_back_from_full_screen_as_large_as_it_was(context, page: Page, app_url: str, leave: str) -> None:
    with watched(context):
        open_app(page, app_url)
        before = settled(page, "head-map")
        for _ in range(2):
            go_full(page, "head-map")
            assert settled(page, "head-map")["size"][0] > 1.2 * before["size"][0]
            LEAVE[leave](page)
            expect(button(page, "Close fullscreen")).to_have_count(0)
            assert settled(page, "head-map") == before


@pytest.mark.parametrize(("key", "address"), CHARTS, ids=[key for key, _ in CHARTS])
def test_reset_axes_shows_the_whole_map_after_a_zoom_and_full_screen(
    page: Page, app_url: str, key: str, address: dict[str, str]
) -> None:
    open_app(page, f"{app_url}/?{'&'.join(f'{name}={value}' for name, value in address.items())}")
    plot(page, key).scroll_into_view_if_needed()
    before = settled(page, key)
    plot(page, key).hover()
    widget(page, key).locator('.modebar-btn[data-title="Zoom in"]').click()
    zoomed = settled(page, key)
    assert zoomed["x"] != before["x"]
    go_full(page, key)
    assert settled(page, key)["x"] == pytest.approx(zoomed["x"], abs=1e-6)
    page.keyboard.press("Escape")
    expect(button(page, "Close fullscreen")).to_have_count(0)
    settled(page, key)
    plot(page, key).hover()
    widget(page, key).locator('.modebar-btn[data-title="Reset axes"]').click()
    assert settled(page, key) == before
