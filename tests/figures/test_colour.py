"""Colour conversions against published values, and ramps against what "perceptually even" means."""

import numpy as np
import pytest

from attnviz.figures.colour import diverging, even_ramp, hex_to_rgb, lab_to_rgb, rgb_to_hex, rgb_to_lab, sequential

# CIELAB under D65 of the sRGB primaries and of a middle grey, as colour tables print them.
PUBLISHED = {
    "#FF0000": (53.24, 80.09, 67.20),
    "#00FF00": (87.73, -86.18, 83.18),
    "#0000FF": (32.30, 79.19, -107.86),
    "#808080": (53.59, 0.0, 0.0),
    "#000000": (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("colour", PUBLISHED)
def test_lab_of_known_colours(colour):
    np.testing.assert_allclose(rgb_to_lab(hex_to_rgb([colour]))[0], PUBLISHED[colour], atol=0.03)


def test_lab_and_back():
    rgb = np.random.default_rng(0).random((200, 3))
    np.testing.assert_allclose(lab_to_rgb(rgb_to_lab(rgb)), rgb, atol=1e-9)


def test_hex_and_back():
    colours = ["#1E1B4B", "#FFFFFF", "#000000", "#0A0B0C"]
    assert rgb_to_hex(hex_to_rgb(colours)) == colours


@pytest.mark.parametrize("colour", ["1E1B4B", "#FFF", "indigo"])
def test_refuses_what_is_no_hex_colour(colour):
    with pytest.raises(ValueError, match="six hexadecimal digits"):
        hex_to_rgb([colour])


def test_ramp_keeps_its_ends():
    ramp = even_ramp(["#EEF0FE", "#6366F1", "#1E1B4B"], 17)
    assert (ramp[0], ramp[-1], len(ramp)) == ("#EEF0FE", "#1E1B4B", 17)


def test_ramp_refuses_lightness_that_turns():
    with pytest.raises(ValueError, match="lighter all the way or darker all the way"):
        even_ramp(["#FFFFFF", "#000000", "#FFFFFF"])


def test_power_2_gives_a_value_the_colour_of_its_square_root():
    ramp = even_ramp(["#FFFFFF", "#000000"], 33)
    linear, by_root = sequential(ramp), sequential(ramp, power=2)
    for (position, colour), (at, same) in zip(linear, by_root, strict=True):
        assert colour == same
        assert at == pytest.approx(position**2, abs=1e-6)


def test_diverging_has_one_middle():
    scale = diverging(["#FFFFFF", "#FF8800", "#884400"], ["#FFFFFF", "#8800FF", "#440088"])
    assert scale[2] == [0.5, "#FFFFFF"]
    assert [colour for _, colour in scale] == ["#884400", "#FF8800", "#FFFFFF", "#8800FF", "#440088"]
