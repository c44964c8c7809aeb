"""The page Generate in a browser: writing, playing and stopping, keys, links, and what disturbs it in the middle."""

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

import attnviz
from attnviz.app.generate.continuation import MOST
from attnviz.core.generation.step import Step
from tests.browser.app_page import SHOWS, address_of, expect_address, go, plot, rest, run_text, widget

TEXT = "The cat sat"
SMALL = "generate?model=untrained&layer=0&head=0"
MAP = plot("generate-map")


def open_page(page: Page, address: str = f"{SMALL}&text={quote(TEXT)}") -> None:
    go(page, address)
    expect(widget(page, "writing_topic")).to_be_visible()


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """Return the first steps after `TEXT` of the model with random weights."""
    return list(attnviz.load("untrained").generate(TEXT, 12))


def written(page: Page) -> int:
    """Return how many tokens the address says."""
    return int(address_of(page).get("written", "0"))


def play(page: Page, n: int) -> None:
    """Press Play and wait until n tokens are there; by then more may be."""
    widget(page, "write-play").get_by_role("button", name="Play").click()
    wait_for(page, n)


def wait_for(page: Page, n: int) -> None:
    enough = "(n) => Number(new URLSearchParams(location.search).get('written')) >= n"
    page.wait_for_function(enough, arg=n, polling=50)


def stop(page: Page) -> int:
    """Press Stop and return how many tokens there are."""
    widget(page, "write-play").get_by_role("button", name="Stop").click()
    expect(widget(page, "write-play").get_by_role("button", name="Play")).to_be_visible()
    rest(page)
    return written(page)


def expect_step(page: Page, step: Step, layer: int = 0, head: int = 0) -> None:
    """Wait until the page shows the attention of all tokens that this step looked back at."""
    allowed = step.trace.allowed(layer, head)
    weights = step.trace.weights(layer, head)
    rows = [
        [float(w) if seen else None for w, seen in zip(*row, strict=True)] for row in zip(weights, allowed, strict=True)
    ]
    page.wait_for_function(SHOWS, arg=[MAP, rows], polling=50)


def test_arrow_keys_step_unless_something_else_takes_them(tab: Page, steps: list[Step]) -> None:
    open_page(tab)
    counts = []
    strip = tab.locator(".strip button.token")
    for key, n, last in (
        ("ArrowRight", 1, TEXT[-1]),
        ("ArrowRight", 2, steps[0].token.label),
        ("ArrowLeft", 1, TEXT[-1]),
    ):
        tab.keyboard.press(key)
        expect_address(tab, written=str(n))
        rest(tab)
        counts.append(written(tab))
        assert (strip.count(), strip.last.inner_text().split("\n")[0].strip()) == (len(TEXT) + n - 1, last)
    assert counts == [1, 2, 1]
    expect_step(tab, steps[0])
    takers = (
        tab.get_by_label("Your text"),
        tab.locator(".strip button.token").first,
        tab.get_by_label("Head", exact=True),
        widget(tab, "warmth").get_by_role("slider"),
    )
    for taker in takers:
        taker.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):  # whoever steps on these would be one token further
            taker.press(key)
    expect_address(tab, warmth="0.3")
    rest(tab)
    assert written(tab) == 1


def test_keys_on_a_slow_line_end_where_they_lead(tab: Page, steps: list[Step]) -> None:
    open_page(tab)
    for n in (1, 2):
        tab.keyboard.press("ArrowRight")
        expect_step(tab, steps[n - 1])
        rest(tab)
    tab.evaluate("window.holdAnswers()")
    for key, n in (("ArrowRight", 3), ("ArrowLeft", 2), ("ArrowLeft", 1)):
        tab.keyboard.press(key)
        tab.evaluate("window.allAnswersWait", f"written={n}")  # the server is done, and the browser doesn't know it yet
    tab.evaluate("window.letAnswersIn()")
    expect_step(tab, steps[0])
    rest(tab)
    expect_address(tab, written="1")


def test_play_writes_on_until_stop_while_another_visitor_steps(tab: Page, other_tab: Page) -> None:
    open_page(tab)
    open_page(other_tab, f"{SMALL}&text=Dogs")
    play(tab, 2)
    widget(other_tab, "write-step").get_by_role("button").click()
    n = stop(tab)
    expect_step(other_tab, next(attnviz.load("untrained").generate("Dogs")))
    rest(other_tab)
    assert 2 <= n < MOST
    *_, last = attnviz.load("untrained").generate(TEXT, n)
    expect_step(tab, last)
    assert written(tab) == n and written(other_tab) == 1


def test_a_new_text_and_another_page_while_it_plays(tab: Page) -> None:
    open_page(tab)
    play(tab, 3)
    run_text(tab, "Dogs ran")
    expect_address(tab, text="Dogs ran")
    wait_for(tab, 1)
    tab.get_by_role("link", name="Explore").click()
    expect(tab.get_by_role("heading", name="L0 H0: who looks at whom")).to_be_visible()
    rest(tab)
    tab.get_by_role("link", name="Generate").click()
    expect(tab.locator(MAP)).to_be_visible()
    n = stop(tab)
    assert 1 <= n < MOST
    *_, last = attnviz.load("untrained").generate("Dogs ran", n)
    expect_step(tab, last)


def test_both_ways_stop_at_once(tab: Page) -> None:
    open_page(tab, "generate?writing_topic=both&text=Stop+soon")
    tab.get_by_role("button", name="Run both").click()
    expect(tab.get_by_text("the cache: step").first).to_be_visible()
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("button", name="Run both")).to_be_visible()
    rest(tab)
    assert tab.locator(".st-key-both-seconds").count() == 0  # the whole run takes many times as long
