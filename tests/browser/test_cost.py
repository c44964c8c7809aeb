"""The page Cost in a browser: each part opens from its link, its controls act, and a measurement can be stopped."""

import re

from playwright.sync_api import Page, expect

from tests.browser.app_page import choose, expect_address, go, pick, plot, rest, unfold, widget, width_beyond

FIRST = {"grows": "cost-curves", "matrix": "matrix-curves", "flash": "flash-grid"}
TITLES = {"grows": "1. What grows how", "matrix": "2. The score matrix", "flash": "3. FlashAttention, step by step"}
CELLS = "(selector) => Array.from(document.querySelector(selector).calcdata[0][0].z, (row) => Array.from(row))"
SMALL = "cost?model=untrained&layer=0&head=0"


def open_part(page: Page, part: str) -> None:
    """Go to a part; it is there with its formula."""
    go(page, f"{SMALL}&cost_part={part}", FIRST[part])
    expect(page.get_by_role("heading", name=TITLES[part])).to_be_visible()
    expect(page.locator(".katex-display").first).to_be_visible()
    expect(page.locator("[data-testid=stLatex] .katex-error")).to_have_count(0)


def test_the_score_matrix_opens_with_answer_and_code_and_fits_a_phone(tab: Page) -> None:
    open_part(tab, "matrix")
    tab.get_by_role("button", name="Show the answer").click()
    expect(tab.get_by_role("button", name="Hide the answer")).to_be_visible()
    unfold(tab, "The code that made these pictures")
    expect(tab.locator(".st-key-code-matrix [data-testid=stCode]").first).to_contain_text("def ")
    assert width_beyond(tab, 420) <= 0


def test_sizes_move_the_meeting_point_and_the_link_keeps_them(tab: Page) -> None:
    open_part(tab, "grows")
    expect(tab.get_by_role("heading", name=re.compile("From s = 24,576 on"))).to_be_visible()
    widget(tab, "cost_d").get_by_role("slider").press("ArrowRight")
    expect(tab.get_by_role("heading", name=re.compile("From s = 30,720 on"))).to_be_visible()
    rest(tab)
    tab.get_by_text("with the MLP", exact=True).click()
    expect(tab.get_by_role("heading", name=re.compile("From s = 10,240 on"))).to_be_visible()
    rest(tab)
    expect_address(tab, cost_d="5120", cost_mlp="off")
    link = tab.url
    go(tab, f"{SMALL}&cost_part=grows", FIRST["grows"])
    pick(tab, "cost_model", "SmolLM2-135M")
    expect(tab.get_by_role("heading", name=re.compile(r"From s = 3,072 on \(5.33 d\)"))).to_be_visible()
    expect(widget(tab, "cost_d").get_by_role("slider")).to_have_attribute("aria-valuetext", "576")
    rest(tab)
    go(tab, link.rsplit("/", 1)[-1], FIRST["grows"])
    expect(tab.get_by_role("heading", name=re.compile("From s = 10,240 on"))).to_be_visible()
    assert width_beyond(tab, 420) <= 0


def test_the_film_goes_on_and_back(tab: Page) -> None:
    go(tab, "cost?cost_part=flash&cost_block=4&cost_at=0", FIRST["flash"])
    expect(tab.get_by_role("heading", name=TITLES["flash"])).to_be_visible()
    assert tab.evaluate(CELLS, plot("flash-grid")) == [[3, 2, 2], [0, 0, 2], [0, 0, 0]]
    for step in (2, 3, 4, 5):
        tab.get_by_role("button", name="Next block").click()
        expect(tab.get_by_text(f"Block {step} of 9", exact=True)).to_be_visible()
    rest(tab)
    assert tab.evaluate(CELLS, plot("flash-grid")) == [[1, 2, 2], [1, 3, 2], [0, 0, 0]]
    expect_address(tab, cost_at="4")
    tab.get_by_role("button", name="Back", exact=True).click()
    expect(tab.get_by_text("Block 4 of 9", exact=True)).to_be_visible()
    tab.get_by_role("button", name="To the end").click()
    expect(tab.get_by_text("This row is finished.")).to_be_visible()
    rest(tab)
    assert tab.evaluate(CELLS, plot("flash-grid")) == [[1, 2, 2], [1, 1, 2], [1, 1, 3]]
    assert width_beyond(tab, 420) <= 0


def test_stop_stops_and_a_second_visitor_waits(tab: Page, other_tab: Page) -> None:
    for page in (tab, other_tab):
        go(page, f"{SMALL}&cost_part=measured")
    tab.get_by_role("button", name="Measure on this machine").click()
    expect(tab.get_by_text(re.compile(r"[1-9]\d* of 30 measured"))).to_be_visible()
    other_tab.get_by_role("button", name="Measure on this machine").click()
    expect(other_tab.get_by_text("Another visitor is measuring")).to_be_visible()
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_text("Stopped. What was measured until then is shown.")).to_be_visible()
    expect(tab.get_by_role("button", name="Measure again")).to_be_visible()
    expect(other_tab.get_by_text(re.compile(r"of 30 measured"))).to_be_visible()
    choose(other_tab, "cost_part", "1 What grows how")  # leaving the part breaks nothing
    other_tab.wait_for_selector(f"{plot('cost-curves')} .main-svg")
    choose(other_tab, "cost_part", "4 Measured here")
    other_tab.get_by_role("button", name="Stop").click()
    expect(other_tab.get_by_role("button", name=re.compile("^Measure"))).to_be_visible()
    for page in (tab, other_tab):
        rest(page)
