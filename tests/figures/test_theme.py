"""The themes measured: what must look different does, ramps are even, text has contrast, labels stay as they are."""

import base64
import html
import io
import itertools
import json

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from attnviz import figures
from attnviz.figures.colour import hex_to_rgb, sequential
from attnviz.figures.palettes import PALETTES, in_palette, palette_of
from attnviz.figures.theme import OKABE_ITO, THEMES, escape, shorten, wrap
from tests.cases import every
from tests.figures.eyes import contrast, distance, lab, linear
from tests.figures.made_up import causal_map, labels, thumbnails

EACH = every("theme", THEMES)
EACH_PALETTE = every("palette", PALETTES)
RAMPS = ("weight", "measure", "below", "above")
VISIBLE = 4.5  # CIELAB distance of two flat areas side by side that nobody takes for one
# What eyes without one kind of cone see of linear RGB (Machado, Oliveira and Fernandes 2009, table 1, severity 1.0).
EYES = {
    "all cones": np.eye(3),
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
EACH_EYE = every("eye", list(EYES))


def seen(colour: str, eye: str) -> str:
    """Return a colour as such eyes see it."""
    values = np.clip(np.asarray(EYES[eye]) @ linear(colour), 0, 1)
    levels = np.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * level):02X}" for level in levels)


@EACH
@pytest.mark.parametrize("zero", ["weight", "below", "measure"])
def test_zero_masked_and_page_look_different(theme, zero):
    looks = [getattr(theme, zero)[0], theme.masked, theme.page]
    assert min(distance(*pair) for pair in itertools.combinations(looks, 2)) > VISIBLE


@EACH
@pytest.mark.parametrize("ramp", RAMPS)
def test_masked_is_no_colour_of_a_ramp(theme, ramp):
    assert min(distance(theme.masked, colour) for colour in getattr(theme, ramp)) > VISIBLE


@EACH
@pytest.mark.parametrize("ramp", RAMPS)
def test_ramps_are_perceptually_even(theme, ramp):
    lightness = np.array([lab(colour)[0] for colour in getattr(theme, ramp)])
    steps = np.diff(lightness)
    even = (lightness[-1] - lightness[0]) / len(steps)
    np.testing.assert_allclose(steps, even, atol=0.75)  # sRGB has no finer steps than about half a unit
    assert abs(lightness[-1] - lightness[0]) > 55


@EACH
@EACH_PALETTE
def test_every_palette_is_perceptually_even(theme, palette):
    lightness = np.array([lab(colour)[0] for colour in palette_of(palette, theme.name).weight])
    even = (lightness[-1] - lightness[0]) / (len(lightness) - 1)
    np.testing.assert_allclose(np.diff(lightness), even, atol=0.75)
    assert abs(lightness[-1] - lightness[0]) > 65


@EACH
@EACH_PALETTE
@EACH_EYE
def test_every_eye_tells_more_weight_from_less_in_every_palette(theme, palette, eye):
    ramp = palette_of(palette, theme.name).weight
    lightness = np.array([lab(seen(colour, eye))[0] for colour in ramp])
    steps = np.diff(lightness) * np.sign(lightness[-1] - lightness[0])
    assert steps.min() > 0.5
    assert contrast(*(seen(colour, eye) for colour in (ramp[0], ramp[-1]))) > 7


@EACH
@EACH_PALETTE
@EACH_EYE
def test_every_eye_tells_zero_masked_and_page_apart_in_every_palette(theme, palette, eye):
    ramp = [seen(colour, eye) for colour in palette_of(palette, theme.name).weight]
    masked, page = seen(theme.masked, eye), seen(theme.page, eye)
    assert min(distance(ramp[0], page), distance(masked, page)) > VISIBLE
    assert min(distance(masked, colour) for colour in ramp) > VISIBLE


@EACH
@EACH_PALETTE
@EACH_EYE
def test_every_eye_sees_frames_on_every_weight_of_every_palette(theme, palette, eye):
    look = palette_of(palette, theme.name)
    assert min(distance(seen(look.mark, eye), seen(colour, eye)) for colour in look.weight) > 15
    assert contrast(look.mark, theme.page) > 3


