"""A talk in a browser: prepared, started, stepped through by keys alone, left, and saved as a file of its own."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from attnviz.app.show.deck import Scene
from attnviz.app.talk.shipped import shipped_decks
from tests.browser.app_page import go, open_app, press, rest, widget

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


def start(page: Page, name: str) -> FrameLocator:
    """Prepare a deck and start it on a slide of 1280 x 720; all of it is drawn when this returns."""
    page.set_viewport_size({"width": 1280, "height": 720})
    go(page, f"talk?deck={name}")
    if widget(page, "prepare").count():
        page.get_by_role("button", name="Prepare all scenes").click()
    page.get_by_role("button", name="Start", exact=True).click()
    talk = page.frame_locator("iframe.attnviz-talk")
    talk.locator("body[data-ready=true]").wait_for()
    return talk


def step(talk: FrameLocator) -> int:
    return int(talk.locator("body").get_attribute("data-step"))


def leave(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.locator("iframe.attnviz-talk")).to_have_count(0)
    rest(page)


def walk(page: Page, talk: FrameLocator, name: str) -> None:
    """Step from the first scene to the last by keys alone, without a network; each key acts at once."""
    page.context.set_offline(True)
    for number in range(1, n_steps(name)):
        page.keyboard.press("PageDown" if number % 2 else "ArrowRight")
        assert step(talk) == number
    expect(talk.locator("#place")).to_have_text(f"{len(DECKS[name].scenes)} / {len(DECKS[name].scenes)}")
    assert talk.locator("#caption").inner_text()
    page.keyboard.press("ArrowRight")  # beyond the end: the last scene stays
    assert step(talk) == n_steps(name) - 1
    page.context.set_offline(False)


def test_a_deck_runs_by_keys_alone_from_its_first_scene_to_its_last(tab: Page) -> None:
    walk(tab, start(tab, "who_is_it"), "who_is_it")
    leave(tab)


def test_maps_fill_the_slide_and_the_speakers_keys_act(tab: Page) -> None:
    talk, scenes = start(tab, "ten_minutes"), DECKS["ten_minutes"].scenes
    check_speakers_view(tab, talk)
    tab.keyboard.press("Home")
    walk(tab, talk, "ten_minutes")
    for number, scene in reversed(list(enumerate(scenes))):
        for revealed in (True, False) if scene.question else (True,):
            expect(talk.locator("#place")).to_have_text(re.compile(f"^{number + 1} /"))
            check_slide(talk, scene, revealed)
            tab.keyboard.press("ArrowLeft")
    fonts = "() => [...document.fonts].map((font) => `${font.family} ${font.status}`)"
    assert talk.locator("body").evaluate(fonts) in (['"Source Sans" loaded'], ["Source Sans loaded"])
    for _ in range(9):
        tab.keyboard.press("ArrowRight", delay=0)
    assert step(talk) == 9
    tab.keyboard.press("PageUp")
    tab.keyboard.press("Home")
    assert step(talk) == 0
    expect(talk.locator("#title")).to_have_text("")  # beside a question it might give the answer away
    tab.keyboard.press("b")
    expect(talk.locator("#blank")).to_be_visible()
    tab.keyboard.press("Escape")  # first the picture comes back, then the talk is left
    expect(talk.locator("#blank")).to_be_hidden()
    leave(tab)


def check_slide(talk: FrameLocator, scene: Scene, revealed: bool) -> None:
    """The text of the scene stays on the slide, large; its map is square, high, and names every token."""
    said = talk.locator("#sentence" if revealed else "#asked-sentence")
    expect(said).to_be_visible()
    assert said.inner_text().strip(" …") == scene.text
    assert float(said.evaluate("node => parseFloat(getComputedStyle(node).fontSize)")) >= 20
    if revealed and scene.picture in ("map", "before_after"):
        cells = talk.locator(".scene.shown .nsewdrag").first.bounding_box()
        assert cells["width"] == pytest.approx(cells["height"], abs=1.5) and cells["height"] > 390
        ticks = ".scene.shown .js-plotly-plot >> nth=0 >> .{}tick text"
        n_labels = [talk.locator(ticks.format(axis)).count() for axis in "xy"]
        assert n_labels[0] == n_labels[1] == MAPPED[scene.title]


def check_speakers_view(page: Page, talk: FrameLocator) -> None:
    """It stands beside the slide and covers nothing of it; its clock goes from the first key on."""
    scenes = DECKS["ten_minutes"].scenes
    whole = talk.locator("#stage").bounding_box()
    page.keyboard.press("n")
    page.keyboard.press("ArrowRight")
    slide, notes, times = (talk.locator(place).bounding_box() for place in ("#stage", ".notes", ".times"))
    assert slide["width"] == pytest.approx(0.66 * whole["width"], abs=1) and (slide["x"], slide["y"]) == (0, 0)
    assert notes["y"] >= slide["height"] - 1 and times["x"] >= slide["width"] - 1
    expect(talk.locator(".notes")).to_have_text(scenes[0].notes)
    expect(talk.locator(".next")).to_have_text(f"Next: {scenes[1].title}")
    expect(talk.locator(".plan")).to_contain_text("of 10 min")
    expect(talk.locator(".clock")).to_have_text(re.compile("0:0[1-9]"))
    page.keyboard.press("n")
    expect(talk.locator(".notes")).to_be_hidden()
    assert talk.locator("#stage").bounding_box() == whole


def test_notes_in_a_window_of_their_own_and_the_saved_file(tab: Page, browser: Browser, tmp_path: Path) -> None:
    talk, scenes = start(tab, "what_it_costs"), DECKS["what_it_costs"].scenes
    walk(tab, talk, "what_it_costs")
    tab.keyboard.press("Home")
    with tab.expect_popup() as opened:
        tab.keyboard.press("p")
    window = opened.value
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
        tab.bring_to_front()
        talk.locator("#stage").press("Escape")
    expect(tab.locator("iframe.attnviz-talk")).to_have_count(0)
    rest(tab)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save as one HTML file").click()
    file = tmp_path / "talk.html"
    download.value.save_as(file)
    check_saved_file(browser, file)


def check_saved_file(browser: Browser, file: Path) -> None:
    """It steps without a server and asks nobody."""
    scene = DECKS["what_it_costs"].scenes[1]
    alone = browser.new_context(offline=True)
    page = alone.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready=true]")
    page.keyboard.press("PageDown")
    expect(page.locator("#title")).to_have_text(scene.title)
    assert page.locator(".scene.shown .main-svg").count() > 0
    with page.expect_popup() as opened:
        page.keyboard.press("p")
    expect(opened.value.locator(".notes")).to_have_text(scene.notes)
    assert asked == [file.as_uri()]
    alone.close()


def test_a_deck_of_ones_own_is_there_again_after_a_reload(page: Page, app_url: str) -> None:
    open_app(page, f"{app_url}/?model=untrained&layer=1&head=2")
    press(page, "save-scene")
    expect(page.get_by_text("Saved as scene 1 of the deck")).to_be_visible()
    rest(page)
    page.goto(f"{app_url}/talk?deck=own&model=untrained&layer=1&head=2")
    expect(page.get_by_text("L1 H2: who looks at whom").first).to_be_visible()
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
