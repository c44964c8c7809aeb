"""The token strip in a browser: its shades and lines, the pin, the keyboard, and how fast it draws."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import theme_of
from tests.browser.app_page import rest
from tests.browser.apps.made_up import ANIMAL, made_up_attention
from tests.browser.apps.server import show

FRAME = 1000 / 60  # milliseconds
INK = """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
  .reduce((sum, value, i) => sum + (i % 4 === 3 ? value : 0), 0)"""
HOVER_TIMES = """(area) => [...area.querySelectorAll("button.token")].slice(-60).map((button) => {
  const start = performance.now();
  button.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, composed: true }));
  area.getBoundingClientRect();
  getComputedStyle(button.firstChild).backgroundColor;
  return performance.now() - start;
})"""


def open_strip(page: Page, query: str = "") -> Locator:
    """Open the page with the token strip and return the component when its tokens are there."""
    show(page, f"?show=strip&{query}")
    strip = page.locator(".strip")
    expect(strip.locator("button.token").first).to_be_visible()
    rest(page)
    return strip


def token(strip: Locator, index: int) -> Locator:
    return strip.locator("button.token").nth(index)


def rgb(colour: str) -> list[int]:
    return [round(255 * part) for part in hex_to_rgb([colour])[0]]


def shades(strip: Locator, tokens: str = "button.token") -> list[list[int] | None]:
    """Return each token's colour as it is on the screen, None for a masked one."""
    found = strip.locator(tokens).evaluate_all(
        """(tokens) => tokens.map((token) => token.classList.contains("masked")
            ? null : getComputedStyle(token.firstChild).backgroundColor)"""
    )
    return [colour and [int(part) for part in re.findall(r"\d+", colour)[:3]] for colour in found]


def expected_shades(weights: np.ndarray, masked: np.ndarray, theme: str = "light") -> list[list[int] | None]:
    """Return the colours of weights by linear interpolation on the charts' scale."""
    ramp = hex_to_rgb(theme_of(theme).weight) * 255
    places = np.linspace(0, 1, len(ramp))
    colours = np.stack([np.interp(weights, places, channel) for channel in ramp.T], axis=1)
    return [None if hidden else colour.tolist() for colour, hidden in zip(colours, masked, strict=True)]


def assert_shaded(strip: Locator, weights: np.ndarray, masked: np.ndarray, theme: str = "light") -> None:
    for seen, wanted in zip(shades(strip), expected_shades(weights, masked, theme), strict=True):
        if seen is None or wanted is None:
            assert seen is wanted
        else:
            np.testing.assert_allclose(seen, wanted, atol=2)


def test_pointing_shades_by_the_querys_weights_without_a_message(board: Page, frames: list[int]) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board)
    assert "".join(strip.locator("button.token .word").all_inner_texts()) == "".join(ANIMAL)
    frames.clear()
    for query in (8, 2, 12):
        token(strip, query).hover()
        assert_shaded(strip, weights[query], np.arange(13) > query)
    numbers = strip.locator("button.token .number").all_inner_texts()
    top = np.argsort(-weights[12])[:5]
    wanted = {int(key): weights[12, key] for key in top if weights[12, key] >= 0.005}
    assert {index: float(text) for index, text in enumerate(numbers) if text} == pytest.approx(wanted, abs=0.005)
    assert frames == []
    board.mouse.move(0, 0)
    assert strip.locator(".number").all_inner_texts() == [""] * 13
    board.emulate_media(color_scheme="dark")
    expect(strip).to_have_attribute("data-theme", "dark")
    token(strip, 8).hover()
    assert_shaded(strip, weights[8], np.arange(13) > 8, "dark")


def test_the_line_above_accounts_for_all_the_weight_and_text_stays_readable(board: Page) -> None:
    strip = open_strip(board)
    for query in (0, 11, 8):
        token(strip, query).hover()
        pairs = strip.locator(".word").evaluate_all(
            "(words) => words.map(getComputedStyle).map((style) => [style.color, style.backgroundColor])"
        )
        for text, fill in pairs[: query + 1]:
            assert contrast(text, fill) >= 4.5
    line = strip.locator(".line").inner_text()
    assert line.startswith("it (token 8) looks at animal ")
    assert line.endswith("; it may not see 4")
    assert sum(map(float, re.findall(r"\d\.\d+", line))) == pytest.approx(1, abs=0.02)


