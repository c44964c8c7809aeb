"""The Explore page in a browser: what a visitor sees, does and types, and what stands in the address."""

import re
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.app.shell.fields import LANDING
from attnviz.core.trace.switches import Switches
from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import theme_of
from tests.browser.app_page import (
    MAP,
    Traffic,
    address_of,
    cell,
    choose,
    chosen,
    colour_at,
    expect_address,
    expect_head,
    expect_map,
    go,
    labels,
    numbers,
    open_app,
    press_plus,
    rest,
    run_text,
    take_example,
    thumbnail,
    until,
    widget,
)

CAUSAL = np.tri(11, dtype=bool)  # of the landing text
ODD = "if a<b and c>d <b>bold</b> cost $5 and $6 $x$"


def token(page: Page, index: int) -> Locator:
    return page.locator(".strip button.token").nth(index)


def shades(page: Page) -> list[str]:
    script = "(words) => words.map((word) => getComputedStyle(word).backgroundColor)"
    return page.locator(".strip button.token .word").evaluate_all(script)


def choose_another_head(page: Page, name: str, layer: int, head: int) -> None:
    page.locator(".overview .field").click(position=thumbnail(page, layer, head))
    expect_head(page, name)
    expect_address(page, layer=str(layer), head=str(head))
    rest(page)


def test_the_landing_page_shows_an_example_and_a_thumbnail_its_head(tab: Page, app_url: str, smollm2: Any) -> None:
    trace = smollm2.trace(LANDING)
    go(tab, "")
    expect_head(tab, "L13 H8")
    expect_map(tab, trace.weights(13, 8), CAUSAL)
    assert labels(tab, "y") == [token.label for token in trace.tokens]
    row = numbers(tab)[labels(tab, "y").index("·it")]
    assert row[labels(tab, "x").index("·car")] == pytest.approx(0.81, abs=0.005)
    expect(tab.get_by_text("this head looks back at")).to_contain_text("0.81")
    expect(tab.locator(".overview")).to_have_attribute("data-selected", "L13 H8")
    expect(tab).to_have_url(f"{app_url}/")
    choose_another_head(tab, "L4 H5", 4, 5)
    expect_map(tab, trace.weights(4, 5), CAUSAL)
    expect(tab.get_by_label("Layer", exact=True)).to_have_value("4")
    expect(tab.get_by_label("Head", exact=True)).to_have_value("5")


def test_back_leads_to_the_picture_before(tab: Page) -> None:
    go(tab, "?head=4")
    choose_another_head(tab, "L4 H5", 4, 5)
    tab.go_back()
    expect_head(tab, "L13 H4")
    until(tab, lambda: address_of(tab), {"head": "4"})
    rest(tab)
    choose_another_head(tab, "L6 H7", 6, 7)
    choose_another_head(tab, "L9 H2", 9, 2)
    tab.go_back()
    expect_head(tab, "L6 H7")
    expect_address(tab, layer="6", head="7")


def test_back_twice_leads_back_over_two_choices(tab: Page) -> None:
    go(tab, "?layer=0")
    for layer in ("1", "2"):
        press_plus(tab, "layer")
        expect_head(tab, f"L{layer} H8")
        rest(tab)
    for layer in ("1", "0"):  # soon after each other
        tab.go_back()
        expect_head(tab, f"L{layer} H8")
        expect(tab.get_by_label("Layer", exact=True)).to_have_value(layer)
    until(tab, lambda: address_of(tab), {"layer": "0"})


def test_ctrl_enter_runs_a_text_and_an_example_replaces_it(tab: Page, smollm2: Any) -> None:
    go(tab, "")
    run_text(tab, "The cat sat on the mat")
    expect_map(tab, smollm2.trace("The cat sat on the mat").weights(13, 8), np.tri(6, dtype=bool))
    rest(tab)
    assert labels(tab, "x") == ["The", "·cat", "·sat", "·on", "·the", "·mat"]
    take_example(tab, "Seen before")
    expect_head(tab, "L18 H6")
    expect(tab.get_by_label("Your text")).to_have_value(re.compile("^Mrs Zubrowka"))
    expect(tab.get_by_text("An induction head")).to_be_visible()
    trace = smollm2.trace(tab.get_by_label("Your text").input_value())
    expect_map(tab, trace.weights(18, 6), trace.allowed(18, 6))


