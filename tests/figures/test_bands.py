"""The kept vectors as bands: which cell has which size and place, where new ones are framed, what is refused."""

import numpy as np
import pytest

from attnviz.figures import cache_bands
from attnviz.figures.theme import THEMES
from tests.figures.eyes import contrast

SIZES = np.array([[1.0, 2.0, 3.0, 0.5], [0.0, 4.0, 1.5, 8.0]])
BANDS, LABELS = ["K 0", "K <1>"], ["·the", "·cat", "·the", "$x$"]
NAN = float("nan")


def test_a_row_a_band_and_a_column_a_token() -> None:
    figure = cache_bands(SIZES, BANDS, LABELS, start=90)
    (cells,) = figure.data
    np.testing.assert_array_equal(cells.z, SIZES)
    assert list(cells.x) == [90, 91, 92, 93] and list(cells.y) == [0, 1]
    assert figure.layout.xaxis.labelalias == {"90": "·the", "91": "·cat", "92": "·the", "93": "&#36;x&#36;"}
    assert figure.layout.yaxis.labelalias == {"0": "K 0", "1": "K &lt;1&gt;"}
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first band is on top


@pytest.mark.parametrize(("new", "left"), [(1, 2.5), (2, 1.5), (4, -0.5)])
@pytest.mark.parametrize("theme", THEMES)
def test_the_new_ones_at_the_right_end_are_framed(new: int, left: float, theme: str) -> None:
    (frame,) = cache_bands(SIZES, BANDS, LABELS, new=new, start=90, theme=theme).layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (left, 3.5, -0.5, 1.5)  # categories are counted from the left
    assert contrast(frame.line.color, THEMES[theme].page) > 2.9
    assert frame.fillcolor is None and frame.line.width >= 2


def test_nothing_new_has_no_frame() -> None:
    assert cache_bands(SIZES, BANDS, LABELS).layout.shapes == ()


def test_colours_go_from_nothing_to_the_largest_unless_told() -> None:
    own = cache_bands(SIZES, BANDS, LABELS).data[0]
    assert (own.zmin, own.zmax) == (0, 8)
    told = cache_bands(SIZES, BANDS, LABELS, value_range=(2, 5)).data[0]
    assert (told.zmin, told.zmax) == (2, 5)
    nothing = cache_bands(np.zeros((1, 2)), ["V"], ["a", "b"]).data[0]
    assert nothing.zmin < nothing.zmax


def test_it_says_how_many_are_kept_and_how_many_are_new() -> None:
    alt = cache_bands(SIZES, BANDS, LABELS, new=1, title="Keys").layout.meta["alt"]
    assert alt == "Keys: size of 4 kept vectors in each of 2 bands, from 0 to 8; 1 new at the right end."


def test_more_bands_are_higher() -> None:
    heights = [cache_bands(np.ones((n, 2)), ["K"] * n, ["a", "b"]).layout.height for n in (1, 3, 9)]
    assert heights == sorted(set(heights))
    assert cache_bands(SIZES, BANDS, LABELS, height=400).layout.height == 400


@pytest.mark.parametrize(
    ("sizes", "bands", "labels", "new", "sentence"),
    [
        (SIZES, BANDS[:1], LABELS, 0, r"1 bands, 4 tokens.*got \(2, 4\)"),
        (SIZES, BANDS, LABELS[:3], 0, r"2 bands, 3 tokens.*got \(2, 4\)"),
        (np.ones((0, 2)), [], ["a", "b"], 0, "got"),
        (np.ones((1, 0)), ["K"], [], 0, "got"),
        (np.ones((1, 257)), ["K"], ["a"] * 257, 0, "at most 256"),
        ([[1, NAN]], ["K"], ["a", "b"], 0, "finite sizes"),
        ([[1, -1]], ["K"], ["a", "b"], 0, "finite sizes"),
        (SIZES, BANDS, LABELS, 5, "no more new tokens"),
        (SIZES, BANDS, LABELS, -1, "no more new tokens"),
    ],
)
def test_refuses_what_is_no_band(sizes: object, bands: list[str], labels: list[str], new: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        cache_bands(sizes, bands, labels, new=new)
