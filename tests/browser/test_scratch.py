"""The page "From scratch" in a browser, on a dark page: each step from its link, its controls, and on a phone."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.app_page import (
    cell,
    changes,
    choose,
    expect_address,
    fill,
    go,
    pick,
    plot,
    press_plus,
    rest,
    run_text,
    unfold,
    widget,
    width_beyond,
)

STEPS = {  # title, and a chart of its own
    "roles": ("1. Three roles", "roles-queries"),
    "scores": ("2. Scores", "lesson-scores"),
    "position": ("3. Position", "lesson-distance-own"),
    "scaling": ("4. Scaling", "scores-random-without"),
    "mask": ("5. Causal mask", "mask-real-with"),
    "softmax": ("6. Softmax", "softmax-row"),
    "weighted_sum": ("7. Weighted sum", "lesson-shares"),
    "several_heads": ("8. Several heads", "lesson-head-one"),
    "matches": ("9. Does it match?", "lesson-apart"),
}
BARS = "([selector, trace]) => Array.from(document.querySelector(selector)._fullData[trace].y)"
CELLS = "(selector) => Array.from(document.querySelector(selector).calcdata[0][0].z, (row) => Array.from(row))"


def open_step(page: Page, step: str, address: str = "") -> None:
    """Go to a step; it is there, drawn for a dark page, and so is its formula."""
    title, chart = STEPS[step]
    go(page, f"scratch?step={step}&{address}", chart)
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor") == "rgb(14, 17, 23)"
    assert page.evaluate(f"document.querySelector('{plot(chart)}').layout.meta.theme") == "dark"
    expect(page.locator(".katex-display").first).to_be_visible()
    expect(page.locator("[data-testid=stLatex] .katex-error")).to_have_count(0)


def show_answer(page: Page, chart: str = "") -> None:
    page.get_by_role("button", name="Show the answer").click()
    expect(page.get_by_role("button", name="Hide the answer")).to_be_visible()
    if chart:
        page.wait_for_selector(f"{plot(chart)} .main-svg")
    rest(page)


def bars(page: Page, key: str, trace: int = 0) -> np.ndarray:
    return np.array(page.evaluate(BARS, [plot(key), trace]), float)


def cells(page: Page, key: str) -> np.ndarray:
    return np.array(page.evaluate(CELLS, plot(key)), float)


def slider(page: Page, key: str) -> Locator:
    return widget(page, key).get_by_role("slider")


def press_up(page: Page, key: str) -> None:
    widget(page, key).get_by_role("spinbutton").press("ArrowUp")


@pytest.fixture
def phone(dark_tab: Page) -> None:
    """Make the window as narrow as a phone's after the test: the step must fit."""
    yield
    assert width_beyond(dark_tab, 420) <= 0


pytestmark = pytest.mark.usefixtures("phone")


def test_roles_take_random_numbers_of_the_shape_that_is_chosen(dark_tab: Page) -> None:
    open_step(dark_tab, "roles")
    show_answer(dark_tab)
    changes(dark_tab, "roles-queries", lambda: choose(dark_tab, "source", "random numbers"))
    changes(dark_tab, "roles-queries", lambda: press_up(dark_tab, "rows"))
    expect_address(dark_tab, source="random", rows="7")
    unfold(dark_tab, "The code that made these pictures")
    shown = dark_tab.locator(".st-key-code-roles [data-testid=stCode]")
    expect(shown.first).to_contain_text("def ")
    assert all(text.startswith("def ") for text in shown.all_inner_texts())


def test_a_click_on_a_score_takes_that_cell_apart(dark_tab: Page) -> None:
    open_step(dark_tab, "scores")
    place = cell(dark_tab, 9, 6, (11, 11), plot("lesson-scores"))  # drive -> she
    changes(dark_tab, "lesson-products", lambda: dark_tab.mouse.click(**place))
    expect(dark_tab.get_by_text("·drive (9) → ·she (6)").first).to_be_visible()
    expect_address(dark_tab, query="9", key="6")
    pick(dark_tab, "followed-key", "·car (3)")
    expect(dark_tab.get_by_text("·drive (9) → ·car (3)").first).to_be_visible()


