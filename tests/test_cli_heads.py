"""The commands heatmap, heads, models and app, run in this process on small models."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import psutil
import pytest
from PIL import Image
from typer.testing import CliRunner

import attnviz
from attnviz.cli import app
from attnviz.cli.head_picture import head_figure, image
from attnviz.core.export.head_files import head_csv, head_json, head_numbers
from attnviz.core.heads.scored_text import score_text
from attnviz.core.maps.choice import MOST_CELLS
from attnviz.models.load.catalogue import CATALOGUE
from tests.chromium import find_chromium
from tests.core.made_traces import random_trace

ROOT = Path(__file__).resolve().parents[1]
TEXT = "Tom & <b>Ann</b> $x$"


@pytest.fixture(autouse=True)
def wide(load_once, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")


@pytest.fixture(scope="module")
def untrained():
    return attnviz.load("untrained")


def run(*arguments, **named):
    return CliRunner().invoke(app, [*map(str, arguments)], **named)


def heatmap(out, *arguments, text=TEXT, **named):
    given = () if text is None else ("--text", text)
    return run("heatmap", "--model", "untrained", *given, "--layer", 2, "--head", 3, "--out", out, *arguments, **named)


def expected(engine, *, passed=None, shown=None, text=TEXT):
    trace = engine.trace(text, switches=passed)
    return head_numbers(trace, 2, 3, version=attnviz.__version__, switches=shown)


def one_sentence(result):
    """Return the one sentence on what went wrong."""
    said = [line for line in result.stderr.splitlines() if line.startswith("attnviz: ")]
    assert result.exit_code == 2 and len(said) == 1 and "Traceback" not in result.output, result.output
    return said[0]


OFF = attnviz.Switches(ablate={(0, 1), (1, 2)})
FLAT = attnviz.Switches(causal=False, scaled=False, temperature=2.5)


@pytest.mark.parametrize(
    ("arguments", "passed", "shown"),
    [
        ((), None, None),
        (("--causal", "off", "--no-scaling", "--temperature", 2.5), None, FLAT),
        (("--causal", "off", "--no-scaling", "--temperature", 2.5, "--in-pass"), FLAT, None),
        (("--off", "0.1", "--off", "1.2"), OFF, None),
        (("--off", "0.1", "--off", "1.2", "--causal", "on"), OFF, attnviz.Switches(causal=True)),
    ],
)
def test_numbers_are_the_traces_under_each_switch(untrained, tmp_path, arguments, passed, shown):
    for ending, write in (("csv", head_csv), ("json", head_json)):
        out = tmp_path / f"x.{ending}"
        result = heatmap(out, *arguments)
        assert result.exit_code == 0, result.output
        assert out.read_text(encoding="utf-8") == write(expected(untrained, passed=passed, shown=shown))
    assert f"{out}: {len(TEXT)} tokens" in result.stdout


def test_npz_and_script(untrained, tmp_path):
    right = expected(untrained, shown=FLAT).weights
    flat = ("--causal", "off", "--no-scaling", "--temperature", 2.5)
    for ending in ("npz", "PY"):
        assert heatmap(tmp_path / f"x.{ending}", *flat).exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.npz")["weights"], right)
    names = {}
    exec((tmp_path / "x.PY").read_text("utf-8"), names)
    np.testing.assert_array_equal(names["weights"], right)


def test_html_holds_plotly_and_the_picture(untrained, tmp_path):
    out = tmp_path / "x.html"
    result = heatmap(out, "--theme", "dark", "--no-scaling")
    page = out.read_text(encoding="utf-8")
    assert result.exit_code == 0 and 3e6 < len(page) < 7e6 and "#0E1117" in page
    assert not re.search(r"<script[^>]+src=|<link|<b>Ann", page.replace("<script>", ""))
    assert "<title>Untrained (random weights), L2 H3, no scaling</title>" in page and "Each row is a token" in page


@pytest.mark.browser
def test_html_opens_without_a_request(tmp_path):
    from playwright.sync_api import sync_playwright

    if find_chromium() is None:
        pytest.skip("no browser to test in")
    out = tmp_path / "x.html"
    assert heatmap(out).exit_code == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(out.as_uri())
        page.wait_for_selector(".ytick text")
        ticks = page.locator(".ytick text").all_text_contents()
        z = page.evaluate("Array.from(document.querySelector('.js-plotly-plot').calcdata[0][0].z, r => Array.from(r))")
        browser.close()
    assert asked == [out.as_uri()] and "<" in ticks and "$" in ticks
    weights = attnviz.load("untrained").trace(TEXT).weights(2, 3)
    drawn = np.array([[x if isinstance(x, int | float) else 0 for x in row] for row in z])
    np.testing.assert_allclose(drawn, weights, atol=1e-6)


@pytest.mark.browser
def test_png_and_svg_are_drawn_by_a_browser(tmp_path):
    if find_chromium() is None:
        pytest.skip("no browser to draw with")
    for ending in ("png", "svg"):
        result = heatmap(tmp_path / f"x.{ending}")
        assert result.exit_code == 0, result.output
    picture = Image.open(tmp_path / "x.png").convert("RGB")
    assert min(picture.size) > 1000 and len(picture.getcolors(10**6)) > 20
    drawing = ElementTree.parse(tmp_path / "x.svg").getroot()
    words = [text for node in drawing.iter() if node.tag.endswith("text") for text in node.itertext()]
    assert "Untrained (random weights), L2 H3" in words and "&" in words


def test_without_a_browser_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "nope"))
    result = heatmap(tmp_path / "x.svg")
    assert "none is installed; install one, or write .html instead" in one_sentence(result)
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the browser that hangs is a shell script")
def test_a_browser_that_hangs_is_ended(tmp_path, monkeypatch):
    pid_file = tmp_path / "pid"
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 300\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(browser))
    figure, _ = head_figure(random_trace(3).head(0, 0), title="", theme="light", scale="linear")
    with pytest.raises(ValueError, match="gave no png in 6 seconds"):
        image(figure, "png", seconds=6)
    assert not psutil.pid_exists(int(pid_file.read_text()))


def test_a_long_text_is_pooled_and_said():
    trace = random_trace(MOST_CELLS * 2 - 1, n_layers=1, n_heads=1)
    figure, said = head_figure(trace.head(0, 0), title="t", theme="light", scale="linear")
    assert said == "Each square is the largest weight of 2 x 2 tokens." and figure.data[0].z.shape == (160, 160)
    assert figure.data[0].colorbar.title.text == "largest weight of 2 x 2 tokens"
    assert figure.layout.xaxis.labelalias["1"] == "2–3" and figure.layout.xaxis.labelalias["159"] == "318–318"
    assert figure.data[0].z[5, 2] == trace.weights(0, 0)[10:12, 4:6].max()


def test_text_comes_from_a_file_or_from_standard_input(untrained, tmp_path):
    file, out = tmp_path / "text.txt", tmp_path / "x.csv"
    file.write_bytes("\ufeffZwei\r\nZeilen\r\n".encode())
    right = head_csv(expected(untrained, text="Zwei\nZeilen"))
    assert heatmap(out, "--file", file, text=None).exit_code == 0 and out.read_text("utf-8") == right
    out.unlink()
    assert heatmap(out, text="-", input=b"Zwei\nZeilen\n").exit_code == 0 and out.read_text("utf-8") == right


def test_parts_and_target(tiny_folder, tmp_path):
    folder, out = tiny_folder("t5"), tmp_path / "x.json"
    arguments = ("--model", folder, "--text", "w1 w2 w3", "--target", "w4", "--layer", 1, "--head", 0, "--out", out)
    assert run("heatmap", *arguments, "--part", "cross").exit_code == 0
    content = json.loads(out.read_text())
    assert content["part"] == "cross" and np.shape(content["weights"]) == (2, 3) and content["target"] == "w4"
    names = {}
    program = tmp_path / "again.py"
    assert run("heatmap", *arguments[:-1], program, "--part", "cross").exit_code == 0
    exec(program.read_text("utf-8"), names)
    np.testing.assert_allclose(names["weights"], content["weights"], atol=1e-7)
    assert "part must be one of encoder, decoder, cross" in one_sentence(run("heatmap", *arguments))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--off", "3"), "written layer.head, such as 16.0; got 3"),
        (("--off", "9.0"), "9"),
        (("--temperature", "0"), "temperature must be a number from"),
        (("--layer", "7"), "layer 7 has no attention map"),
        (("--head", "7"), "heads 0 to 3, got 7"),
        (("--model", "./nope"), "there is no file or folder ./nope"),
        (("--file", "nope.txt"), "pass the text with --text, or a file with --file"),
        (("--text", " "), "visible"),
        (("--out", "x.jpg"), ".html, .png, .svg, .csv, .json, .npz, .py; got x.jpg"),
        (("--out", "nope/x.csv"), "there is no folder nope"),
        (("--target", "w"), "takes no target text"),
        (("--part", "cross"), "part must be one of decoder"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence(arguments, words, tmp_path):
    assert words in one_sentence(heatmap(tmp_path / "x.csv", *arguments))
    assert list(tmp_path.iterdir()) == []


def test_texts_that_cannot_be_read_are_one_sentence(tmp_path):
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    for file, words in (("latin", "isn't UTF-8"), ("nope", "can't be read: no such file"), (".", "can't be read")):
        assert words in one_sentence(heatmap(tmp_path / "x.csv", "--file", tmp_path / file, text=None))
    assert "pass the text" in one_sentence(heatmap(tmp_path / "x.csv", text=None))


def test_heads_lists_the_best_first(untrained):
    result = run("heads", "--model", "untrained", "--text", "abcabc", "--sort", "previous", "--n", 3)
    assert result.exit_code == 0, result.output
    rows = re.findall(r"^ (L\d+ H\d+) +(\d\.\d{3})", result.stdout, re.M)
    scores = score_text(untrained.trace("abcabc"), "previous")
    assert [float(score) for _, score in rows] == pytest.approx(sorted(scores.ravel(), reverse=True)[:3], abs=6e-4)
    for name, score in rows:
        layer, head = map(int, re.findall(r"\d+", name))
        assert scores[layer, head] == pytest.approx(float(score), abs=6e-4)
    lowest = run("heads", "--model", "untrained", "--text", "abcabc", "--sort", "previous", "--n", 1, "--lowest")
    assert f"{scores.min():.3f}" in lowest.stdout


def test_heads_known_for_something_are_found_without_occasion(tiny_folder):
    arguments = ("heads", "--model", "untrained", "--text", "abcdef", "--sort", "induction", "--n", 2)
    sentence = one_sentence(run(*arguments))
    assert "no head can be scored for “what came next last time” on this text: the weight on" in sentence
    result = run(*arguments, "--known")
    assert result.exit_code == 0, result.output
    found = re.findall(r"^ L\d+ H\d+ +no occasion +(\d\.\d{3})", result.stdout, re.M)
    assert len(found) == 2 and found[0] >= found[1] and "known for" in result.stdout


@pytest.mark.slow
def test_the_induction_head_of_smollm2_is_first():
    words = "copper violin harbour mint ladder cloud spoon winter basket engine marble pencil"
    result = run("heads", "--text", f"{words} {words}", "--sort", "induction", "--n", 1, "--known")
    # A narrow table breaks its sentences over several lines, so only what stands on the first line is looked at.
    found = re.search(r"^ (L\d+ H\d+) +0\.\d{3} +(0\.\d{3}) +what came next last time", result.stdout, re.MULTILINE)
    assert result.exit_code == 0 and found is not None
    assert found[1] == "L18 H6" and float(found[2]) >= 0.85


def test_heads_in_other_models_and_wrong_sorts(tiny_folder):
    result = run("heads", "--model", tiny_folder("t5"), "--text", "w1 w2 w3", "--sort", "entropy", "--part", "encoder")
    assert result.exit_code == 0, result.output
    assert "heads can be sorted by previous, " in one_sentence(run("heads", "--text", "x", "--sort", "nope"))


def test_models_are_listed(monkeypatch):
    shown = run("models").stdout
    for entry in CATALOGUE.values():
        assert re.search(rf"^ {entry.name} .*{re.escape(entry.licence)} .*yes", shown, re.M), entry.name
    assert "requirements-models.txt" not in shown
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = run("models").stdout
    assert re.search(r"^ minilm .* no *$", shown, re.M) and "-r requirements-models.txt" in shown


def test_app_starts_streamlit_on_the_pages(monkeypatch):
    calls = []
    monkeypatch.setattr("attnviz.cli.start.subprocess", SimpleNamespace(call=lambda *a, **k: calls.append((a, k)) or 0))
    assert run("app", "--port", 8600, "--no-browser").exit_code == 0
    ((command,), named) = calls[0]
    assert command[1:] == ["-m", "streamlit", "run", "app.py", "--server.port", "8600", "--server.headless", "true"]
    assert (named["cwd"] / "app.py").is_file()
    assert run("app", "--port", 99999).exit_code == 2 and len(calls) == 1


def test_app_passes_on_how_streamlit_ended(monkeypatch):
    for code, shown in ((1, 1), (130, 0)):
        monkeypatch.setattr("attnviz.cli.start.subprocess", SimpleNamespace(call=lambda *a, code=code, **k: code))
        assert run("app").exit_code == shown


@pytest.mark.parametrize("command", ["heatmap", "heads", "models", "app"])
def test_help_has_examples(command):
    result = run(command, "--help")
    assert result.exit_code == 0 and f"python -m attnviz {command}" in result.stdout


def test_a_pipe_into_the_program(tmp_path):
    command = [sys.executable, "-m", "attnviz", "heatmap", "--model", "untrained", "--text", "-", "--layer", "0"]
    command += ["--head", "0", "--out", str(tmp_path / "x.csv")]
    done = subprocess.run(command, cwd=ROOT, input="ab\n", capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert len(list(csv.reader(io.StringIO((tmp_path / "x.csv").read_text())))) == 1 + 4
