"""Every chart's files on every page, opened: they say which text, model, head and switches, or claim none.

The charts are those of `VIEWS` below, and of `CHARTS` in the test of a page, such as test_cost_page.py.
"""

import ast
import csv
import html
import io
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

import attnviz
from attnviz.app.show import files
from attnviz.core.trace.switches import Switches
from tests.ui.charts import TINY
from tests.ui.conftest import Visitor

UI = Path(__file__).parents[2] / "attnviz" / "app"
PAGE_TESTS = sorted(path.stem for path in Path(__file__).parent.glob("test_*_page.py"))
HER = "Laura met Mark at the station, and he took her bags."
WHERE = {"attnviz", "page", "link"}
MODEL = {"model", "title", "revision", "dtype", "engine"}
REAL = {"text": HER, "layer": "9", "head": "4"}

# page, address -> chart -> what its files are of: "text" under the visitor's switches, "rest" without them, "off" with
# the chosen head off, "lead" with a line break in front, "shuffled", only the "model", or "nothing"
HEADS = {"head-map": "text", "overview": "text", "next-tokens": "text"}
FIND = {"tool": "find", "temperature": "2"}
VIEWS: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("", TINY | {"temperature": "2"}, HEADS | {"heads-changed": "text"}),
    ("", TINY | {"temperature": "2", "acts": "pass", "view": "before"}, HEADS | {"head-map": "rest"}),
    ("", TINY | {"temperature": "2", "view": "difference"}, HEADS),
    ("", TINY | {"temperature": "2", "shows": "words"}, HEADS),
    ("", TINY | {"temperature": "2", "shows": "words", "view": "before"}, HEADS | {"head-map": "rest"}),
    ("", TINY | {"histogram": "all"}, {f"histogram-{name}": "rest" for name in ("weights", "maxima", "gradient")}),
    ("", TINY | {"tool": "lines", "temperature": "2"}, {"head-lines": "text"}),
    ("", TINY | {"tool": "lines", "temperature": "2", "view": "before"}, {"head-lines": "rest"}),
    ("", TINY | {"tool": "writes"}, {"writes-raised": "rest", "writes-lowered": "rest"}),
    ("", TINY | {"tool": "writes", "temperature": "2"}, {"writes-raised": "rest", "writes-lowered": "rest"}),
    ("", TINY | FIND | {"find_by": "like"}, {"found-strip": "text"}),
    ("", TINY | FIND | {"find_by": "like", "view": "before"}, {"found-strip": "rest"}),
    ("", TINY | FIND | {"find_by": "drawn"}, {"drawn-map": "text"}),
    ("", TINY | FIND | {"find_by": "feeds", "layer": "0"}, {"found-strip": "off"}),
    ("", TINY | FIND | {"find_by": "pattern"}, {"found-strip": "model"}),
    ("", TINY | FIND | {"find_by": "pattern", "found_in": "here"}, {"found-strip": "text"}),
    ("", TINY | {"tool": "compare"}, {"compare-a": "rest", "compare-b": "rest", "compare-difference": "rest"}),
    ("scratch", TINY | {"step": "roles"}, {f"roles-{name}": "rest" for name in ("queries", "keys", "values")}),
    ("scratch", TINY | {"step": "scores"}, {"lesson-scores": "rest", "lesson-products": "rest"}),
    ("scratch", TINY | {"step": "scores", "temperature": "2"}, {"lesson-scores": "rest", "lesson-products": "rest"}),
    (
        "scratch",
        TINY | {"step": "scores", "source": "random"},
        {"lesson-scores": "nothing", "lesson-products": "nothing"},
    ),
    (
        "scratch",
        TINY | {"step": "position"},
        {"lesson-distance-own": "rest", "lesson-shuffled": "rest", "lesson-map-as typed": "rest"}
        | {"lesson-map-shuffled": "shuffled"},
    ),
    (
        "scratch",
        TINY | {"step": "scaling", "width": "8"},
        {f"{name}-random{end}": "nothing" for name, end in (("scores", "-with"), ("maxima", ""), ("gradient", ""))}
        | {"curves-sharp": "nothing", "curves-erratic": "nothing"}
        | {"scores-real-with": "rest", "scores-real-without": "rest", "maxima-real": "rest", "gradient-real": "rest"},
    ),
    ("scratch", TINY | {"step": "mask"}, {"mask-real-with": "rest"}),
    (
        "scratch",
        TINY | {"step": "mask", "source": "random"},
        {"mask-weights-with": "nothing", "mask-change-with": "nothing"},
    ),
    ("scratch", TINY | {"step": "softmax"}, {"softmax-row": "rest"}),
    (
        "scratch",
        TINY | {"step": "weighted_sum"},
        {f"lesson-{name}": "rest" for name in ("shares", "sizes", "likeness", "votes")},
    ),
    (
        "scratch",
        TINY | {"step": "several_heads"},
        {"lesson-head-one": "rest", "lesson-head-other": "rest", "lesson-writes": "rest"},
    ),
    ("scratch", TINY | {"step": "several_heads", "source": "random"}, {"lesson-heads": "nothing"}),
    ("scratch", TINY | {"step": "matches"}, {"lesson-apart": "rest"}),
    ("generate", TINY | {"written": "2"}, dict.fromkeys(("rivals", "generate-map", "cache-K", "cache-V"), "rest")),
    ("pronouns", REAL | {"candidates": "0_2", "answer": "2"}, {"candidates": "lead", "margins": "lead"}),
    ("pronouns", REAL | {"topic": "pair", "pair": HER.replace(" he ", " she ")}, {"pair-difference": "lead"}),
    ("pronouns", REAL | {"topic": "scores"}, {"rates": "model", "accuracy": "model"}),
    (
        "pronouns",
        REAL | {"topic": "matters", "word": "Mark", "rival": "Laura"},
        {"direct-map": "lead", "layer-effects": "lead"},
    ),
]
VIEWS += [view for name in PAGE_TESTS for view in getattr(import_module(f"tests.ui.{name}"), "CHARTS", [])]
# drawn after long work only, or in a part of a page that these addresses don't reach
ELSEWHERE = {"both-seconds", "both-formula", "timing-{}", "kinds", "softmax-sums", "lesson-stack", "{}-map"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Callable[[], str | bytes]]]:
    """Open every box of a page; return what makes each chart's files, by the chart's key and the file's ending."""
    found: dict[str, dict[str, Callable[[], str | bytes]]] = {}
    expander = st.expander

    def open_box(*arguments: Any, **options: Any) -> Any:
        box = expander(*arguments, **options)
        box.open = True
        return box

    class Page:
        def __getattr__(self, name: str) -> Any:
            return getattr(st, name)

        def download_button(
            self, label: str, make: Callable[[], str | bytes], name: str, mime: str, **options: Any
        ) -> None:
            key, _, ending = options["key"].rpartition("-")
            found.setdefault(key, {})[ending] = make

    monkeypatch.setattr(st, "expander", open_box)
    monkeypatch.setattr(files, "st", Page())
    monkeypatch.setattr("attnviz.app.show.facts.page_link", lambda: "http://host/a-page")
    monkeypatch.setattr(files, "page_link", lambda: "http://host/a-page")
    return found


