"""What files say of where their numbers come from, what a page of one figure holds, and the squares of a QR code."""

import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import segno

import attnviz
from attnviz.app.explore import all_heads, lines
from attnviz.app.shell import share
from attnviz.app.shell.visit import Visit
from attnviz.app.show import files
from attnviz.app.show.charts import of_head
from attnviz.core.heads.at_a_glance import survey
from attnviz.core.trace.switches import Switches
from attnviz.figures import THEMES, figure_html, head_map

LINK = "http://host/scratch?layer=3"
SWITCHES = Switches(temperature=2)


@pytest.fixture(scope="module")
def visit() -> Visit:
    trace = attnviz.load("untrained").trace("Ann saw it")
    return Visit(None, trace.model, trace.text, trace.parts[0], 2, 1, SWITCHES, False, trace, trace, "light")


def test_the_table_of_all_heads_has_a_line_for_each(visit: Visit) -> None:
    columns = all_heads._columns(survey(visit.rest))
    trace = visit.rest
    places = [(layer, head) for layer in trace.layers for head in range(trace.heads(layer))]
    assert list(zip(columns["layer"], columns["head"], strict=True)) == places
    expected = [float(trace.weights(*place)[1:, 0].mean()) for place in places]  # row 0 has no choice
    np.testing.assert_allclose(columns["On the first token"], expected, atol=1e-6)


def test_the_table_of_a_layer_has_a_line_for_each_head_and_query(visit: Visit) -> None:
    trace, n = visit.rest, len(visit.rest.tokens)
    columns = lines._all_heads(of_head(trace.head(2, 0)), trace.layer_weights(2))
    assert columns["head"] == [head for head in range(trace.heads(2)) for _ in range(n)]
    key = f"1 {trace.tokens[1].label}"
    expected = np.concatenate([trace.weights(2, head)[:, 1] for head in range(trace.heads(2))])
    np.testing.assert_allclose(np.nan_to_num(columns[key]), expected, atol=1e-6)


@pytest.mark.parametrize("view", ["after", "before"])
def test_a_heads_numbers_are_those_of_the_view(visit: Visit, monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    monkeypatch.setattr(files, "page_link", lambda: LINK)
    head = files.head_of(visit, view, slice(1, 3))
    expected = visit.rest.weights(2, 1, switches=SWITCHES if view == "after" else None)[1:3, 1:3]
    numbers = head.numbers()
    np.testing.assert_allclose(numbers.weights, expected, atol=1e-6)
    assert numbers.about["link"] == LINK
    names: dict[str, Any] = {}
    exec(head.script(), names)
    np.testing.assert_allclose(names["weights"], expected, atol=1e-6)
    assert head.name("csv").endswith("-tokens-1-2.csv") and ("temperature-2" in head.name("csv")) == (view == "after")
    assert files.head_of(visit, view, slice(0, len(visit.rest.tokens))).head.queries is None


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