@EACH
@EACH_PALETTE
@pytest.mark.parametrize("scale", ["linear", "sqrt", "without_first"])
def test_a_map_in_another_palette_differs_in_its_colours_alone(theme, palette, scale):
    weights, allowed, _ = causal_map(13)
    look = {"marked": [(12, 3)], "forbidden": [(5, 2)], "theme": theme.name, "scale": scale}
    figure = figures.head_map(weights, labels(13), labels(13), allowed=allowed, **look)
    before, wanted = figure.to_dict(), palette_of(palette, theme.name)
    painted = in_palette(figure, palette)
    assert json.dumps(figure.to_dict(), default=str) == json.dumps(before, default=str)
    expected = sequential(wanted.weight, power=2 if scale == "sqrt" else 1)
    assert [list(stop) for stop in painted.data[0].colorscale] == expected
    now = painted.to_dict()
    now["data"][0]["colorscale"] = before["data"][0]["colorscale"]
    for shape, own in zip(now["layout"]["shapes"], before["layout"]["shapes"], strict=True):
        if own["line"]["color"] == theme.accent:
            assert shape["line"]["color"] == wanted.mark
            shape["line"]["color"] = theme.accent
    assert json.dumps(now, default=str) == json.dumps(before, default=str)


@EACH_PALETTE
@pytest.mark.parametrize("kind", ["scores", "difference"])
def test_other_meanings_keep_their_colours(palette, kind):
    figure = figures.head_map(np.eye(3) - 0.5, labels(3), labels(3), kind=kind)
    assert in_palette(figure, palette) is figure


@EACH
@EACH_PALETTE
@pytest.mark.parametrize("scale", ["linear", "sqrt"])
def test_thumbnails_are_painted_in_the_palette_too(theme, palette, scale):
    maps = np.zeros((1, 2, 4, 4))
    maps[0, 1] = 1.0
    painted = in_palette(figures.overview(maps, [0], scale=scale, theme=theme.name), palette)
    data = base64.b64decode(painted.layout.images[0].source.split(",")[1])
    picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))  # checks the checksums too
    colours = {tuple(pixel[:3]) for pixel in picture.reshape(-1, 4) if pixel[3]}
    ends = np.rint(255 * hex_to_rgb([palette_of(palette, theme.name).weight[i] for i in (0, -1)])).astype(int)
    assert colours == {tuple(end) for end in ends}


def test_refuses_a_palette_that_is_not_there():
    figure = figures.overview(thumbnails(), [0, 1, 2])
    with pytest.raises(ValueError, match="one of indigo, viridis, cividis, grey, got 'jet'"):
        in_palette(figure, "jet")
    with pytest.raises(ValueError, match='"light" or "dark"'):
        palette_of("grey", "sepia")
    assert isinstance(in_palette(figure, "grey"), go.Figure)


@EACH
def test_the_two_arms_of_signed_reach_equally_far(theme):
    ends = [lab(theme.below[-1])[0], lab(theme.above[-1])[0]]
    assert theme.below[0] == theme.above[0] == theme.signed[len(theme.signed) // 2][1]
    assert ends[0] == pytest.approx(ends[1], abs=3)
    assert distance(theme.below[-1], theme.above[-1]) > 50


@EACH
def test_text_can_be_read(theme):
    assert min(contrast(theme.text, theme.page), contrast(theme.text, theme.hover)) > 7
    assert min(contrast(colour, theme.page) for colour in (theme.first, theme.second, theme.accent)) > 3


def test_comparisons_come_from_okabe_and_ito():
    assert len(set(OKABE_ITO)) == 8
    assert {c for theme in THEMES.values() for c in (theme.first, theme.second)} <= set(OKABE_ITO)


@pytest.mark.parametrize("label", ["<s>", "<b>x</b>", "$x$ and $y$", "a&b", "&lt;", "·the", "if a<b and c>d", "日本"])
def test_escaped_labels_read_back_as_they_were(label):
    assert html.unescape(escape(label)) == label
    assert not set(escape(label)) & set("<>$")


def test_right_to_left_text_is_isolated():
    assert escape("שלום") == "\u2068שלום\u2069"
    assert escape("a\u202eb") == "\u2068a\u202eb\u2069"


def test_shorten_keeps_both_ends():
    assert shorten("a" * 30 + "b" * 30, 20) == "a" * 10 + "…" + "b" * 9
    assert shorten("short") == "short"


def test_wrapped_lines_are_escaped_and_fit():
    wrapped = wrap("a <b>word</b> " * 20, 13, width=300)
    lines = wrapped.split("<br>")
    assert len(lines) > 4
    assert max(len(html.unescape(line)) for line in lines) <= 300 / (0.52 * 13) + 1
    assert " ".join(map(html.unescape, lines)) == ("a <b>word</b> " * 20).strip()
