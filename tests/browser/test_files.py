"""Every chart's files: saved in the browser, opened again elsewhere, and compared with what is on the screen."""

import csv
import json
import runpy
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

import attnviz
from tests.browser.app_page import NUMBERS, choose, go, plot, rest, widget
from tests.browser.apps.server import show

TEXT = 'Ann saw </script><script>alert(1)</script> & "it"'
VISIT = f"model=untrained&layer=2&head=1&text={quote(TEXT)}"
CURVES = """(selector) => document.querySelector(selector)._fullData.filter(({ mode }) => mode?.includes("lines"))
  .map(({ name, x, y }) => [name, Array.from(x), Array.from(y)])"""


def open_files(page: Page, address: str, key: str) -> None:
    """Go to a chart and open what is below it."""
    go(page, address, key)
    if not widget(page, f"{key}-files").is_visible():  # the box stays open on the way from one address to another
        widget(page, f"{key}-table").get_by_text("How to read it").click()
    expect(widget(page, f"{key}-files")).to_be_visible()
    rest(page)


def saved(page: Page, key: str, ending: str, folder: Path) -> Path:
    """Press the button for a kind of file and return the file."""
    row = widget(page, f"{key}-files")
    with page.expect_download() as download:
        row.get_by_role("button", name={"py": "Python script"}.get(ending, ending.upper()), exact=True).click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    assert file.suffix == f".{ending}"
    return file


def on_screen(page: Page, key: str) -> np.ndarray:
    return np.array(page.evaluate(NUMBERS, plot(key)), dtype=float)


