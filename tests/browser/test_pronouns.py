"""The page Pronouns in a browser: a whole visit by mouse and keyboard, links, and two visitors at once."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlparse

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect

from attnviz.app.pronouns.pronoun_examples import example_named
from attnviz.core.pronouns.items import SHIPPED
from attnviz.core.pronouns.one_sentence import all_heads_looks, margins, word_tokens
from attnviz.core.pronouns.scoreboard import csv_text, read_boards
from attnviz.core.text.words import split_words
from tests.browser.app_page import assert_no_error_box, choose, chosen, rest, run_text, widget

STATION = example_named("station").text
LAURA, PETER, STATION_WORD, HE = 0, 2, 5, 7
VISIT = {"text": STATION, "layer": "9", "head": "4", "candidates": "0_2"}
PATIENCE = 30_000  # milliseconds: the first page loads the model


def new_visitor(browser: Browser) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    return context


@contextmanager
def quiet(context: BrowserContext) -> Iterator[None]:
    """Fail, after the block, if a tab of this visitor asked another host for anything, or threw an error."""
    # Not every error on the console: opened at its own address, a page first looks for the server in the wrong folder.
    faults: list[str] = []

    def look_at_request(request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")) and urlparse(request.url).hostname != "127.0.0.1":
            faults.append(request.url)

    context.on("request", look_at_request)
    context.on("page", lambda page: page.on("pageerror", lambda error: faults.append(str(error))))
    yield
    if faults:
        pytest.fail("\n".join(faults))


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=PATIENCE)
    yield


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """Open one tab for all tests of this file; fail if it broke or called another host."""
    context = new_visitor(browser)
    with quiet(context):
        yield context.new_page()
    context.close()


def open_page(page: Page, url: str, **address: str) -> Page:
    page.goto(f"{url}/pronouns?{urlencode(address)}")
    expect(page.locator(".arcs .word").first).to_be_visible()
    rest(page)
    assert_no_error_box(page)
    return page


def word(page: Page, index: int) -> Locator:
    return page.locator(".arcs").first.get_by_role("button").nth(index)


def asked(page: Page) -> tuple[int | None, dict[int, list[int]], int | None]:
    """Return the word that looks, each candidate's words by its number, and the right candidate, as they are told."""
    pronoun, candidates, answer = None, {}, None
    labels = page.locator(".arcs").first.get_by_role("button").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    for index, label in enumerate(labels):
        facts = label.split(", ")
        pronoun = index if "the word that looks" in facts else pronoun
        for fact in facts:
            if fact.startswith("candidate "):
                number = int(fact.split()[1])
                candidates.setdefault(number, []).append(index)
                answer = number if "the right answer" in facts else answer
    return pronoun, candidates, answer


def address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def expect_head(page: Page, name: str, spoken: str = "he") -> None:
    title = re.compile(f"^(Who is “{re.escape(spoken)}”[?]|From “{re.escape(spoken)}”:) What {name} looks at")
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    rest(page)


def looks(
    engine: Any, text: str = STATION, query: int = HE, candidates: tuple[int, ...] = (LAURA, PETER)
) -> np.ndarray:
    trace = engine.trace(f"\n{text}")
    tokens = word_tokens(trace.tokens, split_words(text), offset=1)
    return all_heads_looks(trace, tokens[query][-1], [tokens[place] for place in candidates])


