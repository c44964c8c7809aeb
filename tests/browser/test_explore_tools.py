"""The tools below Explore's map in a browser: two maps side by side, a drawn look, lines of a layer, words as cells."""

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.app.explore.compare.text_pairs import all_pairs
from attnviz.app.shell.fields import LANDING
from attnviz.core.heads.strong_lines import LEAST, shares_left_out
from attnviz.core.text.words import word_items
from tests.browser.app_page import (
    MAP,
    SHOWS,
    address_of,
    cell,
    choose,
    expect_address,
    expect_head,
    fill,
    go,
    labels,
    numbers,
    plot,
    rest,
    until,
    widget,
    width_beyond,
)

CAUSAL = np.tri(11, dtype=bool)  # of the landing text
TEXT = "Unbelievably the antidisestablishmentarian broke down"
INK = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let place = 3; place < data.length; place += 4) sum += data[place];
  return sum;
}"""  # of all that is drawn, faint or not


def expect_maps(page: Page, **maps: np.ndarray) -> None:
    """Wait until the maps of these names show these numbers, nothing where one is NaN."""
    for name, values in maps.items():
        rows = [[float(value) if np.isfinite(value) else None for value in row] for row in values]
        page.wait_for_function(SHOWS, arg=[plot(f"compare-{name}"), rows], polling=50)


def test_a_link_shows_the_same_two_heads_and_their_difference(tab: Page, smollm2: Any) -> None:
    trace = smollm2.trace(LANDING)
    a, b = (np.where(CAUSAL, trace.weights(*head), np.nan) for head in ((13, 8), (9, 4)))
    go(tab, "?tool=compare&versus=head&b_layer=9&b_head=4")
    expect_maps(tab, a=a, b=b, difference=b - a)
    rest(tab)
    left, right = (widget(tab, f"compare-{name}").bounding_box() for name in "ab")
    assert right["x"] >= left["x"] + left["width"]
    fill(tab, "B's head", "3")
    b = np.where(CAUSAL, trace.weights(9, 3), np.nan)
    expect_maps(tab, a=a, b=b, difference=b - a)
    rest(tab)
    expect_address(tab, b_head="3")
    assert width_beyond(tab, 420) <= 0
    left, right = (widget(tab, f"compare-{name}").bounding_box() for name in "ab")
    assert right["y"] > left["y"] + left["height"] / 2 and right["x"] == pytest.approx(left["x"], abs=1)


def test_a_pair_runs_in_its_model_and_a_typed_text_takes_its_place(tab: Page, minilm: Any) -> None:
    pair, typed = all_pairs()[0], "The animal didn't cross the road"
    go(tab, "?tool=compare", "compare-a")
    choose(tab, "versus", "another text")
    rest(tab)
    tab.get_by_role("button", name=pair.title).click()
    expect_maps(tab, a=minilm.trace(pair.text).weights(3, 1), b=minilm.trace(pair.b_text).weights(3, 1))
    rest(tab)
    fill(tab, "B's text (Enter runs it)", typed)
    expect_maps(tab, a=minilm.trace(pair.text).weights(3, 1), b=minilm.trace(typed).weights(3, 1))
    expect_address(tab, b_text=typed, versus="text")


def test_a_drawn_cell_finds_the_head_that_looks_there(tab: Page) -> None:
    go(tab, "?tool=find&find_by=drawn&layer=0&head=0", "drawn-map")
    tab.mouse.click(**cell(tab, 10, 3, (11, 11), plot("drawn-map")))  # "it" to "car"
    expect_address(tab, drawn="10.3")
    found = widget(tab, "found-heads").get_by_role("button")
    expect(found).to_have_count(12)
    expect(found.first).to_have_text("L13 H8")
    rest(tab)
    found.first.click()
    expect_head(tab, "L13 H8")
    rest(tab)
    assert width_beyond(tab, 420) <= 0
    options = widget(tab, "find_by").get_by_role("radio")
    expect(options).to_have_count(4)
    boxes = [place.bounding_box() for place in (*options.all(), widget(tab, "found-heads"))]
    assert max(box["x"] + box["width"] for box in boxes) <= 420
    tab.mouse.click(**cell(tab, 10, 3, (11, 11), plot("drawn-map")))
    expect(tab.get_by_text("Nothing is drawn yet.")).to_be_visible()


def open_lines(page: Page) -> Locator:
    """Go to the lines of the landing text's heads, with nothing pinned, and return their component."""
    go(page, "?tool=lines")
    lines = page.locator(".head-lines")
    lines.scroll_into_view_if_needed()
    return lines


