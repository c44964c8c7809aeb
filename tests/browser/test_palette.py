"""The visitor's colour scale of weights: one choice for the map, all thumbnails and the sentence."""

import re

import numpy as np
from playwright.sync_api import Page, expect

from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.palettes import palette_of
from tests.browser.app_page import MAP, go, reach, rest

COLOURS = """(canvas) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Set();
  for (let i = 0; i < data.length; i += 4) found.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
  return [...found];
}"""
SCALE = f"document.querySelector('{MAP}').data[0].colorscale.map(([, colour]) => colour)"


def css(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(round(255 * part) for part in hex_to_rgb([colour])[0]))


def test_one_choice_colours_the_map_the_thumbnails_and_the_sentence(tab: Page) -> None:
    go(tab, "?query=10&key=3")
    box = reach(tab, "palette").get_by_role("combobox")
    box.click()
    box.fill("viridis")
    tab.get_by_role("option", name=re.compile("viridis")).click()
    look = palette_of("viridis", "light")
    tab.wait_for_function(f"{SCALE}.at(-1) === '{look.weight[-1]}'")
    rest(tab)
    assert tab.evaluate(SCALE) == list(look.weight)
    expect(tab).to_have_url(re.compile("palette=viridis"))
    ramp = tab.locator(".strip .ramp").evaluate("(box) => getComputedStyle(box).backgroundImage")
    assert css(look.weight[0]) in ramp and css(look.weight[-1]) in ramp
    overview = tab.locator(".overview")
    seen = overview.locator("canvas").evaluate(COLOURS)
    pixels = np.array([[int(part) for part in colour.split()] for colour in seen])
    for colour in (look.weight[0], look.weight[-1]):
        assert np.abs(pixels - 255 * hex_to_rgb([colour])).max(axis=1).min() <= 2
    assert overview.locator(".outline").evaluate("(box) => getComputedStyle(box).outlineColor") == css(look.mark)