@pytest.mark.parametrize(("page", "address", "charts"), VIEWS, ids=lambda value: _named(value))
def test_the_files_of_every_chart_say_what_it_is_of(open_app, opened, page, address, charts) -> None:
    visitor = open_app(page=page, **address)
    assert visitor.crashes() == [] and set(charts) <= set(opened), (sorted(opened), visitor.errors())
    for key, of in charts.items():
        makers = opened[key]
        assert {"csv", "json", "npz"} <= set(makers)
        said = [_read(ending, makers[ending]()) for ending in ("csv", "json", "npz")]
        for facts in said:
            _check(facts, of, visitor, key)
        if "html" in makers:
            whole = makers["html"]()
            assert of in ("model", "nothing", "shuffled") or html.escape(visitor["text"]) in whole


def _named(value: Any) -> str:
    if isinstance(value, dict):
        return "-".join(f"{v}" for k, v in value.items() if k not in (*TINY, "text") and len(v) < 12) or "plain"
    return value or "explore"


def _check(facts: dict[str, Any], of: str, visitor: Visitor, key: str) -> None:
    """Check what one file says."""
    assert facts["attnviz"] == attnviz.__version__ and facts["link"]
    if of in ("nothing", "model"):
        assert set(facts) - WHERE == (MODEL if of == "model" else set()), key
        return
    if key == "compare-difference":  # of two sides, each with all of it
        assert facts["text"] == visitor["text"]
        for side in (facts["a"], facts["b"]):
            _check(side | {"link": facts["link"]}, of, visitor, key="compare-b")
        return
    visit = visitor.visit
    assert {name: facts[name] for name in MODEL} == {name: _of_the_model(visit)[name] for name in MODEL}
    text = {"lead": "\n" + visit.text}.get(of, visit.text)
    same = (
        sorted(facts["text"]) == sorted(text) and facts["text"] != text if of == "shuffled" else facts["text"] == text
    )
    assert same, key
    head = (visit.layer, visit.head)
    named = facts.get("selected_head") == visit.name or (facts["layer"], facts["head"]) == head
    assert named or key == "compare-b", key
    off = Switches(ablate={head})
    switches = {"text": visit.switches, "off": off}.get(of, Switches())
    assert Switches(**facts["switches"]) == switches, key


def _of_the_model(visit: Any) -> dict[str, str]:
    info = visit.info
    return {name: getattr(info, "name" if name == "model" else name) for name in MODEL}


def _read(ending: str, content: str | bytes) -> dict[str, Any]:
    """Return what a file says of its numbers."""
    if ending == "csv":
        return json.loads(next(csv.DictReader(io.StringIO(content)))["about"])
    if ending == "json":
        return {name: value for name, value in json.loads(content).items() if name not in _ARRAYS}
    with np.load(io.BytesIO(content)) as arrays:
        said = {name: array.item() for name, array in arrays.items() if array.shape == ()}
    return {
        name: json.loads(value) if name.startswith("switches") or name in "ab" else value
        for name, value in said.items()
    }


_ARRAYS = {"columns", "queries", "keys", "weights", "scores", "allowed"}


def test_the_charts_of_all_pages_are_opened_here() -> None:
    """A chart that is new has a place in `CHARTS` of its page's test, so that its facts are looked at."""
    known = {key for _, _, charts in VIEWS for key in charts}
    for key in _keys_in_the_source():
        beginning = key.split("{}")[0]
        reached = key in known or ("{}" in key and any(name.startswith(beginning) for name in known if beginning))
        assert reached or key in ELSEWHERE, key


def _keys_in_the_source() -> set[str]:
    """Return the keys that charts are drawn under, with {} for what is put in when the page runs."""
    found = set()
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name in ("draw", "draw_map", "files_row", "heads_map") and len(node.args) > 1:
                key = node.args[1]
                parts = key.values if isinstance(key, ast.JoinedStr) else [key]
                words = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
                found.add("".join(map(str, words)))
    return found - {"{}"}
