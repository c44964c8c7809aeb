"""What the cells of the large map show, in a browser."""

import numpy as np
from playwright.sync_api import Page, expect

from attnviz.core.text.words import word_items
from tests.browser.app_page import MAP, cell, labels, numbers, open_app, widget

PATIENCE = 60_000  # milliseconds: the first page loads the model
TEXT = "Unbelievably the antidisestablishmentarian broke down"


def test_words_are_picked_by_a_click_and_a_link_shows_them_again(page: Page, app_url: str, smollm2) -> None:
    items = word_items(smollm2.trace(TEXT).tokens)
    open_app(page, f"{app_url}/?text={TEXT.replace(' ', '+')}&shows=words")
    expect(page.locator(f"{MAP} .xtitle")).to_have_text("key: the word it looks at", timeout=PATIENCE)
    assert labels(page, "x")[-1] == "down" and np.shape(numbers(page)) == (5, 5)
    place = cell(page, 4, 0, (5, 5))
    page.mouse.click(place["x"], place["y"])
    last = items[0].tokens[-1]
    expect(widget(page, "query").get_by_role("combobox")).to_have_value(f"·down ({items[-1].tokens[-1]})")
    expect(widget(page, "key").get_by_role("combobox")).to_have_value(
        f"{smollm2.trace(TEXT).tokens[last].label} ({last})"
    )
    assert "shows=words" in page.url
