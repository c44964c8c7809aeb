"""The Explore page in a browser: what a visitor sees and does, what travels, and that links show the same picture."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from attnviz.app.shell.address import LATE
from attnviz.app.shell.fields import LANDING
from attnviz.core.trace.switches import Switches
from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import theme_of
from tests.browser.app_page import (
    MAP,
    SLOW_ANSWERS,
    Traffic,
    assert_no_error_box,
    cell,
    choose,
    chosen,
    colour_at,
    expect_head,
    expect_map,
    labels,
    numbers,
    open_app,
    rest,
    run_text,
    thumbnail,
    watched,
    widget,
)

CAUSAL = np.tri(11, dtype=bool)  # of the landing text
PATIENCE = 60_000  # milliseconds: the first page loads the model, and a long text takes its time on a busy machine
ODD = "if a<b and c>d <b>bold</b> cost $5 and $6 $x$"


@pytest.fixture(autouse=True)
def quiet(context: BrowserContext) -> Iterator[None]:
    """Fail a test whose page called another host or wrote an error to the console; be patient with a busy machine."""
    expect.set_options(timeout=PATIENCE)
    with watched(context):
        yield


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """Open a tab of another visitor, who shares nothing with the first."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    with watched(context):
        yield context.new_page()
    context.close()


def token(page: Page, index: int) -> Locator:
    return page.locator(".strip button.token").nth(index)


def shades(page: Page) -> list[str]:
    script = "(words) => words.map((word) => getComputedStyle(word).backgroundColor)"
    return page.locator(".strip button.token .word").evaluate_all(script)


def test_the_landing_page_shows_an_example(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, app_url)
    expect_head(page, "L13 H8")
    expect_map(page, smollm2.trace(LANDING).weights(13, 8), CAUSAL)
    assert labels(page, "y") == [token.label for token in smollm2.trace(LANDING).tokens]
    row = numbers(page)[labels(page, "y").index("·it")]
    assert row[labels(page, "x").index("·car")] == pytest.approx(0.81, abs=0.005)
    expect(page.get_by_text("this head looks back at")).to_contain_text("0.81")
    expect(page.locator(".overview")).to_have_attribute("data-selected", "L13 H8")
    assert page.url == f"{app_url}/"


def test_a_thumbnail_shows_its_head(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, app_url)
    page.locator(".overview .field").click(position=thumbnail(page, 4, 5))
    expect_head(page, "L4 H5")
    expect_map(page, smollm2.trace(LANDING).weights(4, 5), CAUSAL)
    expect(page.get_by_label("Layer", exact=True)).to_have_value("4")
    expect(page.get_by_label("Head", exact=True)).to_have_value("5")


def test_ctrl_enter_runs_a_text_and_an_example_replaces_it(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, app_url)
    run_text(page, "The cat sat on the mat")
    expect_map(page, smollm2.trace("The cat sat on the mat").weights(13, 8), np.tri(6, dtype=bool))
    rest(page)
    assert labels(page, "x") == ["The", "·cat", "·sat", "·on", "·the", "·mat"]
    page.get_by_role("button", name="Seen before").click()
    expect_head(page, "L18 H6")
    expect(page.get_by_label("Your text")).to_have_value(re.compile("^Mrs Zubrowka"))
    expect(page.get_by_text("An induction head")).to_be_visible()
    text = page.get_by_label("Your text").input_value()
    trace = smollm2.trace(text)
    expect_map(page, trace.weights(18, 6), trace.allowed(18, 6))


def test_a_click_on_a_cell_shows_its_numbers_and_forbids_it(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, app_url)
    trace = smollm2.trace(LANDING)
    page.mouse.click(**cell(page, 10, 3, (11, 11)))
    look = "·it (10) → ·car (3) in L13 H8:"
    expect(page.get_by_text(f"{look} weight {trace.weights(13, 8)[10, 3]:.4f}")).to_be_visible()
    rest(page)
    page.get_by_role("button", name="Forbid in this head").click()
    expect(widget(page, "view")).to_be_visible()
    switches = Switches(forbid=frozenset({(13, 8, 10, 3)}))
    after, before = trace.weights(13, 8, switches=switches), trace.weights(13, 8)
    expect_map(page, after, trace.allowed(13, 8, switches=switches))
    expect(page.get_by_text(f"{look} masked")).to_be_visible()
    rest(page)
    choose(page, "view", "without")
    expect_map(page, before, CAUSAL)
    rest(page)
    choose(page, "view", "difference")
    expect_map(page, after - before, CAUSAL)
    rest(page)
    page.get_by_role("button", name="Forbid in this head").click()
    expect(page.get_by_text("That look is forbidden already")).to_be_visible()
    rest(page)
    widget(page, "allow-again").get_by_role("radio").click()
    expect(widget(page, "view")).to_have_count(0)
    expect_map(page, before, CAUSAL)


