"""The picture of all heads in a browser: what a visitor sees, what Python is told, and what travels."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import theme_of
from tests.browser.app_page import rest
from tests.browser.apps.server import Board, show

PIXEL = """(canvas, [x, y]) => {
  const ratio = window.devicePixelRatio;
  return [...canvas.getContext("2d").getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data];
}"""


def rgb(colour: str) -> list[int]:
    return [round(255 * part) for part in hex_to_rgb([colour])[0]]


def open_heads(page: Page, query: str = "") -> Locator:
    """Open the page with the overview and return the component when its picture is drawn."""
    show(page, f"?show=overview&{query}")
    heads = page.locator(".overview")
    expect(heads.locator(".outline")).to_be_visible()
    rest(page)
    return heads


def tile_centre(heads: Locator, layer: int, head: int, n_heads: int = 9, n_layers: int = 30) -> dict[str, float]:
    """Return where a head's thumbnail lies in an upright picture without measure."""
    size = heads.locator(".outline").bounding_box()["width"]
    return {"x": (head + 0.5) * (size + 4) - 2, "y": (layer + 0.5) * (size + 4) - 2}


def test_weights_masked_cells_and_the_page_look_different_and_follow_a_change_of_theme(
    board: Page, frames: list[int]
) -> None:
    heads = open_heads(board)
    size = heads.locator(".outline").bounding_box()["width"]
    canvas = heads.locator("canvas")
    frames.clear()
    for scheme in ("light", "dark"):
        board.emulate_media(color_scheme=scheme)
        expect(board.get_by_text(f"theme {scheme}")).to_be_visible()  # Python was told
        corner, diagonal = [size * 0.9, size * 0.1], [size * 0.15, size * 0.85]
        looks = [canvas.evaluate(PIXEL, spot) for spot in (corner, diagonal)]
        assert looks[0][:3] == rgb(theme_of(scheme).masked)  # later keys of early queries
        gap = canvas.evaluate(PIXEL, [size + 2, size / 2])
        assert gap[3] == 0  # the page shows through
        looks.append([*rgb(theme_of(scheme).page), 255])
        assert min(np.abs(np.subtract(a, b)).max() for a, b in zip(looks, looks[1:] + looks[:1], strict=True)) >= 8
    assert max(frames) < 2_000  # and did not send the picture again


def test_the_first_picture_is_small_and_a_click_sends_next_to_nothing(board_of_all: Board) -> None:
    fresh = Board(board_of_all.page.context.new_page(), board_of_all.url)
    heads = open_heads(fresh.page)
    assert 20_000 < max(fresh.frames) <= 170_000
    fresh.frames.clear()
    heads.locator(".field").click(position=tile_centre(heads, 8, 7))
    expect(fresh.page.get_by_text("chosen (8, 7) boxes (8, 7)")).to_be_visible()
    rest(fresh.page)
    assert sum(fresh.frames) < 6_000
    fresh.page.close()
    assert fresh.errors == []


def test_the_outline_is_in_sight_moves_at_once_and_where_python_says(board: Page, frames: list[int]) -> None:
    heads = open_heads(board)
    outline, scroller = (heads.locator(name).bounding_box() for name in (".outline", ".scroller"))
    assert scroller["y"] + 20 <= outline["y"]
    assert outline["y"] + outline["height"] <= scroller["y"] + scroller["height"]
    moved = heads.evaluate(  # one task in the browser: no message can come in between
        """(heads) => {
          const field = heads.querySelector(".field");
          const box = field.getBoundingClientRect();
          field.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: box.left + 5, clientY: box.top + 5 }));
          return heads.dataset.selected;
        }"""
    )
    assert moved == "L0 H0"
    expect(board.get_by_text("boxes (0, 0)")).to_be_visible()
    heads.locator(".field").click(position=tile_centre(heads, 9, 2))
    expect(board.get_by_text("boxes (9, 2)")).to_be_visible()
    rest(board)
    frames.clear()
    board.get_by_label("Layer", exact=True).fill("20")
    board.keyboard.press("Enter")
    expect(heads).to_have_attribute("data-selected", "L20 H2")
    expect(board.get_by_text("chosen (20, 2) boxes (20, 2)")).to_be_visible()
    assert max(frames) < 2_000


