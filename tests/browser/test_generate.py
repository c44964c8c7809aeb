"""The page Generate in a browser: writing, playing and stopping, keys, links, and what disturbs it in the middle."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlparse

import pytest
from playwright.sync_api import BrowserContext, Page, expect

import attnviz
from attnviz.app.generate.continuation import MOST
from attnviz.app.generate.writing import PACE
from attnviz.app.shell.fields import LANDING
from attnviz.core.generation.step import Step
from tests.browser.app_page import SHOWS, assert_no_error_box, choose, rest, run_text, widget

TEXT = "The cat sat"
MAP = ".st-key-generate-map .js-plotly-plot"
PATIENCE = 60_000  # milliseconds
Open = Callable[..., Page]


@pytest.fixture
def open_page(context: BrowserContext, app_url: str) -> Iterator[Open]:
    """Return a function that opens the page as a new visitor; fail if a page breaks or asks another host."""
    expect.set_options(timeout=PATIENCE)
    pages: list[Page] = []
    faults: list[str] = []

    def look_at(url: str) -> None:
        if not url.startswith(("data:", "blob:")) and urlparse(url).hostname != "127.0.0.1":
            faults.append(url)

    def visit(address: str = f"model=untrained&layer=0&head=0&text={quote(TEXT)}") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: look_at(request.url))
        page.goto(f"{app_url}/generate?{address}")
        expect(widget(page, "writing_topic")).to_be_visible()
        rest(page)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        assert_no_error_box(page)
    assert faults == []


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
    return int(parse_qs(urlparse(page.url).query).get("written", ["0"])[0])


def play(page: Page, n: int) -> None:
    """Press Play and wait until n tokens are there; by then more may be."""
    widget(page, "write-play").get_by_role("button", name="Play").click()
    wait_for(page, n)


def wait_for(page: Page, n: int) -> None:
    page.wait_for_function("(n) => Number(new URLSearchParams(location.search).get('written')) >= n", arg=n)


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
    page.wait_for_function(SHOWS, arg=[MAP, rows])


def test_step_back_to_start_and_the_head_boxes(open_page: Open, smollm2: Any) -> None:
    page = open_page("")
    expect(page.get_by_text("one token at a time")).to_be_visible()
    first, second = smollm2.generate(LANDING, 2)
    press(page, "step")
    expect_step(page, first, 13, 8)
    press(page, "step")
    expect_step(page, second, 13, 8)
    expect(page.get_by_text("are the same to the last bit")).to_be_visible()
    strip = page.locator(".strip button.token")
    assert strip.count() == 12 and strip.last.inner_text().strip() == first.token.label
    page.get_by_label("Head", exact=True).fill("3")
    page.get_by_label("Head", exact=True).press("Enter")
    expect_step(page, second, 13, 3)
    rest(page)
    press(page, "back")
    expect_step(page, first, 13, 3)
    rest(page)
    press(page, "start")
    expect(page.locator(MAP)).to_have_count(0)
    assert "written" not in page.url and "head=3" in page.url


def test_arrow_keys_step_unless_something_else_takes_them(open_page: Open, steps: list[Step]) -> None:
    page = open_page()
    counts = []
    for key, url in (("ArrowRight", "written=1"), ("ArrowRight", "written=2"), ("ArrowLeft", "written=1")):
        page.keyboard.press(key)
        page.wait_for_url(f"**{url}*")
        rest(page)
        counts.append(written(page))
    assert counts == [1, 2, 1]
    expect_step(page, steps[0])
    takers = (
        page.get_by_label("Your text"),
        page.locator(".strip button.token").first,
        page.get_by_label("Head", exact=True),
        widget(page, "warmth").get_by_role("slider"),
    )
    for taker in takers:
        taker.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):  # whoever steps on these would be one token further
            taker.press(key)
    page.wait_for_function("location.search.includes('warmth=0.3')")
    rest(page)
    assert written(page) == 1


def test_play_writes_on_until_stop_while_another_visitor_steps(open_page: Open) -> None:
    page, other = open_page(), open_page("model=untrained&layer=0&head=0&text=Dogs")
    play(page, 2)
    press(other, "step")
    expect_step(other, next(attnviz.load("untrained").generate("Dogs")))
    n = stop(page)
    assert 2 <= n < MOST
    *_, last = attnviz.load("untrained").generate(TEXT, n)
    expect_step(page, last)
    time.sleep(2 * PACE)
    rest(page)
    assert written(page) == n and written(other) == 1


def test_a_new_text_and_another_page_while_it_plays(open_page: Open) -> None:
    page = open_page()
    play(page, 3)
    run_text(page, "Dogs ran")
    page.wait_for_function("location.search.includes('Dogs')")
    wait_for(page, 1)
    page.get_by_role("link", name="Explore").click()
    expect(page.get_by_role("heading", name="L0 H0: who looks at whom")).to_be_visible()
    rest(page)
    page.get_by_role("link", name="Generate").click()
    expect(page.locator(MAP)).to_be_visible()
    n = stop(page)
    assert 1 <= n < MOST
    *_, last = attnviz.load("untrained").generate("Dogs ran", n)
    expect_step(page, last)


def test_a_copied_link_opens_the_same_picture(open_page: Open) -> None:
    page = open_page(f"model=untrained&layer=2&head=1&text={quote(TEXT)}&written=5&warmth=1.5&seed=7&top_k=40")
    drawn = list(attnviz.load("untrained").generate(TEXT, 5, temperature=1.5, top_k=40, seed=7))
    expect_step(page, drawn[-1], 2, 1)
    rest(page)
    press(page, "back")
    expect_step(page, drawn[-2], 2, 1)
    rest(page)
    other = open_page(urlparse(page.url).query)
    expect_step(other, drawn[-2], 2, 1)
    assert other.url == page.url
    said = [tab.get_by_text("was taken").inner_text() for tab in (page, other)]
    assert said[0] == said[1] and "seed 7" in said[0]


def test_both_ways_stop_at_once_and_run_to_the_end(open_page: Open) -> None:
    page = open_page("writing_topic=both")
    page.get_by_role("button", name="Run both").click()
    expect(page.get_by_text("the cache: step").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Run both")).to_be_visible()
    rest(page)
    assert page.locator(".st-key-both-seconds").count() == 0  # the whole run takes many times as long
    small = open_page("model=untrained&layer=0&head=0&writing_topic=both&text=Once+more")
    small.get_by_role("button", name="Run both").click()
    small.wait_for_selector(".st-key-both-seconds .main-svg")
    small.wait_for_selector(".st-key-both-formula .main-svg")
    expect(small.get_by_text("the same tokens came out")).to_be_visible()


def test_memory_and_other_models(open_page: Open) -> None:
    page = open_page(f"model=untrained&layer=0&head=0&text={quote(TEXT)}&written=3&writing_topic=memory")
    live = 4 * 2 * (len(TEXT) + 2) * 16 * 2 * 4  # layers, key/value heads, tokens, d_head, K and V, bytes
    expect(page.get_by_text("held by the live cache")).to_contain_text(f"{live:,} bytes are held")
    expect(page.get_by_text("held by the live cache")).to_contain_text(f"{live:,}: exactly the same")
    choose(page, "writing_topic", "Other models")
    expect(page.locator("[data-testid=stDataFrame]")).to_be_visible()
    rest(page)
    assert "writing_topic=models" in page.url and written(page) == 3