def test_a_drag_zooms_and_the_click_in_the_zoomed_map_still_hits_its_cell(page: Page, app_url: str) -> None:
    open_app(page, app_url)
    start, end = cell(page, 2, 2, (11, 11)), cell(page, 9, 9, (11, 11))
    page.mouse.move(**start)
    page.mouse.down()
    page.mouse.move(**end, steps=5)
    page.mouse.up()
    page.wait_for_function("(map) => document.querySelector(map).layout.xaxis.range[0] > 0", arg=MAP)
    rest(page)
    expect(page.get_by_text("Click a cell")).to_be_visible()  # the drag chose none
    low, high = page.evaluate("(map) => document.querySelector(map).layout.xaxis.range.map(Number)", MAP)
    top, bottom = page.evaluate("(map) => document.querySelector(map).layout.yaxis.range.map(Number)", MAP)
    low_row, high_row = sorted((top, bottom))
    box = page.locator(f"{MAP} .nsewdrag").first.bounding_box()
    x = box["x"] + box["width"] * (4 - low) / (high - low)
    y = box["y"] + box["height"] * (7 - low_row) / (high_row - low_row)
    page.mouse.click(x, y)
    expect(page.get_by_text("·could (7) → , (4) in L13 H8")).to_be_visible()


def test_pointing_at_a_token_shades_the_others_without_a_word_to_the_server(page: Page, app_url: str) -> None:
    traffic = Traffic(page)
    open_app(page, app_url)
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


def test_a_copied_link_shows_the_same_picture_to_somebody_else(
    page: Page, other: Page, app_url: str, smollm2: Any
) -> None:
    text = "Anna gave the book to Ben, and Ben read it"
    open_app(page, app_url)
    run_text(page, text)
    trace = smollm2.trace(text)
    expect_map(page, trace.weights(13, 8), trace.allowed(13, 8))
    page.locator(".overview .field").click(position=thumbnail(page, 9, 4))
    expect_head(page, "L9 H4")
    for key, option in (
        ("causal", "off"),
        ("acts", "the whole pass"),
        ("view", "difference"),
        ("strip", "two columns with lines"),
    ):
        rest(page)
        choose(page, key, option)
    page.wait_for_url(re.compile("strip=lines"))
    rest(page)
    open_app(other, page.url)
    expect_head(other, "L9 H4")
    np.testing.assert_array_equal(numbers(other), numbers(page))
    for key in ("causal", "acts", "view", "strip", "colours"):
        assert chosen(other, key) == chosen(page, key)
    expect(other.get_by_label("Your text")).to_have_value(text)
    assert other.url == page.url


def test_a_link_full_of_nonsense_falls_back_with_notes(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, f"{app_url}/?layer=many&head=-1&causal=perhaps&temperature=hot&off=x&forbid=y&view=z&z=zzz")
    note = page.get_by_text("can't be read, so the page's own is shown")
    expect(note).to_have_count(1)  # one sentence, however many there are
    names = ("layer", "head", "causal", "temperature", "off", "forbid", "view", "text")
    assert [name for name in names if f"“{name}”" not in note.inner_text()] == []
    expect_head(page, "L13 H8")
    expect_map(page, smollm2.trace(LANDING).weights(13, 8), CAUSAL)
    page.wait_for_url(f"{app_url}/")


def test_two_visitors_with_opposite_switches(page: Page, other: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, f"{app_url}/?causal=on&acts=pass&layer=20")
    open_app(other, f"{app_url}/?causal=off&acts=pass&layer=20")
    for text in ("The first of the texts", "And a second one for both"):
        for tab in (page, other):
            run_text(tab, text)
        for tab, causal in ((page, True), (other, False)):
            trace = smollm2.trace(text, switches=Switches(causal=causal))
            expect_map(tab, trace.weights(20, 8), trace.allowed(20, 8))


