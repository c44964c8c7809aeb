"""The themes measured: what must look different does, ramps are even, text has contrast, labels stay as they are."""

import html
import itertools

import numpy as np
import pytest

from attnviz.figures.theme import OKABE_ITO, THEMES, escape, shorten, wrap

EACH = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
RAMPS = ("weight", "measure", "below", "above")
VISIBLE = 4.5  # CIELAB distance of two flat areas side by side that nobody takes for one


def linear(colour: str) -> list[float]:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(colour: str) -> np.ndarray:
    """CIELAB by the formulas of the standard, one colour at a time."""
    red, green, blue = linear(colour)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0890
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, luminance(colour), z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def distance(one: str, other: str) -> float:
    return float(np.linalg.norm(lab(one) - lab(other)))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


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
