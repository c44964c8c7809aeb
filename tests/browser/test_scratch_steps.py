"""The steps scaling, mask and softmax in a browser: each opens from its link, and its controls change its picture."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.app_page import assert_no_error_box, choose, rest, widget

TITLES = {"scaling": "4. Scaling", "mask": "5. Causal mask", "softmax": "6. Softmax"}
FIRST = {"scaling": "scores-random-without", "mask": "mask-real-with", "softmax": "softmax-row"}
BARS = "([selector, trace]) => Array.from(document.querySelector(selector)._fullData[trace].y)"
CELLS = "(selector) => Array.from(document.querySelector(selector).calcdata[0][0].z, (row) => Array.from(row))"
DRAWN = """(selector) => JSON.stringify(
  document.querySelector(selector)?._fullData?.map((trace) => trace.y && !trace.z
    ? Array.from(trace.y) : Array.from(trace._input.z.bdata)) ?? null)"""
CHANGED = f"([selector, before]) => ![before, 'null'].includes(({DRAWN})(selector))"


@pytest.fixture
def open_step(page: Page, app_url: str) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a step from its link; fail when the page breaks or calls another host."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: urlparse(request.url).hostname == "127.0.0.1" or _note(faults, request.url))

    def visit(step: str, address: str = "") -> Page:
        page.goto(f"{app_url}/scratch?step={step}&{address}")
        page.wait_for_selector(f"{plot(FIRST[step] if 'random' not in address else step)} .main-svg")
        rest(page)
        return page

    yield visit
    assert_no_error_box(page)
    assert faults == []


def _note(faults: list[str], url: str) -> None:
    if not url.startswith(("data:", "blob:")):
        faults.append(url)


def plot(key: str) -> str:
    """Return the selector of a chart, by its key or by the beginning of it."""
    return f"[class*=st-key-{key}] .js-plotly-plot"


def bars(page: Page, key: str, trace: int = 0) -> np.ndarray:
    return np.array(page.evaluate(BARS, [plot(key), trace]), float)


def changes(page: Page, key: str, act: Callable[[], None]) -> None:
    """Do something, and wait until that chart shows other numbers than before."""
    before = page.evaluate(DRAWN, plot(key))
    act()
    page.wait_for_function(CHANGED, arg=[plot(key), before])
    rest(page)


def unfold(page: Page, title: str, chart: str = "") -> None:
    """Open the expander with that title, and wait for the chart in it."""
    page.locator("[data-testid=stExpander] summary", has_text=title).click()
    if chart:
        page.wait_for_selector(f"{plot(chart)} .main-svg")
    rest(page)


def slider(page: Page, key: str) -> Locator:
    return widget(page, key).get_by_role("slider")


@pytest.mark.parametrize("step", TITLES)
def test_a_step_opens_from_its_link(open_step: Callable[..., Page], step: str) -> None:
    page = open_step(step)
    expect(page.get_by_role("heading", name=TITLES[step])).to_be_visible()
    expect(page.locator(".katex-display").first).to_be_visible()
    expect(page.locator("[data-testid=stLatex] .katex-error")).to_have_count(0)
    page.get_by_role("button", name="Show the answer").click()
    expect(page.get_by_role("button", name="Hide the answer")).to_be_visible()
    rest(page)


@pytest.mark.parametrize("step", TITLES)
def test_the_code_is_the_source(open_step: Callable[..., Page], step: str) -> None:
    page = open_step(step)
    page.get_by_text("The code that made these pictures").click()
    shown = page.locator(f".st-key-code-{step} [data-testid=stCode]")
    expect(shown.first).to_be_visible()
    rest(page)
    assert all(text.startswith("def ") for text in shown.all_inner_texts())
    assert shown.count() >= 4


def test_a_wider_head_makes_wider_scores_and_the_link_keeps_it(open_step: Callable[..., Page]) -> None:
    page = open_step("scaling", "width=64")
    for width in (96, 128):
        changes(page, "scores-random-without", lambda: slider(page, "width-slider").press("ArrowRight"))
        assert f"width={width}" in page.url
    theory = page.get_by_text("in theory: √128 = 11.31")
    expect(theory).to_be_visible()
    page.reload()
    page.wait_for_selector(f"{plot(FIRST['scaling'])} .main-svg")
    expect(theory).to_be_visible()


def test_without_the_factor_rows_saturate_more_with_the_width(open_step: Callable[..., Page]) -> None:
    page = open_step("scaling", "width=4")
    unfold(page, "What that does to weights and gradients", "maxima-random")
    low = bars(page, "maxima-random", 1)
    changes(page, "maxima-random", lambda: slider(page, "width-slider").press("End"))
    high = bars(page, "maxima-random", 1)
    assert high[-1] / high.sum() > 0.6 > 0.1 > low[-1] / low.sum()
    changes(page, "curves-sharp", lambda: choose(page, "curves", "the number of tokens T"))
    assert len(bars(page, "curves-sharp")) == 9
    unfold(page, "And in a trained head?", "maxima-real")
    changes(page, "maxima-real", lambda: widget(page, "layer").get_by_role("button").last.click())


def test_another_last_word_and_random_numbers_change_the_masked_picture(open_step: Callable[..., Page]) -> None:
    page = open_step("mask")
    cells = np.array(page.evaluate(CELLS, plot("mask-real-with")), float)
    assert np.nanmax(np.abs(cells[:-1])) == 0 and np.nanmax(np.abs(cells[-1])) > 0.1
    box = page.get_by_label("The last word becomes")

    def retype() -> None:
        box.fill("trees")
        box.press("Enter")

    changes(page, "mask-real-with", retype)
    expect(page.get_by_text("Weights with “trees” minus")).to_be_visible()
    assert "swap=trees" in page.url
    choose(page, "source", "random numbers")
    page.wait_for_selector(f"{plot('mask-change-with')} .main-svg")
    rest(page)
    page.get_by_role("button", name="Show the answer").click()
    page.wait_for_selector(f"{plot('mask-change-without')} .main-svg")
    rest(page)
    changes(page, "mask-change-without", lambda: _type(page, "Seed", "5"))
    kept = np.array(page.evaluate(CELLS, plot("mask-change-with")), float)
    assert (kept[:-1] == 0).all() and (kept[-1] != 0).all()


def _type(page: Page, label: str, number: str) -> None:
    box = page.get_by_label(label)
    box.fill(number)
    box.press("Enter")


def test_the_temperature_goes_from_argmax_to_equal_shares(open_step: Callable[..., Page]) -> None:
    page = open_step("softmax")
    rows = []
    for key in ("Home", "End"):
        changes(page, "softmax-row", lambda key=key: slider(page, "heat").press(key))
        rows.append(bars(page, "softmax-row", 1))
    assert rows[0].max() > 0.999
    np.testing.assert_allclose(rows[1], 1 / 11, atol=0.01)
    assert page.locator(plot("softmax-sums")).count() == 0
    page.get_by_role("button", name="Show the answer").click()
    page.wait_for_selector(f"{plot('softmax-sums')} .main-svg")
    rest(page)
    np.testing.assert_allclose(bars(page, "softmax-sums", 0), 1, atol=1e-5)
    assert np.ptp(bars(page, "softmax-sums", 1)) > 0.5
    assert "heat=100" in page.url


def test_the_precision_decides_whether_the_literal_formula_breaks(open_step: Callable[..., Page]) -> None:
    page = open_step("softmax")
    expect(page.get_by_text("Computed in")).to_have_count(0)
    unfold(page, "Why computers take the largest score off first")
    expect(page.get_by_text(re.compile("inf / inf is not a"))).to_be_visible()
    choose(page, "digits", "float64")
    expect(page.get_by_text("both ways give the same shares")).to_be_visible()
    choose(page, "digits", "float16")
    expect(page.get_by_text(re.compile("In float16 exp overflows above 11.1"))).to_be_visible()
    choose(page, "overflow", "the followed one")
    expect(page.get_by_text("both ways give the same shares")).to_be_visible()
    rest(page)
