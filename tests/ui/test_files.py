"""What files say of where their numbers come from, what a page of one figure holds, and the squares of a QR code."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import segno

import attnviz
from attnviz.core.heads import survey
from attnviz.core.switches import Switches
from attnviz.figures import THEMES, figure_html, head_map
from attnviz.ui import all_heads, facts, files, share
from attnviz.ui.explore import lines
from attnviz.ui.visit import Visit

LINK = "http://host/scratch?layer=3"
SWITCHES = Switches(temperature=2)
Say = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def visit() -> Visit:
    trace = attnviz.load("untrained").trace("Ann saw it")
    return Visit(None, trace.model, trace.text, trace.parts[0], 2, 1, SWITCHES, False, trace, trace, "light")


@pytest.fixture
def say(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Return a function from a page, a chart's key and the session to the chart's facts."""
    monkeypatch.setattr(facts, "page_link", lambda: LINK)

    def ask(page: str, key: str, **session: Any) -> dict[str, Any]:
        state = {"page": page, "visit": visit, "view": "after", "source": "real", "written": 0, **session}
        monkeypatch.setattr(facts.st, "session_state", _Session(state))
        return facts.facts_of(key)

    return ask


class _Session(dict):
    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    ("page", "key", "session"),
    [
        ("cost", "cost-curves", {}),
        ("cost", "matrix-curves", {}),
        ("cost", "timing-seconds", {}),
        ("scratch", "lesson-scores", {"source": "random"}),
        ("scratch", "roles-queries", {"source": "random"}),
        ("scratch", "softmax-row", {"source": "random"}),
        ("scratch", "mask-weights-with", {}),
        ("scratch", "lesson-heads", {}),
        ("scratch", "scores-random-with", {}),
        ("scratch", "maxima-random", {}),
        ("generate", "both-formula", {}),
        ("", "a chart that nobody knows", {}),
    ],
)
def test_a_chart_that_is_not_of_the_model_claims_none(say: Say, page: str, key: str, session: dict[str, Any]) -> None:
    assert set(say(page, key, **session)) == {"attnviz", "page", "link"}


@pytest.mark.parametrize(
    ("page", "key"),
    [
        ("", "histogram-weights"),
        ("", "head-map"),
        ("", "overview"),
        ("", "head-lines"),
        ("scratch", "lesson-scores"),
        ("scratch", "scores-real-with"),
        ("cost", "flash-grid"),
        ("generate", "generate-map"),
        ("pronouns", "candidates"),
    ],
)
def test_a_chart_of_the_text_says_model_text_and_switches(say: Say, visit: Visit, page: str, key: str) -> None:
    found = say(page, key)
    model = visit.rest.model
    said = {"model": model.name, "revision": model.revision, "engine": "torch", "dtype": "float32", "text": visit.text}
    assert said | {"attnviz": attnviz.__version__, "link": LINK} == {
        name: found[name] for name in (*said, "attnviz", "link")
    }
    assert found["switches"]["temperature"] == (2 if page == "" else 1)  # the other pages show the model at rest


def test_the_table_of_all_heads_has_a_line_for_each(visit: Visit) -> None:
    columns = all_heads._columns(survey(visit.rest))
    trace = visit.rest
    places = [(layer, head) for layer in trace.layers for head in range(trace.heads(layer))]
    assert list(zip(columns["layer"], columns["head"], strict=True)) == places
    expected = [float(trace.weights(*place)[1:, 0].mean()) for place in places]  # row 0 has no choice
    np.testing.assert_allclose(columns["On the first token"], expected, atol=1e-6)


def test_the_table_of_a_layer_has_a_line_for_each_head_and_query(visit: Visit) -> None:
    trace, n = visit.rest, len(visit.rest.tokens)
    columns = lines._all_heads(trace.layer_weights(2), trace.allowed(2, 0), trace.tokens, trace.tokens)
    assert columns["head"] == [head for head in range(trace.heads(2)) for _ in range(n)]
    key = f"1 {trace.tokens[1].label}"
    expected = np.concatenate([trace.weights(2, head)[:, 1] for head in range(trace.heads(2))])
    np.testing.assert_allclose(np.nan_to_num(columns[key]), expected, atol=1e-6)


def test_the_map_without_the_switches_names_none(say: Say) -> None:
    assert say("", "head-map", view="before")["switches"]["temperature"] == 1
    assert "minus" in say("", "head-map", view="difference")["values"]


def test_a_chart_of_the_model_on_other_texts_names_no_text(say: Say) -> None:
    found = say("pronouns", "rates")
    assert found["model"] == "untrained" and not {"text", "switches"} & set(found)


def test_a_question_with_a_line_break_in_front_is_told_as_it_ran(say: Say) -> None:
    trace = attnviz.load("untrained").trace("\nAnn saw it")
    assert say("pronouns", "candidates", question=SimpleNamespace(trace=trace))["text"] == "\nAnn saw it"


@pytest.mark.parametrize("view", ["after", "before"])
def test_a_heads_numbers_are_those_of_the_view(visit: Visit, monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    monkeypatch.setattr(files, "page_link", lambda: LINK)
    head = files.head_of(visit, view, slice(1, 3))
    expected = visit.rest.weights(2, 1, switches=SWITCHES if view == "after" else None)[1:3, 1:3]
    numbers = head.numbers()
    np.testing.assert_array_equal(numbers.weights, expected)
    assert numbers.about["link"] == LINK
    names: dict[str, Any] = {}
    exec(head.script(), names)
    np.testing.assert_array_equal(names["weights"], expected)
    assert head.name("csv").endswith("-tokens-1-2.csv") and ("temperature-2" in head.name("csv")) == (view == "after")
    assert files.head_of(visit, view, slice(0, len(visit.rest.tokens))).tokens is None


def test_a_difference_is_no_heads_weights(visit: Visit) -> None:
    assert files.head_of(visit, "difference", slice(0, 3)) is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_of_one_figure_escapes_every_text(theme: str) -> None:
    evil = "</script><script>alert(1)</script>&"
    figure = head_map(np.eye(2), [evil, "b"], [evil, "b"], title=evil, theme=theme)
    page = figure_html(figure, title=evil, about={"text": evil, "switches": {"forbid": [evil]}, "link": f'"{evil}'})
    assert evil not in page and page.count("</script>") == page.count("<script")
    assert THEMES[theme].page in page and figure.layout.paper_bgcolor is None
    assert isinstance(figure, go.Figure)


@pytest.mark.parametrize("link", ["http://a.b/?head=3", "https://example.org/cost?text=" + "%E6%9D%B1" * 60])
def test_a_qr_code_has_the_links_squares_and_a_quiet_zone(link: str) -> None:
    right = np.pad(np.array(segno.make(link, micro=False, error="l").matrix, dtype=bool), 4)
    np.testing.assert_array_equal(_squares(share.qr_svg(link)), right)


def test_a_link_too_long_to_read_from_a_projector_has_no_code() -> None:
    assert share.qr_svg("http://a.b/" + "x" * 1200) and share.qr_svg("http://a.b/" + "x" * 1300) is None
    assert share.qr_svg("http://a.b/" + "x" * 4000) is None


def _squares(svg: str) -> np.ndarray:
    """Return where an SVG of segno is black: its path has strokes one square high, moved to and drawn to the right."""
    side = int(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    black = np.zeros((side, side), dtype=bool)
    x = y = 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", re.search(r'stroke="#000" d="([^"]+)"', svg)[1]):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if command == "h":
            black[int(y), int(x) : int(x + values[0])] = True
            x += values[0]
        else:
            x, y = values if command == "M" else (x + values[0], y + values[1])
    return black
