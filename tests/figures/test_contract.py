"""What every figure promises: labels as they are, readable type, a description, small JSON, one look everywhere."""

import base64
import json
import re
from collections.abc import Iterator

import numpy as np
import plotly.io as pio
import pytest

from attnviz.figures.theme import THEMES, on_page
from tests.cases import every
from tests.figures.made_up import ALL

TITLE = "<b>Bold</b> & $x$"
EVERY = every("draw", ALL)
DTYPES = {"i1", "i2", "i4", "u1", "u2", "f4"}  # without doubles, which cost twice as much and show no more


def parts(node, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield (path, value) for every leaf and every typed array of a figure's JSON, the description aside."""
    if isinstance(node, dict) and "bdata" not in node:
        for name, value in node.items():
            if path + name != "layout.meta":
                yield from parts(value, f"{path}{name}.")
    elif isinstance(node, list):
        for value in node:
            yield from parts(value, path)
    else:
        yield path, node


def described(figure) -> dict:
    return json.loads(figure.to_json())


@EVERY
@every("theme", tuple(THEMES))
def test_no_text_is_read_as_html_or_mathematics(draw, theme):
    texts = [text for path, text in parts(described(draw(title=TITLE, theme=theme))) if isinstance(text, str)]
    drawn = [re.sub(r"^data:image/png;base64,.*|<br>|<extra></extra>", "", text) for text in texts]
    assert any("&lt;b&gt;Bold&lt;/b&gt; &amp; &#36;x&#36;" in text for text in drawn)
    assert not [text for text in drawn if re.search(r"[<>$]|&(?!amp;|lt;|gt;|#36;)", text)]


@EVERY
def test_no_nan_is_printed(draw):
    figure = described(draw())
    leaves = [leaf for _, leaf in parts(figure)] + [leaf for _, leaf in parts(figure["layout"]["meta"])]
    assert not [leaf for leaf in leaves if isinstance(leaf, float) and not np.isfinite(leaf)]
    assert not [leaf for leaf in leaves if isinstance(leaf, str) and re.search(r"\b(nan|inf)\b", leaf, re.IGNORECASE)]


@EVERY
def test_arrays_travel_as_small_typed_arrays(draw):
    leaves = list(parts(described(draw())["data"]))
    arrays = [leaf for _, leaf in leaves if isinstance(leaf, dict)]
    assert arrays
    assert {leaf["dtype"] for leaf in arrays} <= DTYPES
    assert not [path for path, leaf in leaves if path in ("x.", "y.", "z.") and not isinstance(leaf, dict)]


@EVERY
def test_has_a_description_and_a_reading(draw):
    meta = draw(title="A head").layout.meta
    assert meta["alt"].startswith("A head: ")
    assert "None" not in meta["alt"]
    assert meta["how_to_read"].endswith(".") and meta["how_to_read"].count(". ") == 0  # one sentence
    assert all(note in meta["alt"] for note in meta["notes"])


@EVERY
def test_type_is_as_large_as_asked_for(draw):
    sizes = [size for path, size in parts(described(draw(label_size=18))) if path.endswith("font.size.")]
    assert len(sizes) >= 3
    assert min(sizes) >= 18


@EVERY
def test_refuses_labels_too_small_to_read(draw):
    with pytest.raises(ValueError, match="at least 12 px"):
        draw(label_size=11)


@EVERY
def test_refuses_an_unknown_theme(draw):
    with pytest.raises(ValueError, match='"light" or "dark"'):
        draw(theme="sepia")


@EVERY
def test_refuses_an_option_that_the_figure_does_not_have(draw):
    with pytest.raises(TypeError, match=r"^[a-z_]+\(\) got an unexpected keyword argument 'colour'$"):
        draw(colour="red")


@EVERY
@every("theme", tuple(THEMES))
def test_sits_on_the_page_with_its_own_background(draw, theme):
    figure = draw(theme=theme)
    layout = figure.layout.template.layout
    assert layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert (figure.layout.plot_bgcolor or layout.plot_bgcolor) in (THEMES[theme].page, THEMES[theme].masked)
    assert layout.xaxis.automargin and layout.yaxis.automargin
    assert on_page(figure).layout.paper_bgcolor == THEMES[theme].page
    assert figure.layout.paper_bgcolor is None  # the figure itself stays as it was


@EVERY
def test_looks_the_same_whatever_the_default_template_is(draw, monkeypatch):
    before = draw().to_json()
    with monkeypatch.context() as patch:
        patch.setattr(pio.templates, "default", "plotly_dark")
        assert draw().to_json() == before


@EVERY
def test_is_small(draw):
    assert len(draw().to_json()) < 20_000


def test_typed_arrays_are_what_was_drawn():
    z = described(ALL["head_map"]())["data"][0]["z"]
    values = np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(13, 13)
    assert np.isnan(values[0, 1])
    np.testing.assert_allclose(np.nansum(values, axis=1), 1, atol=1e-6)