def test_a_click_on_a_cell_shows_its_numbers_and_forbids_it(tab: Page, smollm2: Any) -> None:
    go(tab, "")
    trace = smollm2.trace(LANDING)
    expect_map(tab, trace.weights(13, 8), CAUSAL)
    tab.mouse.click(**cell(tab, 10, 3, (11, 11)))
    look = "·it (10) → ·car (3) in L13 H8:"
    expect(tab.get_by_text(f"{look} weight {trace.weights(13, 8)[10, 3]:.4f}")).to_be_visible()
    rest(tab)
    tab.get_by_role("button", name="Forbid in this head").click()
    expect(widget(tab, "view")).to_be_visible()
    switches = Switches(forbid=frozenset({(13, 8, 10, 3)}))
    after, before = trace.weights(13, 8, switches=switches), trace.weights(13, 8)
    expect_map(tab, after, trace.allowed(13, 8, switches=switches))
    expect(tab.get_by_text(f"{look} masked")).to_be_visible()
    rest(tab)
    choose(tab, "view", "difference")
    expect_map(tab, after - before, CAUSAL)
    rest(tab)
    widget(tab, "allow-again").get_by_role("radio").click()
    expect(widget(tab, "view")).to_have_count(0)
    expect_map(tab, before, CAUSAL)


def test_a_drag_zooms_and_the_click_in_the_zoomed_map_still_hits_its_cell(tab: Page, smollm2: Any) -> None:
    go(tab, "?layer=12")
    expect_map(tab, smollm2.trace(LANDING).weights(12, 8), CAUSAL)
    start, end = cell(tab, 2, 2, (11, 11)), cell(tab, 9, 9, (11, 11))
    tab.mouse.move(**start)
    tab.mouse.down()
    tab.mouse.move(**end, steps=5)
    tab.mouse.up()
    tab.wait_for_function("(map) => document.querySelector(map).layout.xaxis.range[0] > 0", arg=MAP)
    rest(tab)
    expect(tab.get_by_text("Click a cell")).to_be_visible()  # the drag chose none
    low, high = tab.evaluate("(map) => document.querySelector(map).layout.xaxis.range.map(Number)", MAP)
    top, bottom = tab.evaluate("(map) => document.querySelector(map).layout.yaxis.range.map(Number)", MAP)
    low_row, high_row = sorted((top, bottom))
    box = tab.locator(f"{MAP} .nsewdrag").first.bounding_box()
    x = box["x"] + box["width"] * (4 - low) / (high - low)
    y = box["y"] + box["height"] * (7 - low_row) / (high_row - low_row)
    tab.mouse.click(x, y)
    expect(tab.get_by_text("·could (7) → , (4) in L12 H8")).to_be_visible()


def test_the_first_view_of_128_tokens_is_light_and_pointing_sends_no_word(
    page: Page, app_url: str, smollm2: Any
) -> None:
    words = 10 * ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired."]
    while len(smollm2.trace(" ".join(words)).tokens) > 128:
        words.pop()
    traffic = Traffic(page)
    open_app(page, f"{app_url}/?text={quote(' '.join(words))}")
    assert numbers(page).shape == (128, 128)
    assert sum(traffic.received) <= 450_000
    token(page, 10).scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    rest(page)
    before = len(traffic.requests), len(traffic.sent), len(traffic.received)
    seen = []
    for index in (10, 5, 2):
        token(page, index).hover()
        seen.append(tuple(shades(page)))
        assert f"(token {index}) looks at" in page.locator(".strip .line").inner_text()
    assert len(set(seen)) == 3
    assert (len(traffic.requests), len(traffic.sent), len(traffic.received)) == before


