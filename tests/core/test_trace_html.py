"""What a notebook shows of a trace: escaped, small, and without anything from elsewhere."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attnviz.core.attention.masks import full_mask
from attnviz.core.trace.trace import Trace
from tests.core.made_traces import made_layer, made_trace, random_trace, random_weights

SVG = "{http://www.w3.org/2000/svg}"


def svg_of(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])


def captured(*tokens, **named):
    n = len(tokens)
    return Trace.from_arrays(tokens, weights=np.tile(np.eye(n), (1, 1, 1, 1)), **named)


def test_tokens_and_names_are_escaped():
    page = captured("<b>x</b>", "&amp;", "<script>alert(1)</script>", "'\"", name="<i>m</i> & co")._repr_html_()
    for raw in ("<b>", "<i>", "<script", "<code>&amp;</code>"):
        assert raw not in page
    for shown in ("&lt;b&gt;x&lt;/b&gt;", "&amp;amp;", "&lt;script&gt;", "&lt;i&gt;m&lt;/i&gt; &amp; co"):
        assert shown in page


def test_nothing_is_run_and_nothing_is_loaded():
    page = random_trace(12)._repr_html_()
    assert not re.search(r"<script|<link|<img|<style|<iframe|\bon\w+=|href|src=|url\(|@import", page)
    assert re.findall(r"\w+://[^'\"]*", page) == ["http://www.w3.org/2000/svg"]  # a name, not an address to load


@pytest.mark.parametrize("n_tokens", [1, 13, 200])
def test_270_heads_stay_small(n_tokens):
    assert len(random_trace(n_tokens, n_layers=30, n_heads=9)._repr_html_().encode()) < 300_000


def test_the_worst_maps_stay_small():
    """No tile is empty, and no two neighbours have the same level."""
    queries = np.arange(100)
    weights = np.zeros((100, 100))
    weights[queries, queries % 10 * 10] = np.where(queries % 2, 0.9, 0.3)  # each row looks into a tile of its own
    page = Trace.from_arrays("a" * 100, weights=np.broadcast_to(weights, (30, 9, 100, 100)))._repr_html_()
    assert page.count("h1") >= 270 * 100 and len(page.encode()) < 300_000


def test_the_drawing_is_xml_with_a_named_square_for_each_head():
    drawing = svg_of(random_trace(20, n_layers=3, n_heads=4)._repr_html_())
    assert drawing.get("role") == "img" and drawing.get("aria-label") == "3 layers of 4 heads"
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    assert sorted(titles) == sorted(f"L{layer} H{head}" for layer in range(3) for head in range(4))
    texts = [text.text for text in drawing.iter(f"{SVG}text")]
    assert texts == ["L0", "L1", "L2", "H0", "H1", "H2", "H3"]
    assert all(int(text.get("font-size")) >= 12 for text in drawing.iter(f"{SVG}text"))


def test_darker_is_more_weight():
    weights = np.array([[1, 0, 0], [0.4, 0.6, 0], [0.4, 0.4, 0.2]])
    drawing = svg_of(Trace.from_arrays("abc", weights=weights[None, None])._repr_html_())
    drawn = {}
    for path in drawing.iter(f"{SVG}path"):
        for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d")):
            drawn |= {(int(y), int(x) + i): float(path.get("opacity")) for i in range(int(length))}
    assert drawn == {(0, 0): 1, (1, 0): 0.4, (1, 1): 0.6, (2, 0): 0.4, (2, 1): 0.4, (2, 2): 0.2}


def test_heads_that_a_layer_lacks_are_left_out():
    rng = np.random.default_rng(0)
    trace = Trace.from_arrays("abcd", weights={0: random_weights(rng, 1, 4, 4), 5: random_weights(rng, 3, 4, 4)})
    titles = [title.text for title in svg_of(trace._repr_html_()).iter(f"{SVG}title")]
    assert titles == ["L0 H0", "L5 H0", "L5 H1", "L5 H2"]


def test_long_and_cut_texts_are_said():
    trace = random_trace(100, n_cut=7)
    page = trace._repr_html_()
    assert "100 (7 more were cut)" in page and "… 40 more" in page and page.count("<code>") == 60
    assert repr(trace) == "<Trace of 100 tokens by made up: 2 layers (decoder)>"


def test_part_is_named():
    layer = made_layer(np.random.default_rng(0), 2, full_mask(3, 3))
    assert "<td>encoder</td>" in made_trace({0: layer}, part="encoder")._repr_html_()
