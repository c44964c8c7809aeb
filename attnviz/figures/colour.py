"""Perceptually even colour ramps, made with NumPy.

A ramp is a list of hex colours whose CIELAB lightness L* falls or rises by the same amount at every step, so that twice
the value looks twice as far along. Nothing here knows what the colours mean; `theme` gives them a meaning.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

N_STOPS = 33  # enough that a straight line in sRGB between two stops stays within half a unit of L* of the curve

# sRGB primaries to CIE XYZ under the white point D65 (IEC 61966-2-1), rows divided by that white point.
_RGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_RGB_TO_WHITE_XYZ = _RGB_TO_XYZ / _RGB_TO_XYZ.sum(axis=1, keepdims=True)


def hex_to_rgb(colours: Sequence[str]) -> NDArray[np.float64]:
    """Return colours like "#1E1B4B" as numbers from 0 to 1.

    Args:
        colours: n strings, each "#" and six hexadecimal digits.

    Returns:
        (n, 3): red, green and blue as a screen stores them (with the sRGB curve applied).

    Raises:
        ValueError: a string is not "#" with six hexadecimal digits.

    >>> hex_to_rgb(["#FF0000"]).tolist()
    [[1.0, 0.0, 0.0]]
    """
    for colour in colours:
        if len(colour) != 7 or colour[0] != "#":
            raise ValueError(f'a colour is "#" and six hexadecimal digits, like "#1E1B4B", got {colour!r}')
    return np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours]) / 255


def rgb_to_hex(rgb: ArrayLike) -> list[str]:
    """Return (n, 3) numbers from 0 to 1 as n hex strings; what lies outside is cut to the nearest end.

    >>> rgb_to_hex([[1.0, 0.0, 0.5]])
    ['#FF0080']
    """
    levels = np.rint(np.clip(np.asarray(rgb), 0, 1) * 255).astype(int)
    return ["#{:02X}{:02X}{:02X}".format(*row) for row in levels]


def rgb_to_lab(rgb: ArrayLike) -> NDArray[np.float64]:
    """Return sRGB colours as CIELAB: lightness L* from 0 (black) to 100 (white), then a* and b*.

    Args:
        rgb: (n, 3) from 0 to 1.

    Returns:
        (n, 3); the distance between two rows is about how different two colours look (1 is hardly visible).

    Source: CIE 15:2004, section 8.2.1; the sRGB curve is IEC 61966-2-1.

    >>> rgb_to_lab([[1.0, 1.0, 1.0]]).round(3).tolist()
    [[100.0, 0.0, 0.0]]
    """
    values = np.asarray(rgb, dtype=np.float64)
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    xyz = linear @ _RGB_TO_WHITE_XYZ.T  # (n, 3)
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def lab_to_rgb(lab: ArrayLike) -> NDArray[np.float64]:
    """Return CIELAB colours as sRGB, the inverse of `rgb_to_lab`; colours no screen has fall outside 0 to 1."""
    lightness, a, b = np.asarray(lab, dtype=np.float64).T
    y = (lightness + 16) / 116
    roots = np.stack([y + a / 500, y, y - b / 200], axis=1)  # (n, 3)
    xyz = np.where(roots > 6 / 29, roots**3, 3 * (6 / 29) ** 2 * (roots - 4 / 29))
    linear = np.clip(xyz @ np.linalg.inv(_RGB_TO_WHITE_XYZ).T, 0, None)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def even_ramp(anchors: Sequence[str], n_stops: int = N_STOPS) -> list[str]:
    """Return a ramp through the anchors' hues whose lightness L* changes by equal steps.

    Args:
        anchors: hex colours from the ramp's first to its last, each lighter than the one before, or each darker.
        n_stops: how many colours to return, at least 2.

    Returns:
        n_stops hex colours; the first and the last are the first and the last anchor.

    Raises:
        ValueError: the lightness of the anchors goes up and down.

    >>> even_ramp(["#FFFFFF", "#000000"], 3)
    ['#FFFFFF', '#777777', '#000000']
    """
    lightness, a, b = rgb_to_lab(hex_to_rgb(anchors)).T
    steps = np.diff(lightness)
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(f"the anchors must get lighter all the way or darker all the way, got L* {lightness.round(1)}")
    order = np.argsort(lightness)
    even = np.linspace(lightness[0], lightness[-1], n_stops)
    hue = [np.interp(even, lightness[order], channel[order]) for channel in (a, b)]
    return rgb_to_hex(lab_to_rgb(np.stack([even, *hue], axis=1)))


def sequential(ramp: Sequence[str], *, power: float = 1.0) -> list[list[object]]:
    """Return a ramp as plotly's colour scale, a list of [position, colour].

    With power 2 the colour of a value v in 0..1 is the ramp's colour at sqrt(v): small values are told apart, while the
    numbers that are drawn, hovered and printed on the colour bar stay the true ones.

    Args:
        ramp: hex colours from the smallest value to the largest.
        power: stop i of n sits at (i / (n - 1)) ** power; 1 is linear.

    >>> sequential(["#FFFFFF", "#777777", "#000000"], power=2)
    [[0.0, '#FFFFFF'], [0.25, '#777777'], [1.0, '#000000']]
    """
    positions = np.linspace(0, 1, len(ramp)) ** power
    return [[round(float(position), 6), colour] for position, colour in zip(positions, ramp, strict=True)]


def diverging(below: Sequence[str], above: Sequence[str]) -> list[list[object]]:
    """Return two ramps that start at the same colour as one colour scale with that colour in the middle.

    Args:
        below: hex colours from zero to the most negative value.
        above: hex colours from zero to the most positive value.

    >>> diverging(["#FFFFFF", "#FF0000"], ["#FFFFFF", "#0000FF"])
    [[0.0, '#FF0000'], [0.5, '#FFFFFF'], [1.0, '#0000FF']]
    """
    return sequential([*reversed(below), *above[1:]])
