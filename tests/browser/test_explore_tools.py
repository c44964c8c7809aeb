"""The lines of a layer's heads in a real browser: pointer, keyboard, pills, and what they put into the address."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from attnviz.app.shell.fields import LANDING
from attnviz.core.heads.strong_lines import LEAST, shares_left_out
from tests.browser.app_page import assert_no_error_box, open_app, rest, watched

INK = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let place = 3; place < data.length; place += 4) sum += data[place];
  return sum;
}"""  # of all that is drawn, faint or not


@pytest.fixture
def lines(context: BrowserContext, app_url: str) -> Iterator[Locator]:
    """Open the tool on the landing text and give its component; fail if the tab wrote an error."""
    with watched(context):
        page = context.new_page()
        open_app(page, f"{app_url}/?tool=lines")
        found = page.locator(".head-lines")
        found.scroll_into_view_if_needed()
        yield found


def ink(lines: Locator) -> int:
    return lines.locator("canvas").evaluate(INK)


def test_pointing_shows_one_token_s_lines_and_their_weights(lines: Locator, smollm2: Any) -> None:
    weights = smollm2.trace(LANDING).layer_weights(13)
    everything = ink(lines)
    lines.locator(".queries .token").nth(10).hover()
    expect(lines.locator(".line")).to_contain_text("it (token 10) looks at")
    car = lines.locator(".keys .token").nth(3)
    strongest = sorted((-weights[head, 10, 3], head) for head in range(9) if weights[head, 10, 3] >= LEAST)
    assert strongest[0][1] == 8
    expect(car.locator(".chip")).to_have_text([f"H{head} {-minus:.2f}" for minus, head in strongest[:4]])
    assert 0 < ink(lines) < 0.7 * everything  # the others are faint
    lines.locator(".keys .token").nth(3).hover()
    expect(lines.locator(".line")).to_contain_text("car (token 3) is looked at by H8 it 0.81")
    expect(lines.locator(".queries .token").nth(10).locator(".chip").first).to_have_text("H8 0.81")


def test_the_keyboard_walks_both_columns_and_pins(lines: Locator) -> None:
    first = lines.locator(".queries .token").first
    first.focus()
    for press in ("End", "ArrowRight", "Home"):
        first.page.keyboard.press(press)
    expect(lines.locator(".keys .token").first).to_be_focused()
    expect(lines.locator(".line")).to_contain_text("Mary (token 0) is looked at by")
    first.page.keyboard.press("ArrowLeft")
    first.page.keyboard.press("End")
    spoken = lines.locator(".queries .token").nth(10)
    expect(spoken).to_be_focused()
    assert spoken.get_attribute("aria-label").startswith("it, token 10, looks at: H4 drive 0.85; H8 car 0.81")
    first.page.keyboard.press("Enter")
    expect(spoken).to_have_attribute("aria-pressed", "true")
    lines.locator(".queries .token").nth(2).hover()
    expect(lines.locator(".line")).to_contain_text("(pinned)")
    first.page.keyboard.press("Escape")
    expect(lines.locator(".line")).to_contain_text("a (token 2)")


def test_pills_hide_heads_and_the_first_token_s_lines(lines: Locator, smollm2: Any) -> None:
    page, everything = lines.page, ink(lines)
    thin, sink = shares_left_out(smollm2.trace(LANDING).layer_weights(13))
    left_out = lines.locator(".left-out")
    expect(left_out).to_contain_text(f"Lines below 0.05 aren't drawn: {100 * thin.mean():.0f} % of the weight")
    pill = lines.get_by_role("button", name="First token's lines")
    expect(pill).to_contain_text(f"({100 * sink.mean():.0f} % of the weight)")
    pill.click()
    expect(pill).to_have_attribute("aria-pressed", "false")
    expect(left_out).to_contain_text(f"The first token's lines: {100 * sink.mean():.0f} % more")
    fewer = ink(lines)
    assert fewer < 0.8 * everything
    lines.get_by_role("button", name="Head 4").click()
    page.wait_for_url("**/?tool=lines&lines_heads=0_1_2_3_5_6_7_8")
    assert ink(lines) < fewer
    lines.get_by_role("button", name="Only H8").click()
    page.wait_for_url("**/?tool=lines&lines_heads=8")
    expect(left_out).to_contain_text(f"{100 * thin[8]:.0f} % of the weight of the heads shown")
    rest(page)
    lines.get_by_role("button", name="All heads").click()
    page.wait_for_url("**/?tool=lines")
    assert_no_error_box(page)
