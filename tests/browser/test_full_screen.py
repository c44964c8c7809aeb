"""A chart on its way to full screen and back: as large as before, and "Reset axes" shows all of it again."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.app_page import go, rest, widget

SIZE_AND_RANGES = """(plot) => {
  const { width, height } = plot.querySelector(".nsewdrag").getBoundingClientRect();
  const { xaxis, yaxis } = plot._fullLayout;
  return { size: [width, height], x: [...xaxis.range], y: [...yaxis.range] };
}"""
LEAVE = {
    "button": lambda page: button(page, "Close fullscreen").click(),
    "Escape": lambda page: page.keyboard.press("Escape"),
}
STILL = f"""(plot) => new Promise((resolve) => {{
  const now = () => JSON.stringify(({SIZE_AND_RANGES})(plot));
  const look = (last, times) => (times > 3 ? resolve(JSON.parse(last))
    : setTimeout(() => look(now(), now() === last ? times + 1 : 0), 100));
  look(now(), 0);
}})"""


def button(page: Page, title: str) -> Any:
    return page.locator(f'.modebar-btn[data-title="{title}"]:visible').first


def plot(page: Page, key: str) -> Any:
    return widget(page, key).locator(".js-plotly-plot")


def press(page: Page, key: str, title: str) -> None:
    plot(page, key).hover()
    widget(page, key).locator(f'.modebar-btn[data-title="{title}"]').click()


def go_full(page: Page, key: str) -> None:
    press(page, key, "Fullscreen")
    expect(button(page, "Close fullscreen")).to_be_attached()
    rest(page)


def leave(page: Page, way: str) -> None:
    LEAVE[way](page)
    expect(button(page, "Close fullscreen")).to_have_count(0)


def settled(page: Page, key: str) -> dict[str, Any]:
    """Return how large the map is and what it shows, once it has stopped changing."""
    return plot(page, key).evaluate(STILL)


@pytest.mark.parametrize(("key", "address"), [("head-map", ""), ("compare-a", "?tool=compare")])
def test_a_map_comes_back_from_full_screen_as_it_was(tab: Page, key: str, address: str) -> None:
    go(tab, address, key)
    plot(tab, key).scroll_into_view_if_needed()
    before = settled(tab, key)
    for way in LEAVE:
        go_full(tab, key)
        assert settled(tab, key)["size"][0] > 1.2 * before["size"][0]
        leave(tab, way)
        assert settled(tab, key) == before
    press(tab, key, "Zoom in")
    zoomed = settled(tab, key)
    assert zoomed["x"] != before["x"]
    go_full(tab, key)
    assert settled(tab, key)["x"] == pytest.approx(zoomed["x"], abs=1e-6)
    leave(tab, "Escape")
    settled(tab, key)
    press(tab, key, "Reset axes")
    assert settled(tab, key) == before
