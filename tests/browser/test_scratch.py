"""The page "From scratch" in a browser: six of its steps from their own links, light and dark, and their controls."""

from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.app_page import assert_no_error_box, choose, rest, run_text, widget
from tests.browser.test_scratch_steps import changes, plot, unfold

STEPS = {  # title, and a chart of its own
    "roles": ("1. Three roles", "roles-queries"),
    "scores": ("2. Scores", "lesson-scores"),
    "position": ("3. Position", "lesson-distance-own"),
    "weighted_sum": ("7. Weighted sum", "lesson-shares"),
    "several_heads": ("8. Several heads", "lesson-head-one"),
    "matches": ("9. Does it match?", "lesson-apart"),
}
PAGES = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}
Open = Callable[..., Page]


@pytest.fixture
def open_step(contexts: dict[str, BrowserContext], app_url: str) -> Iterator[Open]:
    """Return a function that opens a step from its link; fail if a page breaks or asks another host."""
    pages: list[Page] = []
    faults: list[str] = []

    def look_at(url: str) -> None:
        if not url.startswith(("data:", "blob:")) and urlparse(url).hostname != "127.0.0.1":
            faults.append(url)

    def visit(step: str, address: str = "", scheme: str = "light", width: int = 1400) -> Page:
        page = contexts[scheme].new_page()
        page.set_viewport_size({"width": width, "height": 1000})
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: look_at(request.url))
        page.goto(f"{app_url}/scratch?step={step}&{address}")
        page.wait_for_selector(f"{plot(STEPS[step][1])} .main-svg")
        rest(page)
        pages.append(page)
        return page

    yield visit
    for page in pages:
        assert_no_error_box(page)
    assert faults == []


def pick(page: Page, key: str, option: str) -> None:
    """Choose an entry of a drop-down list."""
    box = widget(page, key).get_by_role("combobox")
    box.scroll_into_view_if_needed()
    rest(page)  # a list that opens while the page still scrolls closes again
    box.click()
    page.get_by_role("option", name=option).first.click()


def looks_as_the_page(page: Page, step: str, scheme: str) -> None:
    """Check that a step is there, and drawn in the page's colours."""
    expect(page.get_by_role("heading", name=STEPS[step][0])).to_be_visible()
    page.wait_for_selector(f"{plot(STEPS[step][1])} .main-svg")
    assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor") == PAGES[scheme]
    assert page.evaluate(f"document.querySelector('{plot(STEPS[step][1])}').layout.meta.theme") == scheme


@pytest.mark.parametrize("step", STEPS)
def test_a_step_opens_from_its_link(open_step: Open, step: str) -> None:
    page = open_step(step)
    looks_as_the_page(page, step, "light")
    page.get_by_role("button", name="Show the answer").click()
    expect(page.get_by_role("button", name="Hide the answer")).to_be_visible()
    page.get_by_text("The code that made these pictures").click()
    expect(page.locator("[data-testid=stCode]").first).to_contain_text("def ")


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1400), ("light", 420)])
def test_steps_are_dark_on_a_dark_page_and_fit_a_phone(open_step: Open, scheme: str, width: int) -> None:
    page = open_step("roles", scheme=scheme, width=width)
    for step, (title, _) in STEPS.items():
        choose(page, "step", title.replace(".", "", 1))
        looks_as_the_page(page, step, scheme)
        rest(page)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width


def test_roles_take_random_numbers_of_the_shape_that_is_chosen(open_step: Open) -> None:
    page = open_step("roles")
    changes(page, "roles-queries", lambda: choose(page, "source", "random numbers"))
    changes(page, "roles-queries", lambda: widget(page, "rows").get_by_role("spinbutton").press("ArrowUp"))
    changes(page, "roles-queries", lambda: widget(page, "seed").get_by_role("spinbutton").press("ArrowUp"))
    assert {"source=random", "rows=7", "seed=1"} <= set(urlparse(page.url).query.split("&"))


