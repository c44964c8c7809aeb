"""A talk in a browser: prepared, started, stepped through by keys alone, left, and saved as a file of its own."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from attnviz.core.deck import shipped_decks
from tests.browser.app_page import assert_no_error_box, rest, widget

STEP = 0.3  # seconds from a key to the next scene
DECKS = shipped_decks()


def n_steps(name: str) -> int:
    """Return the steps of a deck: a scene with a question takes two."""
    return sum(2 if scene.question else 1 for scene in DECKS[name].scenes)


def start(page: Page, url: str, name: str) -> FrameLocator:
    """Prepare a deck and start it; all of it drawn when this returns."""
    page.goto(f"{url}/talk?deck={name}")
    widget(page, "prepare").or_(widget(page, "start-talk")).first.wait_for()
    rest(page)
    if widget(page, "prepare").count():
        page.get_by_role("button", name="Prepare all scenes").click()
    page.get_by_role("button", name="Start", exact=True).click(timeout=60_000)
    talk = page.frame_locator("iframe.attnviz-talk")
    talk.locator("body[data-ready=true]").wait_for()
    return talk


def step(talk: FrameLocator) -> int:
    return int(talk.locator("body").get_attribute("data-step"))


@pytest.mark.parametrize("name", sorted(DECKS))
def test_a_deck_runs_by_keys_alone_from_its_first_scene_to_its_last(page: Page, app_url: str, name: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    talk = start(page, app_url, name)
    page.context.set_offline(True)
    for number in range(1, n_steps(name)):
        pressed = time.perf_counter()
        page.keyboard.press("PageDown" if number % 2 else "ArrowRight")
        assert step(talk) == number
        assert time.perf_counter() - pressed < 5 * STEP  # on a busy machine; the player itself takes a few milliseconds
    expect(talk.locator("#place")).to_have_text(f"{len(DECKS[name].scenes)} / {len(DECKS[name].scenes)}")
    assert talk.locator("#caption").inner_text()
    page.keyboard.press("ArrowRight")  # beyond the end: the last scene stays
    assert step(talk) == n_steps(name) - 1
    page.context.set_offline(False)


def test_fast_presses_are_not_lost_and_the_other_keys_act(page: Page, app_url: str) -> None:
    talk = start(page, app_url, "ten_minutes")
    for _ in range(9):
        page.keyboard.press("ArrowRight", delay=0)
    assert step(talk) == 9
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    assert step(talk) == 0
    page.keyboard.press("n")
    expect(talk.locator("#notes")).to_be_visible()
    page.keyboard.press("b")
    expect(talk.locator("#blank")).to_be_visible()
    page.keyboard.press("Escape")  # first the picture comes back, then the talk is left
    expect(talk.locator("#blank")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("iframe.attnviz-talk")).to_have_count(0)
    rest(page)
    assert_no_error_box(page)


def test_the_saved_file_steps_without_a_server_and_asks_nobody(
    page: Page, app_url: str, browser: Browser, tmp_path: Path
) -> None:
    start(page, app_url, "what_it_costs")
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as one HTML file").click()
    file = tmp_path / "talk.html"
    download.value.save_as(file)
    alone = browser.new_context(offline=True)
    tab = alone.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    tab.wait_for_selector("body[data-ready=true]")
    tab.keyboard.press("PageDown")
    expect(tab.locator("#title")).to_have_text(DECKS["what_it_costs"].scenes[1].title)
    assert tab.locator(".scene.shown .main-svg").count() > 0
    assert asked == [file.as_uri()]
    alone.close()