def test_position_follows_the_head_and_the_seed(dark_tab: Page) -> None:
    open_step(dark_tab, "position")
    unfold(dark_tab, "The same words, shuffled", "lesson-shuffled")
    changes(dark_tab, "lesson-shuffled", lambda: press_up(dark_tab, "seed"))
    show_answer(dark_tab)
    changes(dark_tab, "lesson-distance-own", lambda: dark_tab.get_by_role("button", name="Take L16 H0").click())
    expect(dark_tab.get_by_text("L16 H0: the score over distance").first).to_be_visible()
    expect_address(dark_tab, layer="16", head="0")


def test_without_the_factor_rows_saturate_more_with_the_width(dark_tab: Page) -> None:
    open_step(dark_tab, "scaling", "width=4")
    unfold(dark_tab, "What that does to weights and gradients", "maxima-random")
    low = bars(dark_tab, "maxima-random", 1)
    changes(dark_tab, "maxima-random", lambda: slider(dark_tab, "width-slider").press("End"))
    high = bars(dark_tab, "maxima-random", 1)
    assert high[-1] / high.sum() > 0.6 > 0.1 > low[-1] / low.sum()
    expect_address(dark_tab, width="1024")
    expect(dark_tab.get_by_text("in theory: √1,024 = 32.00")).to_be_visible()
    changes(dark_tab, "curves-sharp", lambda: choose(dark_tab, "curves", "the number of tokens T"))
    assert len(bars(dark_tab, "curves-sharp")) == 9
    unfold(dark_tab, "And in a trained head?", "maxima-real")
    changes(dark_tab, "maxima-real", lambda: press_plus(dark_tab, "layer"))


def test_another_last_word_and_random_numbers_change_the_masked_picture(dark_tab: Page) -> None:
    open_step(dark_tab, "mask")
    before = cells(dark_tab, "mask-real-with")
    assert np.nanmax(np.abs(before[:-1])) == 0 and np.nanmax(np.abs(before[-1])) > 0.1
    changes(dark_tab, "mask-real-with", lambda: fill(dark_tab, "The last word becomes", "trees"))
    expect(dark_tab.get_by_text("Weights with “trees” minus")).to_be_visible()
    expect_address(dark_tab, swap="trees")
    choose(dark_tab, "source", "random numbers")
    dark_tab.wait_for_selector(f"{plot('mask-change-with')} .main-svg")
    rest(dark_tab)
    show_answer(dark_tab, "mask-change-without")
    changes(dark_tab, "mask-change-without", lambda: fill(dark_tab, "Seed", "5"))
    kept = cells(dark_tab, "mask-change-with")
    assert (kept[:-1] == 0).all() and (kept[-1] != 0).all()


def test_the_temperature_goes_from_argmax_to_equal_shares_and_the_precision_decides(dark_tab: Page) -> None:
    open_step(dark_tab, "softmax")
    rows = []
    for key in ("Home", "End"):
        changes(dark_tab, "softmax-row", lambda key=key: slider(dark_tab, "heat").press(key))
        rows.append(bars(dark_tab, "softmax-row", 1))
    assert rows[0].max() > 0.999
    np.testing.assert_allclose(rows[1], 1 / 11, atol=0.01)
    assert dark_tab.locator(plot("softmax-sums")).count() == 0
    show_answer(dark_tab, "softmax-sums")
    np.testing.assert_allclose(bars(dark_tab, "softmax-sums", 0), 1, atol=1e-5)
    assert np.ptp(bars(dark_tab, "softmax-sums", 1)) > 0.5
    expect_address(dark_tab, heat="100")
    expect(dark_tab.get_by_text("Computed in")).to_have_count(0)
    unfold(dark_tab, "Why computers take the largest score off first")
    expect(dark_tab.get_by_text(re.compile("inf / inf is not a"))).to_be_visible()
    choose(dark_tab, "digits", "float64")
    expect(dark_tab.get_by_text("both ways give the same shares")).to_be_visible()
    choose(dark_tab, "digits", "float16")
    expect(dark_tab.get_by_text(re.compile("In float16 exp overflows above 11.1"))).to_be_visible()
    choose(dark_tab, "overflow", "the followed one")
    expect(dark_tab.get_by_text("both ways give the same shares")).to_be_visible()


