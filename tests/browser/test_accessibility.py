"""What keeps people out: axe-core on every page in both themes, the keyboard's way through Explore, the helps."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from attnviz.app.guide.tour import stops
from attnviz.figures import head_map, talk_html
from tests.browser.app_page import (
    address_of,
    choose,
    chosen,
    expect_head,
    go,
    open_app,
    press,
    reach,
    rest,
    until,
    widget,
    width_beyond,
)

ADDRESSES = (
    "?query=10&key=3&histogram=all",
    "?measure=entropy&order=measure&strip=lines&off=16.0&acts=pass",
    "scratch?step=scores",
    "pronouns",
    "generate?written=3",
    "cost?cost_part=flash",
    "talk",
)
SEEN = ("[data-testid=stSidebar]", ".st-key-overview", ".st-key-head-map")  # what Explore shows with every tool
# Rule of axe-core, the elements it may complain about, and why nothing here can mend it.
ALLOWED = (
    (
        "color-contrast",
        "label[data-testid=stWidgetLabel][disabled] p",
        "Streamlit's label of a disabled widget; WCAG asks for no contrast there, but axe sees only that the input is "
        "disabled, and Streamlit ties its label to it by a name alone",
    ),
    (
        "scrollable-region-focusable",
        "[data-testid=stMarkdownContainer] .katex-display",
        "Streamlit's box of a formula, which scrolls where the page is narrow; Chromium and Firefox let the keyboard "
        "into it without a tabindex",
    ),
)
# Walks into the shadow roots of components, where the focus really is, and returns what it finds there.
FOCUS = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const style = getComputedStyle(element);
  const inner = element.firstElementChild ? getComputedStyle(element.firstElementChild) : style;
  const solid = (look) => look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2
    && !/^rgba\\(.*, 0\\)$/.test(look.outlineColor);
  const near = element.getRootNode().host ?? element;
  return {
    key: (near.closest("[class*=st-key-]")?.className.match(/st-key-([\\w-]+)/) ?? [])[1] ?? "",
    classes: element.className,
    ours: element.getRootNode() instanceof ShadowRoot,
    ring: solid(style) || solid(inner) || style.boxShadow !== "none",
  };
}"""