def test_the_keyboard_shows_where_it_is_and_fast_arrow_keys_arrive_as_one_absolute_choice(board: Page) -> None:
    heads = open_heads(board)
    board.get_by_label("Head", exact=True).focus()
    for _ in range(4):
        board.keyboard.press("Tab")
        if heads.locator(".scroller").evaluate("(box) => box.matches(':focus-visible')"):
            break
    assert heads.locator(".scroller").evaluate("(box) => getComputedStyle(box).boxShadow") != "none"
    for key in ["ArrowDown"] * 7 + ["ArrowRight"] * 2 + ["ArrowUp"]:
        board.keyboard.press(key)
    expect(heads).to_have_attribute("data-selected", "L15 H6")
    expect(board.get_by_text("chosen (15, 6) boxes (15, 6)")).to_be_visible()
    board.keyboard.press("Home")
    expect(board.get_by_text("chosen (15, 0)")).to_be_visible()
    board.keyboard.press("ArrowLeft")  # the edge
    board.keyboard.press("Control+End")
    expect(board.get_by_text("chosen (29, 8) boxes (29, 8)")).to_be_visible()
    expect(heads.locator(".scroller")).to_have_attribute("aria-label", re.compile("All heads.*L29 H8"))


def test_pointing_names_the_head_and_its_measure(board: Page) -> None:
    heads = open_heads(board, "measure=1&turn=1")
    heads.locator(".field").hover(position={"x": 10, "y": 10})
    expect(heads.locator(".tip")).to_have_text(re.compile(r"^L0 H0first token \d+%$"))
    board.mouse.move(0, 0)
    expect(heads.locator(".tip")).to_be_hidden()


def test_a_new_order_does_not_send_the_picture_again(board: Page, frames: list[int]) -> None:
    heads = open_heads(board)
    frames.clear()
    board.get_by_text("Measure").click()
    rest(board)
    board.get_by_text("Sorted").click()
    expect(heads).to_have_class(re.compile("flowing"))
    rest(board)
    assert max(frames) < 10_000
    heads.locator(".field").click(position={"x": 10, "y": 10})
    first = heads.get_attribute("data-selected")
    layer, head = re.findall(r"\d+", first)
    expect(board.get_by_text(f"chosen ({layer}, {head}) boxes ({layer}, {head})")).to_be_visible()
    heads.locator(".scroller").focus()
    board.keyboard.press("ArrowRight")
    board.keyboard.press("ArrowLeft")
    expect(heads).to_have_attribute("data-selected", first)


def test_a_missing_head_is_neither_clicked_nor_walked_on(board: Page) -> None:
    heads = open_heads(board, "layers=6&heads=12&causal=no&hole=53")  # L4 H5
    heads.locator(".field").click(position=tile_centre(heads, 4, 5))
    expect(heads).to_have_attribute("data-selected", "L3 H4")
    board.keyboard.press("ArrowDown")
    board.keyboard.press("ArrowRight")
    expect(heads).to_have_attribute("data-selected", "L4 H6")


@pytest.mark.parametrize("query", ["", "measure=1&sorted=1", "turn=1", "layers=12&heads=32"])
def test_a_phone_shows_the_overview_without_scrolling_the_page_sideways(board: Page, query: str) -> None:
    board.set_viewport_size({"width": 420, "height": 900})
    heads = open_heads(board, query)
    assert heads.bounding_box()["width"] <= 420
    assert heads.locator(".outline").bounding_box()["width"] >= 24
    assert board.evaluate("document.documentElement.scrollWidth") <= 420
