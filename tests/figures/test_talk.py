"""A talk as one page: what its texts can't break, and that it holds everything itself."""

import json
import re

import numpy as np
import pytest

from attnviz.figures import code_on_slide, head_map, map_on_slide, next_token_bars, on_slide, row_bars, talk_html

SCENE = {
    "title": "</script><b>x</b>",
    "caption": "__TITLE__ & $x$",
    "question": "",
    "notes": "",
    "minutes": 1,
    "text": "it",
    "alt": "bars",
    "pictures": [next_token_bars([("a", 0.5)]).to_json()],
}


def test_texts_stay_texts():
    page = talk_html("<i>Talk</i> __DECK__", [SCENE])
    deck = re.search(r'<script type="application/json" id="deck">(.*?)</script>', page, re.DOTALL)
    assert json.loads(deck[1])["scenes"] == [SCENE]
    assert "<title>&lt;i&gt;Talk&lt;/i&gt; __DECK__</title>" in page
    assert page.count("</script>") == 3


def test_nothing_is_loaded_from_elsewhere():
    page = talk_html("A", [SCENE])
    own = page.replace(re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1], "")  # plotly.js itself holds addresses
    assert not re.search(r"https?://|\bsrc=|\bhref=|@import", own)


def test_the_type_is_set_into_the_page():
    page = talk_html("A", [SCENE], font=b"a font")
    assert 'font-family: "Source Sans"; font-weight: 200 900; src: url(data:font/woff2;base64,YSBmb250)' in page
    assert "font/woff2" not in talk_html("A", [SCENE])


@pytest.mark.parametrize("n", [5, 13, 24])
def test_a_map_fills_the_slide_and_names_every_token(n):
    labels = [f"·word{i}" for i in range(n)]
    figure = head_map(np.eye(n), labels, labels, marked=[(n - 1, 0)], title="L0 H0", label_size=18)
    layout = map_on_slide(figure, labels, 530).layout
    assert (layout.height, layout.xaxis.dtick, layout.yaxis.dtick) == (530, 1, 1)
    assert 400 < layout.width < 720 and not layout.title.text and layout.shapes[0].line.width == 4


def test_more_labels_than_fit_are_left_to_plotly():
    labels = [f"·word{i}" for i in range(60)]
    figure = map_on_slide(head_map(np.eye(60), labels, labels, label_size=18), labels, 530)
    assert figure.layout.xaxis.dtick is None and figure.layout.yaxis.dtick is None


def test_bars_name_every_token_as_level_as_they_fit():
    def angle(n):
        labels = [f"·word{i}" for i in range(n)]
        bars = row_bars(np.full(n, 1 / n), labels, query_label="x", title="A title", label_size=18)
        return on_slide(bars, 1216, 530, labels).layout.xaxis.tickangle

    assert [angle(n) for n in (8, 30, 50, 60, 80)] == [0, -45, -60, -90, None]


def test_a_code_is_black_on_white_on_any_page():
    modules = np.array([[1, 0], [0, 1]])
    for theme in ("light", "dark"):
        trace = code_on_slide(modules, "https://x.org", theme=theme, label_size=18, height=530).data[0]
        assert np.array_equal(trace.z, modules)
        assert [colour for _, colour in trace.colorscale] == ["#FFFFFF", "#000000"]


def test_what_makes_no_talk_is_refused():
    with pytest.raises(ValueError, match="at least one scene"):
        talk_html("A", [])
    with pytest.raises(ValueError, match="theme"):
        talk_html("A", [SCENE], theme="blue")