def faults(page: Page, *, without: tuple[str, ...] = ()) -> list[str]:
    """Return what axe-core finds that is serious or critical and isn't allowed.

    Args:
        page: where it looks.
        without: what it leaves out.
    """
    context = {"exclude": list(without)} if without else None
    violations = Axe().run(page, context=context, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{page.url}: {rule['id']} at {node['target']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for rule in violations
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        if not _is_allowed(page, rule["id"], node["target"])
    ]


def _is_allowed(page: Page, rule: str, target: list) -> bool:
    if len(target) != 1 or not isinstance(target[0], str):  # in a frame or a component of ours
        return False
    element = page.locator(target[0]).first
    return any(rule == name and element.evaluate("(e, s) => e.matches(s)", where) for name, where, _ in ALLOWED)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_keeps_anybody_out_and_each_fits_a_phone(tab: Page, dark_tab: Page, address: str) -> None:
    go(tab, address)
    assert faults(tab) == []
    assert width_beyond(tab, 420) <= 0
    go(dark_tab, address)
    assert faults(dark_tab) == []


def test_no_tool_of_explore_keeps_anybody_out(tab: Page, dark_tab: Page) -> None:
    for page in (tab, dark_tab):
        go(page, "?tool=compare", "compare-a")
        for tool in ("Compare", "Find heads", "Heads as lines", "What it writes"):
            if chosen(page, "tool") != tool:
                choose(page, "tool", tool)
                until(page, lambda page=page: address_of(page).get("tool") != "compare", True)
                rest(page)
            assert chosen(page, "tool") == tool
            assert faults(page, without=SEEN) == []


def test_neither_tour_nor_glossary_keeps_anybody_out(tab: Page, dark_tab: Page) -> None:
    for page in (tab, dark_tab):
        go(page, "talk")
        press(page, "tour-start")
        expect(widget(page, "tour")).to_be_visible()
        rest(page)
        assert faults(page) == []
        page.get_by_role("button", name="Glossary").click()
        expect(page.get_by_role("dialog")).to_contain_text("Softmax")
        rest(page)
        assert faults(page) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        widget(page, "tour").get_by_role("button", name="End").click()
        expect(widget(page, "tour")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_talk_keeps_nobody_out(browser: Browser, theme: str) -> None:
    page = browser.new_page(color_scheme=theme)
    figure = head_map([[1.0, 0.0], [0.3, 0.7]], ["a", "b"], ["a", "b"], allowed=[[True, False], [True, True]])
    scene = {"title": "One", "caption": "Look.", "question": "", "notes": "Say so.", "minutes": 1, "text": "a b"}
    scene |= {"alt": figure.layout.meta["alt"], "pictures": [figure.to_json()]}
    page.set_content(talk_html("A talk", [scene], theme=theme))
    page.wait_for_function("document.body.dataset.ready === 'true'")
    assert faults(page) == []
    page.close()


def test_the_check_finds_faults_and_allows_no_more_than_it_says(tab: Page) -> None:
    go(tab, "talk")
    tab.evaluate(
        """() => {
          const box = document.createElement("div");
          box.id = "faulty";
          box.style = "position: fixed; top: 0; left: 0; z-index: 9999999; background: #fff";
          box.innerHTML = '<img src="data:,"><p style="color: #bbb">pale</p>';
          document.body.append(box);
        }"""
    )
    assert {fault.split(": ")[1].split(" at ")[0] for fault in faults(tab)} == {"image-alt", "color-contrast"}
    tab.evaluate("document.querySelector('#faulty').remove()")


def walk(page: Page, most: int, until: Callable[[dict], bool]) -> list[dict]:
    """Press Tab until the focus is where it should go, and return all its places."""
    places = []
    for _ in range(most):
        page.keyboard.press("Tab")
        places.append(page.evaluate(FOCUS))
        if until(places[-1]):
            return places
    raise AssertionError(f"{most} times Tab led to {[place['key'] for place in places]}")


def test_tab_goes_through_explore_in_order_and_arrow_keys_choose_a_head(tab: Page) -> None:
    go(tab, "?query=10&key=3&layer=4&head=2")
    tab.get_by_label("Your text").focus()
    places = walk(tab, 120, lambda place: "token" in place["classes"] and place["ours"])
    keys = [place["key"] for place in places]
    order = ["examples-box", "mask", "layer", "head", "cells-box", "overview", "query", "key", "strip"]
    seen = [next((i for i, key in enumerate(keys) if key.startswith(name)), None) for name in order]
    assert None not in seen, list(zip(order, seen, strict=True))
    assert seen == sorted(seen), list(zip(order, seen, strict=True))
    ours = [place for place in places if place["ours"]]
    assert len(ours) >= 3  # the picture of all heads, the direction of the strip, a token of it
    assert [place for place in ours if not place["ring"]] == []
    widget(tab, "compare-box").locator("summary").focus()
    walk(tab, 12, lambda place: place["classes"] == "scroller")
    assert tab.evaluate(FOCUS)["ring"]
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    expect_head(tab, "L5 H3")
    assert tab.evaluate(FOCUS)["classes"] == "scroller"  # the focus stays where it was


def test_the_glossary_is_reached_searched_and_left_by_keys(tab: Page) -> None:
    go(tab, "talk")
    button = tab.get_by_role("button", name="Glossary")
    button.focus()
    tab.keyboard.press("Enter")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Search").focus()
    tab.keyboard.type("causal mask")
    expect(dialog).to_contain_text("Rules out every key")
    expect(dialog).not_to_contain_text("Rotary positions")
    link = dialog.get_by_role("link", name="step 5")
    link.focus()
    expect(link).to_be_focused()
    assert link.evaluate("(link) => link.href").endswith("scratch?step=mask")
    tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_each_stop_of_the_tour_shows_what_it_speaks_of(tab: Page) -> None:
    go(tab, "")
    press(tab, "tour-start")
    for stop in stops():
        panel = widget(tab, "tour")
        expect(panel).to_contain_text(stop.title)
        target = widget(tab, stop.target)
        expect(target).to_be_in_viewport()
        rest(tab)
        expect(target).to_be_in_viewport()
        assert panel.bounding_box()["y"] >= 0 and panel.bounding_box()["height"] < 200
        if stop != stops()[-1]:
            panel.get_by_role("button", name="Next", exact=True).click()
    panel.get_by_role("button", name="End").click()
    expect(panel).to_have_count(0)


def test_a_first_visit_is_offered_the_tour_and_who_declined_is_not_asked_again(
    context: BrowserContext, app_url: str
) -> None:
    first = context.new_page()
    open_app(first, app_url)
    expect(widget(first, "tour-offer")).to_be_visible()
    assert faults(first) == []
    first.get_by_role("button", name="No, thanks").click()
    expect(widget(first, "tour-offer")).to_have_count(0)
    rest(first)
    again = context.new_page()
    open_app(again, app_url)
    expect(reach(again, "tour-start")).to_be_visible()
    expect(widget(again, "tour-offer")).to_be_hidden()