def opened_alone(browser: Browser, file: Path, read: str) -> tuple[Any, str]:
    """Open a file without a network, and return what a script reads from its chart, and all text."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    found, words = page.evaluate(read, ".js-plotly-plot"), page.title() + page.inner_text("body")
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    context.close()
    return found, words


def rows_of(file: Path) -> tuple[list[dict[str, str]], dict[str, Any]]:
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return rows, json.loads(rows[0]["about"])


def as_parts(link: str) -> tuple[str, str, dict[str, list[str]]]:
    address = urlsplit(link)
    return address.netloc, address.path, parse_qs(address.query)


def assert_facts(about: dict[str, Any], page: Page) -> None:
    trace = attnviz.load("untrained").trace(TEXT)
    assert about["attnviz"] == attnviz.__version__ and as_parts(about["link"]) == as_parts(page.url)
    assert (about["model"], about["text"]) == ("untrained", TEXT)
    for name in ("revision", "engine", "dtype"):
        assert about[name] == getattr(trace.model, name)


@pytest.mark.slow
def test_the_files_of_a_head_hold_what_its_map_shows(tab: Page, browser: Browser, tmp_path: Path) -> None:
    open_files(tab, f"?{VISIT}&temperature=4", "head-map")
    shown = on_screen(tab, "head-map")
    seen = np.isfinite(shown)
    trace = attnviz.load("untrained").trace(TEXT)
    np.testing.assert_allclose(
        np.nan_to_num(shown), trace.weights(2, 1, switches=attnviz.Switches(temperature=4)), atol=1e-6
    )
    files = {kind: saved(tab, "head-map", kind, tmp_path) for kind in ("html", "csv", "json", "npz", "py")}
    assert {file.stem for file in files.values()} == {
        "attnviz-untrained-L2-H1-temperature-4-ann-saw-script-script-alert-1-script"
    }

    in_html, words = opened_alone(browser, files["html"], NUMBERS)
    np.testing.assert_array_equal(np.array(in_html, dtype=float), shown)
    assert TEXT in words and "L2 H1" in words and '"temperature": 4' in words

    rows, about = rows_of(files["csv"])
    in_csv = np.full(shown.shape, np.nan)
    for row in rows:
        if row["allowed"] == "1":
            in_csv[int(row["query_index"]), int(row["key_index"])] = np.float32(row["weight"])
    np.testing.assert_allclose(in_csv, shown, rtol=1e-6)
    assert_facts(about, tab)
    assert about["switches"]["temperature"] == 4 and (about["layer"], about["head"]) == (2, 1)

    content = json.loads(files["json"].read_text(encoding="utf-8"))
    np.testing.assert_allclose(np.where(seen, content["weights"], np.nan), shown, rtol=1e-6)
    assert np.array_equal(content["allowed"], seen)
    assert_facts(content, tab)
    with np.load(files["npz"], allow_pickle=False) as arrays:
        np.testing.assert_allclose(np.where(arrays["allowed"], arrays["weights"], np.nan), shown, rtol=1e-6)
        assert arrays["text"].item() == TEXT and as_parts(arrays["link"].item()) == as_parts(tab.url)

    again = runpy.run_path(str(files["py"]))["weights"]
    np.testing.assert_allclose(np.where(seen, again, np.nan), shown, atol=1e-6)


def test_a_difference_is_exported_as_such_and_without_a_script(tab: Page, tmp_path: Path) -> None:
    open_files(tab, f"?{VISIT}&temperature=4&view=difference", "head-map")
    shown = on_screen(tab, "head-map")
    rows, about = rows_of(saved(tab, "head-map", "csv", tmp_path))
    cells = [[float(cell or "nan") for cell in list(row.values())[1:-1]] for row in rows]
    np.testing.assert_allclose(cells, shown, atol=1e-6)
    assert (shown[np.isfinite(shown)] < 0).any() and "minus" in about["values"]
    assert_facts(about, tab)
    expect(widget(tab, "head-map-files").get_by_role("button", name="Python script")).to_have_count(0)
    with np.load(saved(tab, "head-map", "npz", tmp_path), allow_pickle=False) as arrays:
        columns = [arrays[f"column_{place}"] for place in range(1, len(arrays["names"]))]
        np.testing.assert_allclose(np.transpose(columns), shown, atol=1e-6)


@pytest.mark.parametrize("source", ["random", "real"])
def test_a_lesson_claims_the_model_only_where_its_numbers_are_the_models(
    tab: Page, browser: Browser, tmp_path: Path, source: str
) -> None:
    open_files(tab, f"scratch?step=scores&rows=5&source={source}&{VISIT}", "lesson-scores")
    shown = on_screen(tab, "lesson-scores")
    in_html, words = opened_alone(browser, saved(tab, "lesson-scores", "html", tmp_path), NUMBERS)
    np.testing.assert_array_equal(np.array(in_html, dtype=float), shown)
    about = json.loads(saved(tab, "lesson-scores", "json", tmp_path).read_text(encoding="utf-8"))
    columns = list(about.pop("columns").values())[1:]
    np.testing.assert_allclose(np.array(columns, dtype=float).T, shown, atol=1e-5)
    if source == "real":
        assert_facts(about, tab)
        assert TEXT in words
    else:
        assert set(about) == {"attnviz", "page", "link"} and "revision" not in words and TEXT not in words


def test_the_curves_of_the_costs_are_of_no_model(tab: Page, browser: Browser, tmp_path: Path) -> None:
    open_files(tab, f"cost?{VISIT}&cost_d=512", "cost-curves")
    curves = tab.evaluate(CURVES, plot("cost-curves"))
    in_html, words = opened_alone(browser, saved(tab, "cost-curves", "html", tmp_path), CURVES)
    assert in_html == curves and len(curves) > 1 and "revision" not in words
    about = json.loads(saved(tab, "cost-curves", "json", tmp_path).read_text(encoding="utf-8"))
    columns = about.pop("columns")
    assert set(about) == {"attnviz", "page", "link"} and about["page"] == "Cost"
    for name, x, y in curves:
        np.testing.assert_allclose(columns[name], y)
        np.testing.assert_allclose(columns["tokens"], x, rtol=0.1)  # the table has whole tokens


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_is_saved_as_png_and_svg_on_the_pages_own_ground(
    request: pytest.FixtureRequest, tmp_path: Path, scheme: str
) -> None:
    page: Page = request.getfixturevalue({"light": "tab", "dark": "dark_tab"}[scheme])
    open_files(page, "cost?cost_d=512&model=untrained", "cost-curves")
    size = page.locator(plot("cost-curves")).bounding_box()
    picture = Image.open(saved(page, "cost-curves", "png", tmp_path)).convert("RGB")
    assert picture.size == (round(2 * size["width"]), round(2 * size["height"]))
    assert picture.getpixel((2, 2)) == {"light": (255, 255, 255), "dark": (14, 17, 23)}[scheme]
    assert len(picture.getcolors(2**20)) > 20  # something is drawn
    svg = saved(page, "cost-curves", "svg", tmp_path).read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "attention" in svg and "http" not in svg.replace("http://www.w3.org", "")


def test_the_browsers_own_pictures_are_saved(board: Page) -> None:
    show(board, "?show=each")
    board.locator(".arc").first.wait_for(state="attached")
    rest(board)
    words = {
        "heads": ["L0", "L29", "H8"],
        "strip": ["animal", "0.83", "may not see"],
        "arcs": ["The", "<tired>", "0.55", "L9 H4"],
        "lines": ["animal", "H0", "H2"],
    }
    for key, expected in words.items():
        buttons: Locator = widget(board, f"save-{key}")
        files = {}
        for kind in ("PNG", "SVG", "HTML"):
            with board.expect_download() as download:
                buttons.get_by_role("button", name=kind).click()
            files[kind] = Path(download.value.path()).read_bytes()
        picture = Image.open(BytesIO(files["PNG"])).convert("RGB")
        page_alone = board.context.new_page()
        asked: list[str] = []
        page_alone.on("request", lambda request, asked=asked: asked.append(request.url))
        page_alone.set_content(files["HTML"].decode())
        in_page = page_alone.locator("svg text").all_text_contents()
        page_alone.set_content(files["SVG"].decode())
        texts = page_alone.locator("svg text").all_text_contents()
        box = page_alone.locator("svg").first.bounding_box()
        page_alone.close()
        assert in_page == texts and asked == []
        assert [word for word in expected if not any(word in text for text in texts)] == []
        assert picture.size == (2 * box["width"], 2 * box["height"])
        assert picture.getpixel((1, 1)) == (255, 255, 255) and len(picture.getcolors(2**24)) > 20


def test_a_file_follows_the_next_choice(tab: Page, tmp_path: Path) -> None:
    open_files(tab, f"?{VISIT}", "head-map")
    before = saved(tab, "head-map", "csv", tmp_path)
    choose(tab, "mask", False)
    expect(widget(tab, "view")).to_be_visible()
    rest(tab)
    after = saved(tab, "head-map", "csv", tmp_path)
    assert "causal-off" in after.name and "causal" not in before.name
    rows, about = rows_of(after)
    trace = attnviz.load("untrained").trace(TEXT)
    weights = trace.weights(2, 1, switches=attnviz.Switches(causal=False))
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights.ravel(), atol=1e-6)
    assert about["switches"]["causal"] is False and as_parts(about["link"]) == as_parts(tab.url)