def ink(lines: Locator) -> int:
    return lines.locator("canvas").evaluate(INK)


def test_pointing_and_the_keyboard_show_one_token_s_lines(tab: Page, smollm2: Any) -> None:
    lines, weights = open_lines(tab), smollm2.trace(LANDING).layer_weights(13)
    everything = ink(lines)
    lines.locator(".queries .token").nth(10).hover()
    expect(lines.locator(".line")).to_contain_text("it (token 10) looks at")
    car = lines.locator(".keys .token").nth(3)
    strongest = sorted((-weights[head, 10, 3], head) for head in range(9) if weights[head, 10, 3] >= LEAST)
    assert strongest[0][1] == 8
    expect(car.locator(".chip")).to_have_text([f"H{head} {-minus:.2f}" for minus, head in strongest[:4]])
    assert 0 < ink(lines) < 0.7 * everything  # the others are faint
    car.hover()
    expect(lines.locator(".line")).to_contain_text("car (token 3) is looked at by H8 it 0.81")
    expect(lines.locator(".queries .token").nth(10).locator(".chip").first).to_have_text("H8 0.81")
    lines.locator(".queries .token").first.focus()
    for press in ("End", "ArrowRight", "Home"):
        tab.keyboard.press(press)
    expect(lines.locator(".keys .token").first).to_be_focused()
    expect(lines.locator(".line")).to_contain_text("Mary (token 0) is looked at by")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("End")
    spoken = lines.locator(".queries .token").nth(10)
    expect(spoken).to_be_focused()
    assert spoken.get_attribute("aria-label").startswith("it, token 10, looks at: H4 drive 0.85; H8 car 0.81")
    tab.keyboard.press("Enter")
    expect(spoken).to_have_attribute("aria-pressed", "true")
    lines.locator(".queries .token").nth(2).hover()
    expect(lines.locator(".line")).to_contain_text("(pinned)")
    tab.keyboard.press("Escape")
    expect(lines.locator(".line")).to_contain_text("a (token 2)")


def test_pills_hide_heads_and_the_first_token_s_lines(tab: Page, smollm2: Any) -> None:
    lines = open_lines(tab)
    tab.mouse.move(0, 0)
    everything = ink(lines)
    thin, sink = shares_left_out(smollm2.trace(LANDING).layer_weights(13))
    left_out = lines.locator(".left-out")
    expect(left_out).to_contain_text(f"Lines below 0.05 aren't drawn: {100 * thin.mean():.0f} % of the weight")
    pill = lines.get_by_role("button", name="First token's lines")
    expect(pill).to_contain_text(f"({100 * sink.mean():.0f} % of the weight)")
    pill.click()
    expect(pill).to_have_attribute("aria-pressed", "false")
    expect(left_out).to_contain_text(f"The first token's lines: {100 * sink.mean():.0f} % more")
    fewer = ink(lines)
    assert fewer < 0.8 * everything
    lines.get_by_role("button", name="Head 4").click()
    expect_address(tab, lines_heads="0_1_2_3_5_6_7_8")
    assert ink(lines) < fewer
    lines.get_by_role("button", name="Only H8").click()
    expect_address(tab, lines_heads="8")
    expect(left_out).to_contain_text(f"{100 * thin[8]:.0f} % of the weight of the heads shown")
    rest(tab)
    lines.get_by_role("button", name="All heads").click()
    until(tab, lambda: address_of(tab), {"tool": "lines"})


def test_words_are_picked_by_a_click_and_a_link_shows_them_again(tab: Page, smollm2: Any) -> None:
    items = word_items(smollm2.trace(TEXT).tokens)
    go(tab, f"?text={quote(TEXT)}&shows=words")
    expect(tab.locator(f"{MAP} .xtitle")).to_have_text("key: the word it looks at")
    expect(tab.locator(f"{MAP} .xtick text")).to_have_count(5)
    assert labels(tab, "x")[-1] == "down" and np.shape(numbers(tab)) == (5, 5)
    tab.mouse.click(**cell(tab, 4, 0, (5, 5)))
    last = items[0].tokens[-1]
    expect(widget(tab, "query").get_by_role("combobox")).to_have_value(f"·down ({items[-1].tokens[-1]})")
    expect(widget(tab, "key").get_by_role("combobox")).to_have_value(
        f"{smollm2.trace(TEXT).tokens[last].label} ({last})"
    )
    expect_address(tab, shows="words")