def contrast(one: str, other: str) -> float:
    """Return WCAG's contrast ratio of two CSS colours."""
    channels = [np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255 for colour in (one, other)]
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in channels]
    lights = sorted(float(part @ [0.2126, 0.7152, 0.0722]) for part in linear)
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def test_a_click_pins_and_escape_lets_go(board: Page, frames: list[int]) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board)
    frames.clear()
    token(strip, 8).click()
    expect(board.get_by_text("pinned 8")).to_be_visible()
    rest(board)
    assert sum(frames) < 6_000
    token(strip, 3).hover()
    assert_shaded(strip, weights[8], np.arange(13) > 8)
    expect(token(strip, 3).locator(".number")).to_have_text(re.compile(r"\d"))  # pointing asks for one more number
    expect(token(strip, 8)).to_have_attribute("aria-pressed", "true")
    board.keyboard.press("Escape")
    expect(board.get_by_text("pinned None")).to_be_visible()
    assert_shaded(strip, weights[3], np.arange(13) > 3)
    token(strip, 3).click()
    expect(board.get_by_text("pinned 3")).to_be_visible()
    token(strip, 3).click()
    expect(board.get_by_text("pinned None")).to_be_visible()


def test_the_pin_stays_while_the_weights_and_the_theme_change(board: Page) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board)
    token(strip, 8).click()
    board.get_by_text("Other head").click()
    rest(board)
    expect(board.get_by_text("pinned 8")).to_be_visible()
    assert_shaded(strip, (weights @ weights)[8], np.arange(13) > 8)
    board.emulate_media(color_scheme="dark")
    expect(strip).to_have_attribute("data-theme", "dark")
    assert_shaded(strip, (weights @ weights)[8], np.arange(13) > 8, "dark")


def test_a_selected_query_is_shaded_while_the_visitor_points_at_none(board: Page) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board, "selected=11")
    assert_shaded(strip, weights[11], np.arange(13) > 11)
    token(strip, 2).hover()
    assert_shaded(strip, weights[2], np.arange(13) > 2)
    board.mouse.move(0, 0)
    assert_shaded(strip, weights[11], np.arange(13) > 11)


def test_python_pins(board: Page) -> None:
    strip = open_strip(board, "pin=4")
    expect(token(strip, 4)).to_have_class(re.compile("pinned"))
    token(strip, 6).click()
    expect(board.get_by_text("pinned 6")).to_be_visible()
    board.get_by_label("Pin", exact=True).fill("2")
    board.keyboard.press("Enter")
    expect(board.get_by_text("pinned 2")).to_be_visible()
    expect(token(strip, 2)).to_have_class(re.compile("pinned"))


def test_the_keyboard_walks_the_tokens_and_pins(board: Page) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board)
    strip.locator("[role=radio][aria-checked=true]").focus()
    board.keyboard.press("Tab")
    expect(token(strip, 0)).to_be_focused()
    assert_shaded(strip, weights[0], np.arange(13) > 0)
    for _ in range(8):
        board.keyboard.press("ArrowRight")
    expect(token(strip, 8)).to_be_focused()
    assert_shaded(strip, weights[8], np.arange(13) > 8)
    name = token(strip, 8).get_attribute("aria-label")
    assert name.startswith(f"it, token 8: looks at animal {weights[8, 1]:.2f}, ")
    assert token(strip, 8).locator(".word").evaluate("(word) => getComputedStyle(word).outlineStyle") == "solid"
    board.keyboard.press("Enter")
    expect(board.get_by_text("pinned 8")).to_be_visible()
    board.keyboard.press("End")
    expect(token(strip, 12)).to_be_focused()
    board.keyboard.press("Tab")  # one stop for all tokens
    assert strip.locator("button.token:focus").count() == 0


