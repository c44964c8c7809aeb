"""A talk in a browser: prepared, started, stepped through by keys alone, left, and saved as a file of its own."""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from attnviz.app.talk.shipped import shipped_decks
from tests.browser.app_page import assert_no_error_box, open_app, rest, widget

STEP = 0.3  # seconds from a key to the next scene
DECKS = shipped_decks()
MAPPED = {  # tokens of the texts under the maps
    "Where heads rest": 19,
    "A dull head": 13,
    "Seen before? What came next?": 24,
    "Switch off the dull one …": 24,
}


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
    expect(talk.locator("#title")).to_have_text("")  # beside a question it might give the answer away
    page.keyboard.press("b")
    expect(talk.locator("#blank")).to_be_visible()
    page.keyboard.press("Escape")  # first the picture comes back, then the talk is left
    expect(talk.locator("#blank")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("iframe.attnviz-talk")).to_have_count(0)
    rest(page)
    assert_no_error_box(page)


def test_the_speakers_view_covers_nothing_of_the_slide(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    talk = start(page, app_url, "ten_minutes")
    whole = talk.locator("#stage").bounding_box()
    page.keyboard.press("n")
    page.keyboard.press("ArrowRight")
    slide, notes, times = (talk.locator(place).bounding_box() for place in ("#stage", ".notes", ".times"))
    assert slide["width"] == pytest.approx(0.66 * whole["width"], abs=1) and (slide["x"], slide["y"]) == (0, 0)
    assert notes["y"] >= slide["height"] - 1 and times["x"] >= slide["width"] - 1
    scenes = DECKS["ten_minutes"].scenes
    expect(talk.locator(".notes")).to_have_text(scenes[0].notes)
    expect(talk.locator(".next")).to_have_text(f"Next: {scenes[1].title}")
    expect(talk.locator(".plan")).to_contain_text("of 10 min")
    expect(talk.locator(".clock")).to_have_text(re.compile("0:0[1-9]"))  # it goes since the first key
    page.keyboard.press("n")
    expect(talk.locator(".notes")).to_be_hidden()
    assert talk.locator("#stage").bounding_box() == whole


def test_the_notes_have_a_window_of_their_own_that_steps_too(page: Page, app_url: str) -> None:
    talk = start(page, app_url, "what_it_costs")
    with page.expect_popup() as opened:
        page.keyboard.press("p")
    window = opened.value
    scenes = DECKS["what_it_costs"].scenes
    expect(window.locator(".notes")).to_have_text(scenes[0].notes)
    window.keyboard.press("PageDown")
    expect(window.locator(".notes")).to_have_text(scenes[1].notes)
    assert step(talk) == 1
    expect(window.locator(".now")).to_contain_text(scenes[1].title)
    window.keyboard.press("b")
    expect(window.locator(".now")).to_contain_text("The screen is blank")
    window.keyboard.press("n")
    assert talk.locator("body").get_attribute("data-view") in (None, "slide")
    window.keyboard.press("b")
    with window.expect_event("close"):
        page.bring_to_front()
        talk.locator("#stage").press("Escape")
    expect(page.locator("iframe.attnviz-talk")).to_have_count(0)


def test_maps_fill_the_slide_and_name_every_token_and_the_text_stays(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    talk = start(page, app_url, "ten_minutes")
    page.keyboard.press("End")
    for number, scene in reversed(list(enumerate(DECKS["ten_minutes"].scenes))):
        for revealed in (True, False) if scene.question else (True,):
            expect(talk.locator("#place")).to_have_text(re.compile(f"^{number + 1} /"))
            said = talk.locator("#sentence" if revealed else "#asked-sentence")
            expect(said).to_be_visible()
            assert said.inner_text().strip(" …") == scene.text
            assert float(said.evaluate("node => parseFloat(getComputedStyle(node).fontSize)")) >= 20
            if revealed and scene.picture in ("map", "before_after"):
                cells = talk.locator(".scene.shown .nsewdrag").first.bounding_box()
                assert cells["width"] == pytest.approx(cells["height"], abs=1.5) and cells["height"] > 390
                n_labels = [
                    talk.locator(f".scene.shown .js-plotly-plot >> nth=0 >> .{axis}tick text").count() for axis in "xy"
                ]
                assert n_labels[0] == n_labels[1] == MAPPED[scene.title]
            page.keyboard.press("ArrowLeft")
    fonts = "() => [...document.fonts].map((font) => `${font.family} ${font.status}`)"
    assert talk.locator("body").evaluate(fonts) in (['"Source Sans" loaded'], ["Source Sans loaded"])


def test_a_deck_of_ones_own_is_there_again_after_a_reload(page: Page, app_url: str) -> None:
    open_app(page, app_url)
    page.get_by_role("button", name="Save as scene").click()
    expect(page.get_by_text("Saved as scene 1 of the deck")).to_be_visible()
    rest(page)
    page.goto(f"{app_url}/talk?deck=own")
    expect(page.get_by_text("L13 H8: who looks at whom").first).to_be_visible()
    for _ in range(2):
        page.reload()
        expect(page.get_by_text("Scenes: 1. Minutes: 1.")).to_be_visible()
    rest(page)
    page.get_by_text("Edit titles").click()
    page.get_by_role("button", name="Empty the deck").click()
    expect(page.get_by_text("Your deck has no scene yet")).to_be_visible()
    rest(page)
    page.reload()
    rest(page)
    expect(page.get_by_text("Your deck has no scene yet")).to_be_visible()


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
    with tab.expect_popup() as opened:
        tab.keyboard.press("p")
    expect(opened.value.locator(".notes")).to_have_text(DECKS["what_it_costs"].scenes[1].notes)
    assert asked == [file.as_uri()]
    alone.close()
