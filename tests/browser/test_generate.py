"""The page Generate in a browser: writing, playing and stopping, keys, links, and what disturbs it in the middle."""

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

import attnviz
from attnviz.app.generate.continuation import MOST
from attnviz.app.shell.fields import LANDING
from attnviz.core.generation.step import Step
from tests.browser.app_page import SHOWS, address_of, choose, fill, go, plot, rest, run_text, widget

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


def press(page: Page, name: str) -> None:
    """Click one of the buttons that write, and wait until the page has settled."""
    widget(page, f"write-{name}").get_by_role("button").click()
    rest(page)


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


def test_step_back_to_start_and_the_head_boxes(tab: Page, smollm2: Any) -> None:
    open_page(tab, "generate")
    expect(tab.get_by_text("one token at a time")).to_be_visible()
    first, second = smollm2.generate(LANDING, 2)
    press(tab, "step")
    expect_step(tab, first, 13, 8)
    press(tab, "step")
    expect_step(tab, second, 13, 8)
    expect(tab.get_by_text("are the same to the last bit")).to_be_visible()
    strip = tab.locator(".strip button.token")
    assert strip.count() == 12 and strip.last.inner_text().strip() == first.token.label
    fill(tab, "Head", "3")
    expect_step(tab, second, 13, 3)
    rest(tab)
    press(tab, "back")
    expect_step(tab, first, 13, 3)
    rest(tab)
    press(tab, "start")
    expect(tab.locator(MAP)).to_have_count(0)
    assert "written" not in tab.url and "head=3" in tab.url


def test_arrow_keys_step_unless_something_else_takes_them(tab: Page, steps: list[Step]) -> None:
    open_page(tab)
    counts = []
    for key, url in (("ArrowRight", "written=1"), ("ArrowRight", "written=2"), ("ArrowLeft", "written=1")):
        tab.keyboard.press(key)
        tab.wait_for_url(f"**{url}*")
        rest(tab)
        counts.append(written(tab))
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
    tab.wait_for_function("location.search.includes('warmth=0.3')")
    rest(tab)
    assert written(tab) == 1


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
    tab.wait_for_function("location.search.includes('Dogs')")
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


def test_both_ways_stop_at_once_and_run_to_the_end(tab: Page) -> None:
    open_page(tab, "generate?writing_topic=both&text=Stop+soon")
    tab.get_by_role("button", name="Run both").click()
    expect(tab.get_by_text("the cache: step").first).to_be_visible()
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("button", name="Run both")).to_be_visible()
    rest(tab)
    assert tab.locator(".st-key-both-seconds").count() == 0  # the whole run takes many times as long
    open_page(tab, f"{SMALL}&writing_topic=both&text=Once+more")
    tab.get_by_role("button", name="Run both").click()
    tab.wait_for_selector(f"{plot('both-seconds')} .main-svg")
    tab.wait_for_selector(f"{plot('both-formula')} .main-svg")
    expect(tab.get_by_text("the same tokens came out")).to_be_visible()


def test_memory_and_other_models(tab: Page) -> None:
    open_page(tab, f"{SMALL}&text={quote(TEXT)}&written=3&writing_topic=memory")
    live = 4 * 2 * (len(TEXT) + 2) * 16 * 2 * 4  # layers, key/value heads, tokens, d_head, K and V, bytes
    expect(tab.get_by_text("held by the live cache")).to_contain_text(f"{live:,} bytes are held")
    expect(tab.get_by_text("held by the live cache")).to_contain_text(f"{live:,}: exactly the same")
    choose(tab, "writing_topic", "Other models")
    expect(tab.locator("[data-testid=stDataFrame]")).to_be_visible()
    rest(tab)
    assert "writing_topic=models" in tab.url and written(tab) == 3