def test_a_click_on_a_score_takes_that_cell_apart(open_step: Open) -> None:
    page = open_step("scores")
    area = page.locator(f"{plot('lesson-scores')} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    x, y = (box["x"] + box["width"] * 6.5 / 11, box["y"] + box["height"] * 9.5 / 11)  # drive -> she
    changes(page, "lesson-products", lambda: page.mouse.click(x, y))
    expect(page.get_by_text("·drive (9) → ·she (6)").first).to_be_visible()
    assert "query=9&key=6" in page.url
    pick(page, "followed-key", "·car (3)")
    rest(page)
    expect(page.get_by_text("·drive (9) → ·car (3)").first).to_be_visible()


def test_position_follows_the_head_and_the_seed(open_step: Open) -> None:
    page = open_step("position")
    unfold(page, "The same words, shuffled", "lesson-shuffled")
    changes(page, "lesson-shuffled", lambda: widget(page, "seed").get_by_role("spinbutton").press("ArrowUp"))
    page.get_by_role("button", name="Show the answer").click()
    changes(page, "lesson-distance-own", lambda: page.get_by_role("button", name="Take L16 H0").click())
    expect(page.get_by_text("L16 H0: the score over distance").first).to_be_visible()
    assert "layer=16&head=0" in page.url


def test_weighted_sum_follows_the_query(open_step: Open) -> None:
    page = open_step("weighted_sum")
    page.get_by_role("button", name="Show the answer").click()
    page.wait_for_selector(f"{plot('lesson-stack')} .main-svg")
    unfold(page, "How large that is", "lesson-likeness")
    for chart in ("lesson-stack", "lesson-likeness"):
        row = "·she (6)" if chart == "lesson-stack" else "·car (3)"
        changes(page, chart, lambda row=row: pick(page, "followed-query", row))
    expect(page.get_by_text("added to the logit of")).to_have_count(0)
    unfold(page, "And the next word", "lesson-votes")
    expect(page.get_by_text("added to the logit of").first).to_be_visible()
    pick(page, "followed-query", "·drive (9)")
    expect(page.get_by_text("After “·drive” the model finds")).to_be_visible()  # the box stays open


def test_several_heads_follow_their_knobs(open_step: Open) -> None:
    page = open_step("several_heads")
    changes(page, "lesson-head-other", lambda: pick(page, "other-box", "L13 H0"))
    choose(page, "source", "random numbers")
    expect(page.get_by_text("Weights of 4 heads").first).to_be_visible()
    widget(page, "heads").get_by_role("slider").press("ArrowRight")
    expect(page.get_by_text("Weights of 8 heads").first).to_be_visible()
    rest(page)
    assert "heads=8" in page.url


def test_matches_follow_the_head(open_step: Open) -> None:
    page = open_step("matches")
    changes(page, "lesson-apart", lambda: widget(page, "head").get_by_role("spinbutton").press("ArrowDown"))
    expect(page.get_by_text("Weights of L13 H7: NumPy minus PyTorch").first).to_be_visible()


def test_the_text_is_kept_on_the_way_to_explore_and_back(open_step: Open) -> None:
    page = open_step("scores", "layer=4")
    changes(page, "lesson-scores", lambda: run_text(page, "The cat sat on the mat"))
    page.get_by_role("link", name="Explore").click()
    expect(page.get_by_role("heading", name="L4 H8: who looks at whom")).to_be_visible()
    rest(page)
    page.get_by_role("link", name="From scratch").click()
    expect(page.get_by_role("heading", name="2. Scores")).to_be_visible()
    rest(page)
    expect(page.get_by_label("Your text")).to_have_value("The cat sat on the mat")
    assert "step=scores" in page.url and "text=The+cat" in page.url and "layer=4" in page.url


def test_next_leads_to_the_next_step_and_the_address_follows(open_step: Open) -> None:
    page = open_step("roles")
    page.get_by_role("button", name="Next: Scores").click()
    expect(page.get_by_role("heading", name="2. Scores")).to_be_visible()
    rest(page)
    assert "step=scores" in page.url
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Link to this step").click()
    expect(popup.value.get_by_role("heading", name="2. Scores")).to_be_visible()