def test_a_link_full_of_nonsense_falls_back_with_notes(tab: Page, app_url: str, smollm2: Any) -> None:
    go(tab, "?layer=many&head=-1&causal=perhaps&temperature=hot&off=x&forbid=y&view=z&z=zzz")
    note = tab.get_by_text("can't be read, so the page's own is shown")
    expect(note).to_have_count(1)  # one sentence, however many there are
    names = ("layer", "head", "causal", "temperature", "off", "forbid", "view", "text")
    assert [name for name in names if f"“{name}”" not in note.inner_text()] == []
    expect_head(tab, "L13 H8")
    expect_map(tab, smollm2.trace(LANDING).weights(13, 8), CAUSAL)
    tab.wait_for_url(f"{app_url}/")


def test_every_character_of_a_text_and_of_its_tokens_is_shown_as_it_is(
    tab: Page, smollm2: Any, tiny_folder: Any
) -> None:
    go(tab, f"?text={quote(ODD)}&query=5&key=4&causal=off")
    expected = [token.label for token in smollm2.trace(ODD).tokens]
    expect(tab.locator(f"{MAP} .xtick text")).to_have_count(len(expected))
    assert labels(tab, "x") == labels(tab, "y") == expected
    assert tab.locator(".strip button.token .word").all_inner_texts() == expected
    assert tab.locator(f"{MAP} .xtick tspan[style*=bold], {MAP} .xtick a").count() == 0
    for signs in ("a<b", "<b>bold</b>", "$5 and $6", "$x$"):
        assert signs in tab.get_by_label("Your text").input_value()
    expect(tab.get_by_text(f"{expected[5]} (5) → {expected[4]} (4)")).to_be_visible()
    assert tab.locator(".katex, .MathJax, mjx-container").count() == 0
    tab.mouse.move(**cell(tab, 5, 4, (len(expected),) * 2))
    hover = tab.locator(f"{MAP} .hoverlayer")
    expect(hover).to_contain_text(f"{expected[5]} (5) → {expected[4]} (4)")
    special = "<s> w1 <br> <b>x</b> $x$ &lt;i&gt; w2 </s>"
    go(tab, f"?model={quote(str(tiny_folder('llama')))}&text={quote(special)}&layer=1&head=0")
    expect(tab.locator(f"{MAP} .xtick text")).to_have_count(8)
    assert labels(tab, "x") == labels(tab, "y") == special.split()


def test_dark_and_light_pages_have_colours_of_their_own(tab: Page, smollm2: Any) -> None:
    weights = smollm2.trace(LANDING).weights(13, 8)
    row, column = np.unravel_index(np.where(CAUSAL, weights, 1).argmin(), weights.shape)
    looks = {}
    go(tab, "")
    expect_map(tab, weights, CAUSAL)
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        colour = [round(255 * part) for part in hex_to_rgb([theme_of(scheme).page])[0]]
        tab.wait_for_function(
            "(colour) => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === colour",
            arg=f"rgb({', '.join(map(str, colour))})",
        )
        tab.wait_for_function(
            "([map, colour]) => document.querySelector(map)?.layout?.plot_bgcolor === colour",
            arg=[MAP, theme_of(scheme).masked],
        )
        rest(tab)
        spots = [cell(tab, row, column, (11, 11)), cell(tab, 2, 7, (11, 11)), cell(tab, 6, 3, (11, 11))]
        box = tab.locator(f"{MAP} .nsewdrag").first.bounding_box()
        outside = {"x": box["x"] + box["width"] + 20, "y": spots[1]["y"]}
        looks[scheme] = [np.array(colour_at(tab, **spot), int) for spot in [*spots, outside]]
        almost_zero, masked, _, background = looks[scheme]
        assert background.tolist() == colour
        for one, another in ((almost_zero, masked), (almost_zero, background), (masked, background)):
            assert np.abs(one - another).max() >= 8
    for light, dark in zip(looks["light"], looks["dark"], strict=True):
        assert np.abs(light - dark).max() >= 8


