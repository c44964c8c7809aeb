"""Figures drawn in a browser: what is printed on ticks, in titles and under the pointer."""

import json
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page
from plotly.offline import get_plotlyjs

from attnviz.figures import head_map, overview, row_bars
from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import THEMES, on_page
from tests.figures.made_up import causal_map, labels, thumbnails

WORDS = ["<s>", "<b>x</b>", "$x$", "·the", "·cat", "·the"]
TITLE = "<b>L1</b> & $x$"
WIDTHS = [1400, 420]
TOLD = "Boolean(document.querySelector('.hoverlayer')?.textContent)"
HOVERED = """() => new Promise((resolve) => {
  const text = () => document.querySelector(".hoverlayer")?.textContent;
  const look = (last, times) => (times > 3 ? resolve(last)
    : setTimeout(() => look(text(), text() && text() === last ? times + 1 : 0), 40));
  look("", 0);
})"""  # the chart waits 50 ms between two answers to the pointer
DRAW = """async ({ data, layout }) => {
  if (document.body.firstChild) Plotly.purge(document.body.firstChild);
  const chart = document.createElement("div");
  chart.style = "width: 100%; height: 100%";
  document.body.replaceChildren(chart);
  await Plotly.newPlot(chart, data, layout, { displayModeBar: false, responsive: true });
}"""


