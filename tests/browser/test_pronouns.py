"""The page Pronouns in a browser: a whole visit by mouse and keyboard, links, and two visitors at once."""

import re
from typing import Any
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import Locator, Page, expect

from attnviz.app.pronouns.pronoun_examples import example_named
from attnviz.core.pronouns.items import SHIPPED
from attnviz.core.pronouns.one_sentence import all_heads_looks, margins, word_tokens
from attnviz.core.pronouns.scoreboard import csv_text, read_boards
from attnviz.core.text.words import split_words
from tests.browser.app_page import (
    address_of,
    cell,
    choose,
    chosen,
    expect_address,
    fill,
    go,
    plot,
    rest,
    run_text,
    until,
)

STATION = example_named("station").text
LAURA, PETER, STATION_WORD, HE = 0, 2, 5, 7
VISIT = {"text": STATION, "layer": "9", "head": "4", "candidates": "0_2"}


def open_page(page: Page, **address: str) -> Page:
    go(page, f"pronouns?{urlencode(address)}")
    expect(page.locator(".arcs .word").first).to_be_visible()
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
    page.mouse.click(**cell(page, row, column, shape, plot(key)))


def test_an_example_by_mouse_shows_its_sentence_and_head(tab: Page, smollm2: Any) -> None:
    open_page(tab)
    expect_head(tab, "L13 H8", "it")
    tab.get_by_role("button", name="she or he?").click()
    expect_head(tab, "L9 H4")
    until(tab, lambda: asked(tab), (HE, {1: [LAURA], 2: [PETER]}, 2))
    weights = looks(smollm2)[9, 4]
    expect(tab.get_by_text("In this head he finds the man")).to_contain_text(
        f"Laura {weights[0]:.2f}, Peter {weights[1]:.2f}"
    )
    expect_address(tab, text=STATION)


def test_a_click_on_words_sets_candidates_answer_and_who_looks(tab: Page) -> None:
    open_page(tab, **VISIT)
    word(tab, STATION_WORD).click()
    expect(word(tab, STATION_WORD)).to_have_attribute("aria-label", re.compile("^station, candidate 3, weight 0"))
    rest(tab)
    word(tab, LAURA).click()
    rest(tab)
    until(tab, lambda: asked(tab), (HE, {1: [PETER], 2: [STATION_WORD]}, 1))
    choose(tab, "click", "the answer")
    rest(tab)
    word(tab, LAURA).click()
    rest(tab)
    until(tab, lambda: asked(tab), (HE, {1: [LAURA], 2: [PETER], 3: [STATION_WORD]}, 1))
    choose(tab, "click", "who looks")
    rest(tab)
    word(tab, 9).click()
    expect_head(tab, "L9 H4", "the")
    until(tab, lambda: asked(tab)[0], 9)
    expect_address(tab, pronoun="9", candidates="0_2_5", answer="0", click="pronoun")


def test_cells_and_buttons_select_a_head_and_tables_open(tab: Page, smollm2: Any) -> None:
    open_page(tab, **VISIT)
    click_cell(tab, "margins", 6, 17, (9, 30))
    expect_head(tab, "L17 H6")
    expect(tab.get_by_label("Layer", exact=True)).to_have_value("17")
    found = margins(looks(smollm2), 1)
    layer, head = np.unravel_index(found.argmax(), found.shape)
    tab.get_by_role("button", name=f"L{layer} H{head} +{found.max():.2f}", exact=True).click()
    expect_head(tab, f"L{layer} H{head}")
    tab.locator(".st-key-heads-named").get_by_role("button", name="L9 H4", exact=True).click()
    expect_head(tab, "L9 H4")
    for key in ("candidates", "margins"):
        assert tab.locator(f".st-key-{key} [aria-label]").first.get_attribute("aria-label")
        box = tab.locator(f".st-key-{key}-table")
        box.locator("summary").click()
        expect(box.locator("[data-testid=stDataFrame]")).to_be_visible()


def test_the_scoreboard_of_a_language_and_kind_and_its_csv(tab: Page) -> None:
    open_page(tab, **VISIT, topic="scores")
    choose(tab, "sentences", "Swedish")
    expect(tab.get_by_text("shows Swedish reference.")).to_be_visible()
    rest(tab)
    choose(tab, "kind", "gender")
    rest(tab)
    (board,) = (b for b in read_boards() if (b.model, b.lang, b.kind) == ("smollm2", "sv", "gender"))
    with tab.expect_download() as download:
        tab.get_by_role("button", name="All heads as CSV").click()
    assert download.value.path().read_text(encoding="utf-8") == csv_text(board)
    assert download.value.suggested_filename == "attnviz-smollm2-sv-gender-scores.csv"
    click_cell(tab, "accuracy", 2, 5, (9, 30))
    expect_head(tab, "L5 H2")