def test_every_character_of_a_text_is_shown_as_it_is(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, f"{app_url}/?text={quote(ODD)}&query=5&key=4&causal=off")
    expected = [token.label for token in smollm2.trace(ODD).tokens]
    assert labels(page, "x") == labels(page, "y") == expected
    assert page.locator(".strip button.token .word").all_inner_texts() == [
        label.replace("·", "·") for label in expected
    ]
    assert page.locator(f"{MAP} .xtick tspan[style*=bold], {MAP} .xtick a").count() == 0
    for signs in ("a<b", "<b>bold</b>", "$5 and $6", "$x$"):
        assert signs in page.get_by_label("Your text").input_value()
    expect(page.get_by_text(f"{expected[5]} (5) → {expected[4]} (4)")).to_be_visible()
    assert page.locator(".katex, .MathJax, mjx-container").count() == 0
    page.mouse.move(**cell(page, 5, 4, (len(expected),) * 2))
    hover = page.locator(f"{MAP} .hoverlayer")
    expect(hover).to_contain_text(f"{expected[5]} (5) → {expected[4]} (4)")


def test_special_tokens_of_a_model_are_shown_as_they_are(page: Page, app_url: str, tiny_folder: Any) -> None:
    text = "<s> w1 <br> <b>x</b> $x$ &lt;i&gt; w2 </s>"
    open_app(page, f"{app_url}/?model={quote(str(tiny_folder('llama')))}&text={quote(text)}&layer=1&head=0")
    assert labels(page, "x") == labels(page, "y") == text.split()


def test_dark_and_light_pages_have_colours_of_their_own(page: Page, app_url: str, smollm2: Any) -> None:
    weights = smollm2.trace(LANDING).weights(13, 8)
    row, column = np.unravel_index(np.where(CAUSAL, weights, 1).argmin(), weights.shape)
    looks = {}
    open_app(page, app_url)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colour = [round(255 * part) for part in hex_to_rgb([theme_of(scheme).page])[0]]
        page.wait_for_function(
            "(colour) => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === colour",
            arg=f"rgb({', '.join(map(str, colour))})",
        )
        page.wait_for_function(
            "([map, colour]) => document.querySelector(map)?.layout?.plot_bgcolor === colour",
            arg=[MAP, theme_of(scheme).masked],
        )
        rest(page)
        spots = [cell(page, row, column, (11, 11)), cell(page, 2, 7, (11, 11)), cell(page, 6, 3, (11, 11))]
        box = page.locator(f"{MAP} .nsewdrag").first.bounding_box()
        outside = {"x": box["x"] + box["width"] + 20, "y": spots[1]["y"]}
        looks[scheme] = [np.array(colour_at(page, **spot), int) for spot in [*spots, outside]]
        almost_zero, masked, _, background = looks[scheme]
        assert background.tolist() == colour
        for one, another in ((almost_zero, masked), (almost_zero, background), (masked, background)):
            assert np.abs(one - another).max() >= 8
    for light, dark in zip(looks["light"], looks["dark"], strict=True):
        assert np.abs(light - dark).max() >= 8


@pytest.mark.parametrize("last", ["an example", "a switch"])
def test_clicks_while_a_long_text_is_read_end_with_the_last_choice(
    page: Page, app_url: str, smollm2: Any, last: str
) -> None:
    open_app(page, app_url)
    run_text(page, last + " word" * 1500)
    expect(page.get_by_text("Reading the text with").first).to_be_visible()
    choose(page, "causal", "off")
    choose(page, "colours", "square root")
    if last == "an example":
        page.get_by_role("button", name="Who was lost?").click()
        expect_map(
            page, smollm2.trace("The letters from my friend in Boston were lost").weights(13, 8), np.tri(9, dtype=bool)
        )
    else:
        choose(page, "causal", "on")
        choose(page, "causal", "off")
        expect(page.get_by_text("no causal mask")).to_be_visible()
        rest(page)
        expect(widget(page, "zoom").get_by_role("combobox")).to_have_value(re.compile("^all 1,5"))
        assert (numbers(page)[np.triu_indices(20, 1)] > 0).all()
    rest(page)
    assert chosen(page, "colours") == "square root"
    assert_no_error_box(page)


