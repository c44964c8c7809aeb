"""The sentence with arcs in a browser: the text as typed, arcs by weight that cross no text, picks, the keyboard."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import candidate_colours
from tests.browser.app_page import rest
from tests.browser.apps.server import show

ANIMAL = "The animal didn't cross the street because it was too tired."
# Left, top, right, bottom of every word, and points along every arc, in px of the page; an arc's first and last points
# lie on the rims of its words.
GEOMETRY = """(stage) => ({
  words: [...stage.querySelectorAll(".word")].map((word) => {
    const box = word.getClientRects()[0];
    return [box.left, box.top, box.right, box.bottom];
  }),
  arcs: [...stage.querySelectorAll(".arc")].map((path) => {
    const { left, top } = path.ownerSVGElement.getBoundingClientRect();
    const length = path.getTotalLength();
    const points = Array.from({ length: 201 }, (_, i) => path.getPointAtLength((length * i) / 200));
    return { word: Number(path.dataset.word), points: points.map(({ x, y }) => [x + left, y + top]) };
  }),
})"""


def open_arcs(page: Page, query: str = "") -> Locator:
    show(page, f"?show=arcs&{query}")
    arcs = page.locator(".arcs")
    expect(arcs.locator(".arc").first).to_be_attached()
    rest(page)
    return arcs


def word(arcs: Locator, index: int) -> Locator:
    return arcs.get_by_role("button").nth(index)


def weights_said(arcs: Locator) -> dict[int, float]:
    """Return each word's weight as screen readers hear it; words that may not be seen have none."""
    labels = arcs.get_by_role("button").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    found = [re.search(r"weight (?:on itself )?<?([\d.]+)$", label) for label in labels]
    return {index: float(match[1]) for index, match in enumerate(found) if match}


def geometry(arcs: Locator) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    seen = arcs.locator(".stage").evaluate(GEOMETRY)
    return np.array(seen["words"]), {arc["word"]: np.array(arc["points"]) for arc in seen["arcs"]}


def test_the_sentence_reads_as_it_was_typed_and_words_say_what_they_are(board: Page) -> None:
    arcs = open_arcs(board)
    assert arcs.locator(".text").inner_text() == ANIMAL
    assert arcs.get_by_role("button").count() == 12
    left, _, right, _ = geometry(arcs)[0].T
    assert abs(left[11] - right[10]) < 1 < left[10] - right[9]  # "tired." but "too tired"
    expect(word(arcs, 8)).to_have_attribute("title", "may not be seen from here")
    expect(word(arcs, 8)).to_have_attribute("aria-label", "was, may not be seen from here")
    expect(word(arcs, 6)).to_have_attribute("title", "")
    colours = [word(arcs, index).evaluate("(word) => getComputedStyle(word).color") for index in (6, 8)]
    assert colours[0] != colours[1]
    assert arcs.locator(".badge").all_inner_texts() == ["1", "2"]
    assert re.match(r"1\s*0\.\d\d\s*✓", arcs.locator(".number.of-candidate").first.inner_text())
    assert arcs.locator(".check").count() == 1
    right_answer = re.compile(r"^animal, candidate 1, the right answer, weight 0")
    expect(word(arcs, 1)).to_have_attribute("aria-label", right_answer)
    assert arcs.locator(".underline").count() == 2
    for theme in ("light", "dark"):
        board.emulate_media(color_scheme=theme)
        for index, colour in zip((1, 5), candidate_colours(theme), strict=False):
            arc = arcs.locator(f".arc[data-word='{index}']")
            stroke = "rgb({}, {}, {})".format(*(round(255 * part) for part in hex_to_rgb([colour])[0]))
            expect(arc).to_have_css("stroke", stroke)


def test_words_side_by_side_are_one_candidate_and_a_line_break_is_kept(board: Page) -> None:
    arcs = open_arcs(board, "text=long")
    assert "of the march.\nThe peaceful demonstrators, who" in arcs.locator(".text").inner_text()
    assert arcs.locator(".badge").all_inner_texts() == ["1", "2", "3"]
    boxes, _ = geometry(arcs)
    line = arcs.locator(".underline").first.bounding_box()
    assert line["x"] < boxes[1, 0] and line["x"] + line["width"] > boxes[2, 2]
    assert word(arcs, 2).get_attribute("aria-label").startswith("councilmen, candidate 1 (city councilmen), ")


def test_arcs_are_as_wide_as_the_weights_and_reach_their_words(board: Page) -> None:
    arcs = open_arcs(board)
    weights = weights_said(arcs)
    assert list(weights) == list(range(8)) and sum(weights.values()) == pytest.approx(0.97, abs=0.02)
    boxes, paths = geometry(arcs)
    assert set(paths) == {index for index, weight in weights.items() if weight > 0.005}
    for index, points in paths.items():
        width = arcs.locator(f".arc[data-word='{index}']").evaluate("(arc) => parseFloat(arc.style.strokeWidth)")
        assert width == pytest.approx(1.5 + 12 * weights[index], abs=0.08)
        np.testing.assert_allclose(points[-1, 0], boxes[index, [0, 2]].mean(), atol=6)
        np.testing.assert_allclose(points[0, 0], boxes[7, [0, 2]].mean(), atol=8)
        assert points[:, 1].min() < boxes[index, 1] - 12  # rises clear of the text
    shown = arcs.locator(".number").all_inner_texts()
    numbers = [float(re.search(r"0\.\d\d", text)[0]) for text in shown]
    assert numbers == pytest.approx([weight for weight in weights.values() if weight >= 0.01], abs=0.006)
    board.set_viewport_size({"width": 420, "height": 900})  # the arcs follow
    rest(board)
    boxes, paths = geometry(arcs)
    assert len(set(boxes[:, 1].round())) > 1
    for index, points in paths.items():
        np.testing.assert_allclose(points[-1, 0], boxes[index, [0, 2]].mean(), atol=6)
    assert word(arcs, 0).evaluate("(word) => parseFloat(getComputedStyle(word).fontSize)") == 20