def own_lines(n: int) -> bytes:
    """Return n shipped sentences of many templates as a file, and one line that is none."""
    every = (SHIPPED / "en.jsonl").read_text(encoding="utf-8").splitlines()
    return "\n".join([*every[:: len(every) // n][:n], "nonsense"]).encode()


def upload(page: Page, content: bytes) -> None:
    file = {"name": "mine.jsonl", "mimeType": "application/json", "buffer": content}
    page.locator("input[type=file]").set_input_files([file])
    expect(page.get_by_text("One line was skipped.")).to_contain_text("it isn't JSON")


def test_an_own_file_is_measured_to_the_end(tab: Page) -> None:
    open_page(tab, model="untrained", layer="1", head="1", text=STATION, topic="scores", sentences="own")
    upload(tab, own_lines(12))
    tab.get_by_role("button", name="Measure all heads").click()
    expect(tab.get_by_role("heading", name="Every head on all 12 sentences")).to_be_visible()
    rest(tab)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="All heads as CSV").click()
    assert len(download.value.path().read_text(encoding="utf-8").splitlines()) == 1 + 16


def test_what_a_head_does_to_the_next_word(tab: Page) -> None:
    open_page(tab, **VISIT, topic="matters", word="The")
    fill(tab, "rather than", "She")
    expect(tab.get_by_text("After this text the model expects")).to_contain_text("She")
    rest(tab)
    expect_address(tab, word="The", rival="She")
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
    tab.locator(".st-key-stop-switching button").click()  # it takes many times as long
    expect(every).to_be_visible()
    expect(tab.locator(".st-key-stop-switching")).to_have_count(0)
    rest(tab)
    assert tab.locator(".st-key-effect-map").count() == 0


def test_every_head_of_a_small_model_is_switched_off(tab: Page) -> None:
    fields = {"model": "untrained", "layer": "1", "head": "1", "text": "A space at the end "}
    open_page(tab, topic="matters", word="Q", rival="Z", **fields)
    tab.get_by_role("button", name="Switch off every head, one after another").click()
    expect(tab.locator(".st-key-effect-map .js-plotly-plot")).to_be_visible()
    rest(tab)
    click_cell(tab, "effect-map", 2, 3, (4, 4))
    expect_head(tab, "L3 H2", "end")


def test_a_copied_link_asks_somebody_else_the_same(tab: Page, other_tab: Page) -> None:
    choices = {
        "text": STATION, "pronoun": "9", "candidates": "0_1_5", "answer": "5", "layer": "4", "head": "2",
        "topic": "pair", "pair": STATION.replace("took", "missed"), "lead": "off", "click": "answer",
        "sentences": "de", "kind": "gender", "word": "so", "rival": "and", "instead": "mean",
    }  # fmt: skip
    open_page(tab, **choices)
    open_page(other_tab, **address_of(tab))
    for page in (tab, other_tab):
        until(page, lambda page=page: address_of(page), choices)
        until(page, lambda page=page: asked(page), (9, {1: [0, 1], 2: [5]}, 2))
        expect_head(page, "L4 H2", "the")
        expect(page.locator(".arcs")).to_have_count(3)
        expect(page.locator(plot("pair-difference"))).to_have_count(1)
        assert chosen(page, "topic") == "Two sentences" and chosen(page, "click") == "the answer"
        expect(page.get_by_label("The other sentence")).to_have_value(choices["pair"])


def test_two_visitors_at_once_keep_their_own_questions(tab: Page, other_tab: Page) -> None:
    open_page(tab, **VISIT)
    open_page(other_tab, **VISIT)
    word(tab, LAURA).click()
    choose(other_tab, "click", "who looks")
    rest(other_tab)
    word(other_tab, PETER).click()
    expect_head(other_tab, "L9 H4", "Peter")
    rest(tab)
    until(tab, lambda: asked(tab), (HE, {1: [PETER]}, 1))
    until(other_tab, lambda: asked(other_tab), (PETER, {1: [LAURA]}, 1))
    run_text(other_tab, "Anna told Tom that she had left")
    word(tab, STATION_WORD).click()
    expect_head(other_tab, "L9 H4", "she")
    rest(tab)
    until(tab, lambda: asked(tab)[:2], (HE, {1: [PETER], 2: [STATION_WORD]}))
    expect_address(tab, text=STATION)