@pytest.mark.parametrize(
    ("first", "in_address", "second"),
    [
        (("colours", "square root"), "colours=sqrt", ("causal", "off")),
        (("causal", "on"), "causal=on", ("strip", "two columns with lines")),
        (("causal", "on"), "causal=on", ("acts", "the whole pass")),
    ],
)
def test_a_click_before_the_answer_to_the_last_one_counts_too(
    page: Page, app_url: str, first: tuple[str, str], in_address: str, second: tuple[str, str]
) -> None:
    page.add_init_script(SLOW_ANSWERS)
    open_app(page, app_url)
    page.evaluate("window.holdAnswers()")
    choose(page, *first)
    page.evaluate("window.allAnswersWait", in_address)  # the server is done, and the browser doesn't know it yet
    choose(page, *second)
    page.evaluate("window.letAnswersIn()")
    rest(page)
    assert (chosen(page, first[0]), chosen(page, second[0])) == (first[1], second[1])
    address = page.url
    page.reload()
    page.wait_for_selector(f"{MAP} .main-svg")
    rest(page)
    assert (chosen(page, first[0]), chosen(page, second[0]), page.url) == (first[1], second[1], address)


def choose_another_head(page: Page, address: str) -> None:
    open_app(page, address)
    page.locator(".overview .field").click(position=thumbnail(page, 4, 5))
    expect_head(page, "L4 H5")
    page.wait_for_url(re.compile("layer=4"))
    rest(page)


def test_back_leads_to_the_picture_before(page: Page, app_url: str) -> None:
    choose_another_head(page, app_url)
    page.wait_for_timeout(1000 * LATE)  # sooner it can't be told from a click on a slow line
    page.go_back()
    expect_head(page, "L13 H8")
    assert page.url == f"{app_url}/"


def test_after_back_at_once_the_address_still_names_what_is_shown(page: Page, app_url: str) -> None:
    choose_another_head(page, app_url)
    page.go_back()
    page.wait_for_url(f"{app_url}/")
    rest(page)
    shown = page.get_by_role("heading", name="who looks at whom").inner_text()
    assert ("layer=4" in page.url) == shown.startswith("L4 H5")


def test_the_keyboard_is_enough(page: Page, app_url: str, smollm2: Any) -> None:
    open_app(page, app_url)

    def tab_to(target: Locator) -> None:
        for _ in range(60):
            if target.evaluate("(element) => element === document.activeElement"):
                return
            page.keyboard.press("Tab")
        raise AssertionError("Tab never got there")

    tab_to(page.get_by_label("Your text"))
    page.keyboard.press("Control+a")
    page.keyboard.type("Keys are enough")
    page.keyboard.press("Control+Enter")
    trace = smollm2.trace("Keys are enough")
    expect_map(page, trace.weights(13, 8), np.tri(len(trace.tokens), dtype=bool))
    rest(page)
    tab_to(page.get_by_label("Layer", exact=True))
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    expect_head(page, "L4 H8")
    expect_map(page, trace.weights(4, 8), np.tri(len(trace.tokens), dtype=bool))


def test_the_first_view_of_128_tokens_is_light(page: Page, app_url: str, smollm2: Any) -> None:
    text = " ".join(["The animal didn't cross the street because it was too tired."] * 10)
    words = text.split()
    while len(smollm2.trace(" ".join(words)).tokens) > 128:
        words.pop()
    traffic = Traffic(page)
    open_app(page, f"{app_url}/?text={quote(' '.join(words))}")
    assert numbers(page).shape == (128, 128)
    assert sum(traffic.received) <= 450_000


@pytest.mark.parametrize("query", ["", "causal=off&acts=pass&histogram=head&query=10&key=3&strip=lines"])
def test_a_phone_does_not_scroll_the_page_sideways(page: Page, app_url: str, query: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{app_url}/?{query}")
    widths = page.evaluate(
        """() => [document.documentElement, document.querySelector("[data-testid=stMain]")].map(
          (element) => [element.scrollWidth, element.clientWidth])"""
    )
    assert all(scroll <= client <= 420 for scroll, client in widths)


def test_the_server_wrote_no_traceback(app_log: Any) -> None:
    assert "Traceback" not in app_log.read_text()