def click_cell(page: Page, key: str, row: int, column: int, shape: tuple[int, int]) -> None:
    """Click the middle of a cell of a chart."""
    area = page.locator(f".st-key-{key} .js-plotly-plot .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    x, y = box["x"] + box["width"] * (column + 0.5) / shape[1], box["y"] + box["height"] * (row + 0.5) / shape[0]
    page.mouse.click(x, y)


# --- a visit ---


def test_an_example_by_mouse_shows_its_sentence_and_head(tab: Page, app_url: str, smollm2: Any) -> None:
    open_page(tab, app_url)
    expect_head(tab, "L13 H8", "it")
    tab.get_by_role("button", name="she or he?").click()
    expect_head(tab, "L9 H4")
    assert asked(tab) == (HE, {1: [LAURA], 2: [PETER]}, 2)
    weights = looks(smollm2)[9, 4]
    expect(tab.get_by_text("In this head he finds the man")).to_contain_text(
        f"Laura {weights[0]:.2f}, Peter {weights[1]:.2f}"
    )
    assert address(tab)["text"] == STATION


def test_a_click_on_words_sets_candidates_answer_and_who_looks(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT)
    word(tab, STATION_WORD).click()
    expect(word(tab, STATION_WORD)).to_have_attribute("aria-label", re.compile("^station, candidate 3, weight 0"))
    rest(tab)
    word(tab, LAURA).click()
    rest(tab)
    assert asked(tab) == (HE, {1: [PETER], 2: [STATION_WORD]}, 1)
    choose(tab, "click", "the answer")
    rest(tab)
    word(tab, LAURA).click()
    rest(tab)
    assert asked(tab) == (HE, {1: [LAURA], 2: [PETER], 3: [STATION_WORD]}, 1)
    choose(tab, "click", "who looks")
    rest(tab)
    word(tab, 9).click()
    expect_head(tab, "L9 H4", "the")
    assert asked(tab)[0] == 9
    assert address(tab) | {"pronoun": "9", "candidates": "0_2_5", "answer": "0", "click": "pronoun"} == address(tab)


def test_the_same_by_keyboard(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT | {"pronoun": "9", "candidates": "0_2_5", "answer": "0", "click": "pronoun"})
    word(tab, 9).focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        tab.keyboard.press(key)
    for _ in range(5):
        tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect_head(tab, "L9 H4")
    click = widget(tab, "click").get_by_role("radio", name="candidate or not", exact=True)
    click.focus()
    tab.keyboard.press("Space")
    expect(click).to_have_attribute("aria-checked", "true")
    rest(tab)
    word(tab, HE).focus()
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Space")
    rest(tab)
    assert asked(tab) == (HE, {1: [LAURA], 2: [PETER]}, 1)
    tab.get_by_role("button", name="Two heads, two answers").focus()
    tab.keyboard.press("Enter")
    expect_head(tab, "L9 H3", "she")
    tab.get_by_role("button", name="she or he?").focus()
    tab.keyboard.press("Enter")
    expect_head(tab, "L9 H4")


def test_head_boxes_cells_and_buttons_select_a_head(tab: Page, app_url: str, smollm2: Any) -> None:
    open_page(tab, app_url, **VISIT)
    for box, number in (("Layer", "3"), ("Head", "8")):
        tab.get_by_label(box, exact=True).fill(number)
        tab.get_by_label(box, exact=True).press("Enter")
        rest(tab)
    expect_head(tab, "L3 H8")
    click_cell(tab, "margins", 6, 17, (9, 30))
    expect_head(tab, "L17 H6")
    expect(tab.get_by_label("Layer", exact=True)).to_have_value("17")
    found = margins(looks(smollm2), 1)
    layer, head = np.unravel_index(found.argmax(), found.shape)
    tab.get_by_role("button", name=f"L{layer} H{head} +{found.max():.2f}", exact=True).click()
    expect_head(tab, f"L{layer} H{head}")
    tab.locator(".st-key-heads-named").get_by_role("button", name="L9 H4", exact=True).click()
    expect_head(tab, "L9 H4")


def test_the_lead_can_be_left_out(tab: Page, app_url: str, smollm2: Any) -> None:
    open_page(tab, app_url, **VISIT)
    choose(tab, "lead", "as typed")
    rest(tab)
    trace = smollm2.trace(STATION)
    tokens = word_tokens(trace.tokens, split_words(STATION))
    weight = trace.weights(9, 4)[tokens[HE][-1], list(tokens[PETER])].sum()
    expect(word(tab, PETER)).to_have_attribute(
        "aria-label", f"Peter, candidate 2, the right answer, weight {weight:.2f}"
    )
    assert address(tab)["lead"] == "off"
    choose(tab, "lead", "⏎ in front")
    rest(tab)
    assert "lead" not in address(tab)


def test_the_charts_have_descriptions_and_tables(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT)
    for key in ("candidates", "margins"):
        assert tab.locator(f".st-key-{key} [aria-label]").first.get_attribute("aria-label")
        box = tab.locator(f".st-key-{key}-table")
        box.locator("summary").click()
        expect(box.locator("[data-testid=stDataFrame]")).to_be_visible()
        rest(tab)
    assert_no_error_box(tab)


def test_a_pair_is_typed_and_the_later_word_takes_over(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT)
    choose(tab, "topic", "Two sentences")
    rest(tab)
    expect(tab.locator(".arcs")).to_have_count(3)
    other = tab.get_by_label("The other sentence")
    expect(other).to_have_value(STATION.replace("he took", "she took"))
    other.fill(STATION.replace("Prague", "Vienna"))
    other.press("Enter")
    expect(tab.get_by_text("In this model no word sees a later one.")).to_contain_text(
        "must be equal, and are the same"
    )
    rest(tab)
    tab.get_by_role("button", name="Let “Prague” look instead").click()
    expect_head(tab, "L9 H4", "Prague")
    assert address(tab)["pronoun"] == "13"
    assert tab.locator(".st-key-pair-difference .js-plotly-plot").count() == 1


def test_the_scoreboard_by_language_and_kind_and_as_csv(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT)
    choose(tab, "topic", "Many sentences")
    rest(tab)
    choose(tab, "sentences", "Swedish")
    expect(tab.get_by_text("shows Swedish reference.")).to_be_visible()
    rest(tab)
    choose(tab, "kind", "gender")
    rest(tab)
    boards = {(b.lang, b.kind): b for b in read_boards() if b.model == "smollm2"}
    for lang, kind, options in (("sv", "gender", ()), ("en", "", (("sentences", "English"), ("kind", "all kinds")))):
        for key, option in options:
            choose(tab, key, option)
            rest(tab)
        with tab.expect_download() as download:
            tab.get_by_role("button", name="All heads as CSV").click()
        assert download.value.path().read_text(encoding="utf-8") == csv_text(boards[lang, kind])
        assert download.value.suggested_filename == "-".join(
            filter(None, ("attnviz-smollm2", lang, kind, "scores.csv"))
        )
    click_cell(tab, "accuracy", 2, 5, (9, 30))
    expect_head(tab, "L5 H2")


def own_lines(n: int, mark: str = "") -> bytes:
    """Return n shipped sentences of many templates as a file, and one line that is none; `mark` makes them new."""
    every = (SHIPPED / "en.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in every[:: len(every) // n][:n]]
    return "\n".join([*(json.dumps(row | {"text": row["text"] + mark}) for row in rows), "nonsense"]).encode()


def upload(page: Page, content: bytes) -> None:
    file = {"name": "mine.jsonl", "mimeType": "application/json", "buffer": content}
    page.locator("input[type=file]").set_input_files([file])
    expect(page.get_by_text("One line was skipped.")).to_contain_text("it isn't JSON")


def test_an_own_file_is_measured_with_progress_and_can_be_stopped(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT, topic="scores")
    choose(tab, "sentences", "a file of yours")
    rest(tab)
    upload(tab, own_lines(800, f" At {time.time():.0f}."))  # new each time, so that no result is on the disk
    measure = tab.get_by_role("button", name="Measure all heads")
    measure.click()
    expect(tab.get_by_text("of 800 sentences")).to_be_visible()
    tab.locator(".st-key-stop-measuring button").click()
    expect(measure).to_be_visible()
    expect(tab.locator(".st-key-stop-measuring")).to_have_count(0)
    rest(tab)
    assert tab.locator(".st-key-accuracy").count() == 0  # nothing is left of it
    expect(tab.get_by_text("hasn't been measured on these 800 sentences")).to_be_visible()
    assert_no_error_box(tab)


def test_an_own_file_is_measured_to_the_end(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, model="untrained", layer="1", head="1", text=STATION, topic="scores", sentences="own")
    upload(tab, own_lines(12))
    tab.get_by_role("button", name="Measure all heads").click()
    expect(tab.get_by_role("heading", name="Every head on all 12 sentences")).to_be_visible()
    rest(tab)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="All heads as CSV").click()
    assert len(download.value.path().read_text(encoding="utf-8").splitlines()) == 1 + 16
    assert_no_error_box(tab)


def test_what_a_head_does_to_the_next_word(tab: Page, app_url: str) -> None:
    open_page(tab, app_url, **VISIT, topic="matters")
    for label, typed in (("The next word", "The"), ("rather than", "She")):
        tab.get_by_label(label).fill(typed)
        tab.get_by_label(label).press("Enter")
        rest(tab)
    assert {"word": "The", "rival": "She"}.items() <= address(tab).items()
    expect(tab.get_by_text("After this text the model expects")).to_contain_text("She")
    zero = tab.locator(".st-key-layer-effects [aria-label]").first.get_attribute("aria-label")
    choose(tab, "instead", "its mean over reference texts")
    expect(tab.get_by_text("milder than zero")).to_be_visible()
    rest(tab)
    assert tab.locator(".st-key-layer-effects [aria-label]").first.get_attribute("aria-label") != zero
    choose(tab, "instead", "nothing")
    rest(tab)
    click_cell(tab, "direct-map", 3, 20, (9, 30))
    expect_head(tab, "L20 H3")
    every = tab.get_by_role("button", name="Switch off every head, one after another")
    every.click()
    expect(tab.get_by_text("of 270 heads, one at a time")).to_be_visible()
    tab.locator(".st-key-stop-switching button").click()
    expect(every).to_be_visible()
    expect(tab.locator(".st-key-stop-switching")).to_have_count(0)
    rest(tab)
    assert tab.locator(".st-key-effect-map").count() == 0
    assert_no_error_box(tab)


def test_every_head_of_a_small_model_is_switched_off(tab: Page, app_url: str) -> None:
    fields = {"model": "untrained", "layer": "1", "head": "1", "text": "A space at the end "}
    open_page(tab, app_url, topic="matters", word="Q", rival="Z", **fields)
    tab.get_by_role("button", name="Switch off every head, one after another").click()
    expect(tab.locator(".st-key-effect-map .js-plotly-plot")).to_be_visible()
    rest(tab)
    click_cell(tab, "effect-map", 2, 3, (4, 4))
    expect_head(tab, "L3 H2", "end")
    assert_no_error_box(tab)


# --- links and other visitors ---


def test_a_copied_link_asks_the_same_in_a_fresh_browser(tab: Page, app_url: str, browser: Browser) -> None:
    choices = {
        "text": STATION, "pronoun": "9", "candidates": "0_1_5", "answer": "5", "layer": "4", "head": "2",
        "topic": "pair", "pair": STATION.replace("took", "missed"), "lead": "off", "click": "answer",
        "sentences": "de", "kind": "gender", "word": "so", "rival": "and", "instead": "mean",
    }  # fmt: skip
    open_page(tab, app_url, **choices)
    assert address(tab) == choices
    assert asked(tab) == (9, {1: [0, 1], 2: [5]}, 2)
    context = new_visitor(browser)
    with quiet(context):
        fresh = context.new_page()
        fresh.goto(tab.url)
        expect(word(fresh, 9)).to_be_visible()
        expect_head(fresh, "L4 H2", "the")
        assert asked(fresh) == asked(tab) and address(fresh) == choices
        assert chosen(fresh, "topic") == "Two sentences" and chosen(fresh, "click") == "the answer"
        expect(fresh.get_by_label("The other sentence")).to_have_value(choices["pair"])
    context.close()


def test_two_visitors_at_once_keep_their_own_questions(tab: Page, app_url: str, browser: Browser) -> None:
    open_page(tab, app_url, **VISIT)
    context = new_visitor(browser)
    with quiet(context):
        other = open_page(context.new_page(), app_url, **VISIT)
        word(tab, LAURA).click()
        choose(other, "click", "who looks")
        rest(other)
        word(other, PETER).click()
        expect_head(other, "L9 H4", "Peter")
        rest(tab)
        assert asked(tab) == (HE, {1: [PETER]}, 1) and asked(other) == (PETER, {1: [LAURA]}, 1)
        run_text(other, "Anna told Tom that she had left")
        expect_head(other, "L9 H4", "she")
        word(tab, STATION_WORD).click()
        rest(tab)
        assert asked(tab)[:2] == (HE, {1: [PETER], 2: [STATION_WORD]})
        assert address(tab)["text"] == STATION
    context.close()