@pytest.fixture(scope="module")
def sheet(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Return an empty page with the chart library, which figures are drawn on one after another."""
    context = browser.new_context()
    page = context.new_page()
    file = tmp_path_factory.mktemp("sheet") / "sheet.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{get_plotlyjs()}</script>", encoding="utf-8")
    page.goto(file.as_uri())
    yield page
    context.close()


@pytest.fixture
def page(sheet: Page) -> Iterator[Page]:
    """Return that page; fail if it complained or asked anybody for anything."""
    complaints: list[str] = []
    listeners = {
        "console": lambda message: complaints.append(message.text) if message.type != "log" else None,
        "pageerror": lambda error: complaints.append(str(error)),
        "request": lambda request: complaints.append(request.url) if request.url.startswith("http") else None,
    }
    for event, listener in listeners.items():
        sheet.on(event, listener)
    yield sheet
    for event, listener in listeners.items():
        sheet.remove_listener(event, listener)
    assert complaints == []


def show(page: Page, figure: go.Figure, width: int = 1000) -> None:
    """Draw a figure as wide as the window."""
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": width, "height": int(figure.layout.height) + 20})
    page.evaluate(DRAW, json.loads(on_page(figure).to_json()))


def hover(page: Page, row: float, column: float, shape: tuple[int, int]) -> str:
    """Move the pointer to the middle of a cell, and return what appears."""
    x, y = place_of(page, row, column, shape)
    page.mouse.move(x, y, steps=2)
    return page.evaluate(HOVERED)


def assert_silent(page: Page, row: int, column: int, shape: tuple[int, int]) -> None:
    """Move the pointer to the middle of a cell, and check that nothing appears."""
    x, y = place_of(page, row, column, shape)
    page.mouse.move(x, y, steps=2)
    page.wait_for_timeout(250)  # plotly waits between two hover events
    assert not page.evaluate(TOLD)


def place_of(page: Page, row: float, column: float, shape: tuple[int, int]) -> tuple[float, float]:
    """Return the middle of a cell, in px of the window, when nothing is told about another any more."""
    area = page.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(area["x"] - 3, area["y"] - 3)
    page.wait_for_function(f"!({TOLD})", polling=20)
    x = area["x"] + area["width"] * (column + 0.5) / shape[1]
    return x, area["y"] + area["height"] * (row + 0.5) / shape[0]


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def boxes(page: Page, selector: str) -> np.ndarray:
    """Return left, top, right and bottom of each element, in px of the page."""
    script = "all => all.map(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] })"
    return np.array(page.locator(selector).evaluate_all(script))


def screen(page: Page) -> np.ndarray:
    """Return what is on the screen, (height, width, 3) from 0 to 255."""
    return np.array(Image.open(BytesIO(page.screenshot())).convert("RGB"))


@pytest.fixture
def small_map() -> go.Figure:
    weights, allowed, _ = causal_map(6)
    return head_map(weights, WORDS, WORDS, allowed=allowed, title=TITLE, scale="sqrt", forbidden=[(5, 1)])


def test_every_character_is_printed_as_it_is(page: Page, small_map: go.Figure):
    show(page, small_map)
    assert texts(page, ".xtick text") == WORDS
    assert sorted(texts(page, ".ytick text")) == sorted(WORDS)
    assert texts(page, ".gtitle") == [TITLE]
    assert texts(page, ".xtitle") == ["key: the token it looks at"]
    assert texts(page, ".ytitle") == ["query: the token that looks"]
    assert page.locator(".main-svg a, .main-svg [style*='line-through'], .MathJax").count() == 0


def test_hover_names_both_tokens_their_indices_and_the_true_weight(page: Page, small_map: go.Figure):
    weights, _, _ = causal_map(6)
    show(page, small_map)
    for row, column in [(2, 1), (5, 0), (5, 3), (5, 5)]:
        seen = hover(page, row, column, (6, 6))
        name, value = seen.rsplit(": ", 1)
        assert name == f"{WORDS[row]} ({row}) → {WORDS[column]} ({column})"
        assert float(value) == pytest.approx(weights[row, column], rel=0.005)


LONG = ["a", "=" * 64, "b", "=" * 32, "<br>%{x}" + "x" * 20]


@pytest.mark.parametrize(("scale", "start"), [("linear", 0), ("without_first", 0), ("linear", 30)])
def test_hover_names_tokens_in_full_that_the_axes_shorten(page: Page, scale: str, start: int):
    weights, allowed, _ = causal_map(5)
    figure = head_map(weights, LONG, LONG, allowed=allowed, scale=scale, query_start=start, key_start=start)
    show(page, figure)
    for row, column in zip(*np.nonzero(allowed), strict=True):
        name, value = hover(page, row, column, (5, 5)).rsplit(": ", 1)
        assert name == f"{LONG[row]} ({row + start}) → {LONG[column]} ({column + start})"
        assert float(value) == pytest.approx(weights[row, column], rel=0.005, abs=1e-9)
    assert_silent(page, 1, 3, (5, 5))  # forbidden
    assert len({text for text in texts(page, ".ytick text") if "=" in text}) == 1  # they read alike on the axis


def test_bars_name_tokens_in_full_under_the_pointer(page: Page):
    figure = row_bars([0.1, 0.4, 0.1, 0.3, 0.1], LONG, query_label=LONG[3])
    show(page, figure)
    for place, value in ((1, 0.4), (3, 0.3)):
        assert f"{LONG[place]} ({place}): {value}" in hover(page, 0.5 - value / 2, place, (1, 5))


def test_masked_cells_say_nothing_and_are_grey(page: Page, small_map: go.Figure):
    show(page, small_map)
    assert_silent(page, 0, 4, (6, 6))
    assert hover(page, 5, 4, (6, 6)) != ""  # the pointer does reach the map


def test_the_hatched_column_still_tells_its_weight(page: Page):
    weights, allowed, _ = causal_map(6)
    show(page, head_map(weights, WORDS, WORDS, allowed=allowed, scale="without_first"))
    assert float(hover(page, 4, 0, (6, 6)).rsplit(": ", 1)[1]) == pytest.approx(weights[4, 0], rel=0.005)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [13, 60, 200])
def test_labels_never_touch_and_cells_are_square(page: Page, n: int, width: int):
    weights, allowed, _ = causal_map(n)
    figure = head_map(weights, labels(n), labels(n), allowed=allowed, title="L13 H8", scale="without_first")
    show(page, figure, width)
    area = page.locator(".nsewdrag").first.bounding_box()
    assert area["width"] == pytest.approx(area["height"], abs=1)
    assert area["width"] > 0.55 * min(width, 680)
    down = boxes(page, ".ytick text")
    down = down[down[:, 1].argsort()]
    assert (down[1:, 1] >= down[:-1, 3] - 3).all()  # a line's box is a little higher than its letters
    middles = np.sort(boxes(page, ".xtick text")[:, 2])
    assert np.diff(middles).min() >= 12
    if n == 13:
        assert len(down) == len(middles) == 13
    everything = boxes(page, ".ytick text, .xtick text, .gtitle, .gtitle-subtitle, .cbtitle text, .xtitle")
    assert everything[:, :2].min() >= -1
    assert everything[:, 2].max() <= width + 1
    assert hover(page, n - 1, n // 2, (n, n)).startswith(f"{labels(n)[-1]} ({n - 1}) → ")


@pytest.mark.parametrize("width", WIDTHS)
def test_titles_stand_over_the_bar_and_the_bar_over_the_map(page: Page, width: int):
    weights, allowed, _ = causal_map(6)
    long = "L13 H8, with a title that is too long for one line on the screen of a phone, so that it has to be broken"
    show(page, head_map(weights, WORDS, WORDS, allowed=allowed, title=long, scale="without_first"), width)
    title, note, bar = (boxes(page, name)[0] for name in (".gtitle", ".gtitle-subtitle", ".cbtitle text"))
    top = page.locator(".nsewdrag").first.bounding_box()["y"]
    assert 0 <= title[1] < title[3] <= note[1] + 2 < note[3] <= bar[1] + 2 < bar[3] < top


def test_zooming_in_prints_every_label(page: Page):
    weights, allowed, _ = causal_map(60)
    show(page, head_map(weights, labels(60), labels(60), allowed=allowed))
    assert len(texts(page, ".ytick text")) < 60
    area = page.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(area["x"] + 0.1 * area["width"], area["y"] + 0.5 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.3 * area["width"], area["y"] + 0.7 * area["height"], steps=5)
    page.mouse.up()
    page.wait_for_function("document.querySelectorAll('.xtick text').length < 20", polling=20)
    places = boxes(page, ".xtick text")[:, 2].argsort()
    seen = [texts(page, ".xtick text")[place].strip("\u2068\u2069") for place in places]
    assert 11 <= len(seen) <= 14  # a fifth of 60, and none left out
    assert seen in [labels(60)[start : start + len(seen)] for start in (5, 6, 7)]


@pytest.mark.parametrize("theme", THEMES)
def test_thumbnails_show_and_name_their_heads(page: Page, theme: str):
    show(page, overview(thumbnails(), [0, 2, 7], theme=theme))
    assert hover(page, 1, 1, (2, 3)) == "L2 H1"
    assert_silent(page, 1, 2, (2, 3))  # there is no L7 H1
    page.mouse.move(1, 1)
    area = page.locator(".nsewdrag").first.bounding_box()
    cell = area["width"] / 3 / 5.5
    seen = screen(page)[
        int(area["y"] + 0.75 * cell), int(area["x"] + 0.75 * cell)
    ]  # the first query's weight on itself
    np.testing.assert_allclose(seen, 255 * hex_to_rgb([THEMES[theme].weight[-1]])[0], atol=2)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_reach_the_screen(page: Page, theme: str):
    figure = head_map([[1.0, 0.0], [0.0, 0.0]], ["a", "b"], ["a", "b"], allowed=[[1, 1], [0, 1]], theme=theme)
    show(page, figure)
    area = page.locator(".nsewdrag").first.bounding_box()
    shot = screen(page)

    def colour(row: float, column: float) -> np.ndarray:
        return shot[int(area["y"] + area["height"] * row / 2), int(area["x"] + area["width"] * column / 2)]

    look = THEMES[theme]
    expected = 255 * hex_to_rgb([look.weight[-1], look.weight[0], look.masked, look.page])
    seen = [colour(0.5, 0.5), colour(0.5, 1.5), colour(1.5, 0.5), colour(0.5, 2.4)]
    np.testing.assert_allclose(seen, expected, atol=1)