@pytest.mark.parametrize("last", ["a switch", "an example"])
def test_clicks_while_a_long_text_is_read_end_with_the_last_choice(tab: Page, smollm2: Any, last: str) -> None:
    go(tab, "")
    run_text(tab, last + " word" * 1200)
    expect(tab.get_by_text("Reading the text with").first).to_be_visible()
    for key, option in (("divided", False), ("colours", "square root"), ("mask", False)):
        choose(tab, key, option)
    if last == "an example":  # which puts the switches at rest
        take_example(tab, "Who was lost?")
        lost = smollm2.trace("The letters from my friend in Boston were lost").weights(13, 8)
        expect_map(tab, lost, np.tri(len(lost), dtype=bool))
    else:
        expect(tab.get_by_text("no causal mask")).to_be_visible()
        rest(tab)
        assert (numbers(tab)[np.triu_indices(20, 1)] > 0).all()
    rest(tab)
    assert chosen(tab, "colours") == "square root"


@pytest.mark.parametrize(
    ("first", "in_address", "second"),
    [
        (("colours", "square root"), "colours=sqrt", ("mask", False)),
        (("mask", False), "causal=off", ("strip", "two columns with lines")),
        (("mask", False), "causal=off", ("acts", "the whole pass")),
    ],
)
def test_a_click_before_the_answer_to_the_last_one_counts_too(
    tab: Page, first: tuple[str, Any], in_address: str, second: tuple[str, Any]
) -> None:
    go(tab, "?layer=2")
    tab.evaluate("window.holdAnswers()")
    choose(tab, *first)
    tab.evaluate("window.allAnswersWait", in_address)  # the server is done, and the browser doesn't know it yet
    choose(tab, *second)
    tab.evaluate("window.letAnswersIn()")
    rest(tab)
    assert (chosen(tab, first[0]), chosen(tab, second[0])) == (first[1], second[1])
    address, said = tab.url, address_of(tab)
    go(tab, "?layer=3")
    go(tab, address.split("/")[-1])  # it says both
    assert (chosen(tab, first[0]), chosen(tab, second[0])) == (first[1], second[1])
    until(tab, lambda: address_of(tab), said)


def test_the_keyboard_is_enough(tab: Page, smollm2: Any) -> None:
    go(tab, "")

    def tab_to(target: Locator) -> None:
        for _ in range(60):
            if target.evaluate("(element) => element === document.activeElement"):
                return
            tab.keyboard.press("Tab")
        raise AssertionError("Tab never got there")

    tab.get_by_role("link", name="Explore").focus()  # the menu, at the top
    tab_to(tab.get_by_label("Your text"))
    tab.keyboard.press("Control+a")
    tab.keyboard.type("Keys are enough")
    tab.keyboard.press("Control+Enter")
    trace = smollm2.trace("Keys are enough")
    expect_map(tab, trace.weights(13, 8), np.tri(len(trace.tokens), dtype=bool))
    rest(tab)
    tab_to(widget(tab, "examples-box").locator("summary"))
    tab.keyboard.press("Enter")
    tab_to(widget(tab, "example-zubrowka").get_by_role("button"))
    tab.keyboard.press("Enter")
    expect_head(tab, "L18 H6")
    rest(tab)
    trace = smollm2.trace(tab.get_by_label("Your text").input_value())
    tab_to(tab.get_by_label("Layer", exact=True))
    tab.keyboard.press("Control+a")
    tab.keyboard.type("4")
    tab.keyboard.press("Enter")
    expect_head(tab, "L4 H6")
    expect_map(tab, trace.weights(4, 6), np.tri(len(trace.tokens), dtype=bool))