def test_the_other_direction_shades_who_looks_here(board: Page, frames: list[int]) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board)
    frames.clear()
    strip.get_by_role("radio", name="is looked at by").click()
    token(strip, 1).hover()
    assert_shaded(strip, weights[:, 1], np.arange(13) < 1)
    assert strip.locator(".line").inner_text().startswith("animal (token 1) is looked at by it ")
    assert token(strip, 1).get_attribute("aria-label").startswith("animal, token 1: is looked at by it ")
    board.keyboard.press("ArrowLeft")
    expect(strip.get_by_role("radio", name="looks at", exact=True)).to_be_focused()
    assert frames == []


def test_any_mask_is_shown_and_differs_from_a_weight_of_zero(board: Page) -> None:
    strip = open_strip(board, "hole=1&causal=no")
    token(strip, 8).hover()
    assert [index for index, colour in enumerate(shades(strip)) if colour is None] == [2, 5]
    expect(token(strip, 2)).to_have_attribute("title", "may not see")
    expect(strip.locator(".masked-key")).to_be_visible()
    token(strip, 7).hover()
    assert None not in shades(strip)


def test_markup_emoji_and_special_tokens_show_as_they_are(board: Page) -> None:
    strip = open_strip(board, "text=odd&causal=no")
    seen = strip.locator("button.token .word").all_inner_texts()
    assert seen == ["[CLS]", "<b>", "&amp;", "🙂", "·", "👩‍👩‍👧", "⏎", "`", "[SEP]"]
    token(strip, 1).hover()
    assert strip.locator("b").count() == 0
    assert strip.locator(".line").inner_text().startswith("<b> (token 1) looks at ")


def test_a_script_from_right_to_left_runs_that_way(board: Page) -> None:
    strip = open_strip(board, "text=arabic")
    places = [token(strip, index).bounding_box()["x"] for index in range(5)]
    assert places == sorted(places, reverse=True)
    token(strip, 0).focus()
    board.keyboard.press("ArrowLeft")
    expect(token(strip, 1)).to_be_focused()


def test_lines_single_out_the_token_under_the_pointer(board: Page, frames: list[int]) -> None:
    weights = made_up_attention(13, causal=True)
    strip = open_strip(board, "mode=lines")
    frames.clear()
    ink = [strip.locator("canvas").evaluate(INK)]
    token(strip, 8).hover()
    ink.append(strip.locator("canvas").evaluate(INK))
    assert 0 < ink[1] < 0.3 * ink[0]
    wanted = expected_shades(weights[8], np.arange(13) > 8)
    seen = shades(strip, ".keys .token")
    assert [colour is None for colour in seen] == [colour is None for colour in wanted]
    np.testing.assert_allclose(seen[1], wanted[1], atol=2)
    strip.locator(".keys .token").nth(1).hover()
    assert strip.locator(".line").inner_text().startswith("animal (token 1) is looked at by it ")
    token(strip, 8).click()
    expect(board.get_by_text("pinned 8")).to_be_visible()
    assert all(size < 2_000 for size in frames)


def test_lines_join_two_different_texts(board: Page) -> None:
    strip = open_strip(board, "cross=1")
    assert strip.locator(".keys .word").all_inner_texts() == ["Das", "·Tier", "·war", "·müde", "."]
    token(strip, 8).hover()
    assert "looks at Tier" in strip.locator(".line").inner_text()


@pytest.mark.parametrize(("n_tokens", "limit"), [(128, FRAME), (512, 2 * FRAME)])
def test_pointing_is_drawn_within_a_frame(board: Page, n_tokens: int, limit: float) -> None:
    open_strip(board, f"tokens={n_tokens}")
    times = board.locator(".running").evaluate(HOVER_TIMES)
    assert float(np.quantile(times, 0.1)) < limit  # of the work itself: a busy machine stretches most of them


@pytest.mark.parametrize("query", ["", "mode=lines", "tokens=60&mode=lines", "text=arabic"])
def test_a_phone_shows_the_tokens_large_and_without_scrolling_sideways(board: Page, query: str) -> None:
    board.set_viewport_size({"width": 420, "height": 900})
    strip = open_strip(board, query)
    assert board.evaluate("document.documentElement.scrollWidth") <= 420
    boxes = [token(strip, index).bounding_box() for index in range(5)]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 420 for box in boxes)
    sizes = strip.locator(".token").evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(sizes) >= 18