def test_weighted_sum_follows_the_query(dark_tab: Page) -> None:
    open_step(dark_tab, "weighted_sum")
    show_answer(dark_tab, "lesson-stack")
    unfold(dark_tab, "How large that is", "lesson-likeness")
    for chart, row in (("lesson-stack", "·she (6)"), ("lesson-likeness", "·car (3)")):
        changes(dark_tab, chart, lambda row=row: pick(dark_tab, "followed-query", row))
    expect(dark_tab.get_by_text("added to the logit of")).to_have_count(0)
    unfold(dark_tab, "And the next word", "lesson-votes")
    expect(dark_tab.get_by_text("added to the logit of").first).to_be_visible()
    pick(dark_tab, "followed-query", "·drive (9)")
    expect(dark_tab.get_by_text("After “·drive” the model finds")).to_be_visible()  # the box stays open


def test_several_heads_follow_their_knobs(dark_tab: Page) -> None:
    open_step(dark_tab, "several_heads")
    changes(dark_tab, "lesson-head-other", lambda: pick(dark_tab, "other-box", "L13 H0"))
    choose(dark_tab, "source", "random numbers")
    expect(dark_tab.get_by_text("Weights of 4 heads").first).to_be_visible()
    rest(dark_tab)
    slider(dark_tab, "heads").press("ArrowRight")
    expect(dark_tab.get_by_text("Weights of 8 heads").first).to_be_visible()
    rest(dark_tab)
    expect_address(dark_tab, heads="8")
    choose(dark_tab, "source", "your text")


def test_matches_follow_the_head(dark_tab: Page) -> None:
    open_step(dark_tab, "matches")
    changes(dark_tab, "lesson-apart", lambda: widget(dark_tab, "head").get_by_role("spinbutton").press("ArrowDown"))
    expect(dark_tab.get_by_text("Weights of L13 H7: NumPy minus PyTorch").first).to_be_visible()


def test_next_leads_to_the_next_step_and_the_text_is_kept_on_the_way_to_explore_and_back(dark_tab: Page) -> None:
    open_step(dark_tab, "roles", "layer=4")
    dark_tab.get_by_role("button", name="Next: Scores").click()
    expect(dark_tab.get_by_role("heading", name="2. Scores")).to_be_visible()
    rest(dark_tab)
    expect_address(dark_tab, step="scores")
    link = dark_tab.get_by_role("link", name="Link to this step").evaluate("(link) => link.href")
    changes(dark_tab, "lesson-scores", lambda: run_text(dark_tab, "The cat sat on the mat"))
    dark_tab.get_by_role("link", name="Explore").click()
    expect(dark_tab.get_by_role("heading", name="L4 H8: who looks at whom")).to_be_visible()
    rest(dark_tab)
    dark_tab.get_by_role("link", name="From scratch").click()
    expect(dark_tab.get_by_role("heading", name="2. Scores")).to_be_visible()
    rest(dark_tab)
    expect(dark_tab.get_by_label("Your text")).to_have_value("The cat sat on the mat")
    expect_address(dark_tab, step="scores", text="The cat sat on the mat", layer="4")
    go(dark_tab, "scratch?step=matches")
    go(dark_tab, link.rsplit("/", 1)[-1], "lesson-scores")
    expect(dark_tab.get_by_role("heading", name="2. Scores")).to_be_visible()