@pytest.mark.parametrize("text", ["long", "german", "seen", "arabic"])
def test_no_arc_crosses_a_word_and_no_number_another(board: Page, text: str) -> None:
    arcs = open_arcs(board, f"text={text}")
    for width in (1280, 420):
        board.set_viewport_size({"width": width, "height": 900})
        rest(board)
        assert_nothing_crosses(arcs)
        assert board.evaluate("document.documentElement.scrollWidth") <= width


def assert_nothing_crosses(arcs: Locator) -> None:
    boxes, paths = geometry(arcs)
    left, top, right, bottom = (boxes + [0, 6, 0, -6]).T
    for points in paths.values():
        x, y = points.T[:, :, None]
        assert not np.any((x > left) & (x < right) & (y > top) & (y < bottom))
    places = arcs.locator(".number").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).map((b) => [b.left, b.top, b.right, b.bottom])"
    )
    for place, (x0, y0, x1, y1) in enumerate(places):
        for a, b, c, d in [*places[:place], *boxes.tolist()]:
            assert x1 <= a or c <= x0 or y1 <= b + 1 or d - 1 <= y0


def test_each_click_is_told_once_the_same_word_twice(board: Page) -> None:
    arcs = open_arcs(board)
    word(arcs, 4).click()
    expect(board.get_by_text("picked [4]")).to_be_visible()
    word(arcs, 4).click()
    expect(board.get_by_text("picked [4, 4]")).to_be_visible()
    board.get_by_text("Other head").click()  # a run without a pick
    rest(board)
    expect(board.get_by_text("picked [4, 4]")).to_be_visible()


def test_the_keyboard_walks_the_words_and_picks(board: Page) -> None:
    arcs = open_arcs(board)
    word(arcs, 0).focus()
    for _ in range(3):
        board.keyboard.press("ArrowRight")
    expect(word(arcs, 3)).to_be_focused()
    expect(arcs.locator(".tip")).to_have_text(re.compile(r"^weight 0\.\d+$"))
    board.keyboard.press("Enter")
    expect(board.get_by_text("picked [3]")).to_be_visible()
    board.keyboard.press("Space")
    expect(board.get_by_text("picked [3, 3]")).to_be_visible()
    expect(word(arcs, 3)).to_be_focused()
    board.keyboard.press("End")
    expect(word(arcs, 11)).to_be_focused()
    board.keyboard.press("Tab")  # one stop for all words
    assert arcs.locator(".word:focus").count() == 0


def test_up_and_down_walk_to_the_next_line(board: Page) -> None:
    board.set_viewport_size({"width": 420, "height": 900})
    arcs = open_arcs(board)
    word(arcs, 0).focus()
    board.keyboard.press("ArrowDown")
    tops = geometry(arcs)[0][:, 1].round()
    focused = arcs.locator(".word:focus").evaluate("(word) => Number(word.dataset.index)")
    assert tops[focused] > tops[0]
    board.keyboard.press("ArrowUp")
    expect(word(arcs, 0)).to_be_focused()


def test_another_heads_weights_are_drawn_over_the_same_words(board: Page) -> None:
    arcs = open_arcs(board)
    before = weights_said(arcs)
    word(arcs, 2).evaluate("(word) => { word.kept = true }")
    board.get_by_text("Other head").click()
    expect(word(arcs, 1)).not_to_have_attribute("aria-label", re.compile(f"weight {before[1]:.2f}$"))
    assert word(arcs, 2).evaluate("(word) => word.kept")
    after = weights_said(arcs)
    heaviest = max(after, key=after.get)
    widths = arcs.locator(".arc").evaluate_all(
        "(all) => all.map((arc) => [parseFloat(arc.style.strokeWidth), arc.dataset.word])"
    )
    assert int(max(widths)[1]) == heaviest


def test_words_that_can_not_be_picked_stay_silent(board: Page) -> None:
    arcs = open_arcs(board, "still=1&highlight=1&highlight=6")
    word(arcs, 4).click(force=True)
    rest(board)
    expect(board.get_by_text("picked []")).to_be_visible()
    assert arcs.locator(".different").all_inner_texts() == ["animal", "because"]
    expect(word(arcs, 4)).to_have_attribute("aria-disabled", "true")


def test_a_script_from_right_to_left_runs_that_way(board: Page) -> None:
    arcs = open_arcs(board, "text=arabic")
    lefts = geometry(arcs)[0][:, 0]
    assert np.all(np.diff(lefts) < 0)
    word(arcs, 0).focus()
    board.keyboard.press("ArrowLeft")
    expect(word(arcs, 1)).to_be_focused()


def test_markup_shows_as_it_is(board: Page) -> None:
    arcs = open_arcs(board, "text=odd")
    assert arcs.locator(".text").inner_text() == "<b>Tom</b> & $x$:  `he`"
    assert arcs.locator("b").count() == 0
