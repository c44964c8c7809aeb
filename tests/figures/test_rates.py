"""Shares with their intervals: where dots and bars are, what is told apart, what the description says."""

import numpy as np
import pytest

from attnviz.figures import rate_dots
from attnviz.figures.theme import THEMES
from tests.figures.eyes import contrast

NAN = float("nan")
ROWS = [("L9 H4", 0.875, 0.8, 0.95), ("L3 H1", 0.5, 0.25, 0.625), ("nearest candidate", 0.25, NAN, NAN)]


def test_dots_stand_at_their_share_and_bars_reach_to_both_ends() -> None:
    (dots,) = rate_dots(ROWS).data
    np.testing.assert_allclose(dots.x, [87.5, 50, 25])
    np.testing.assert_allclose(dots.x + dots.error_x.array, [95, 62.5, 25], rtol=1e-6)  # no interval, no line
    np.testing.assert_allclose(dots.x - dots.error_x.arrayminus, [80, 25, 25])
    assert not dots.error_x.symmetric and list(dots.y) == [0, 1, 2]


def test_rows_go_down_under_their_names_and_percent_goes_right() -> None:
    layout = rate_dots(ROWS, value_name="right <b>").layout
    assert list(layout.yaxis.categoryarray) == [0, 1, 2]
    assert layout.yaxis.labelalias == {"0": "L9 H4", "1": "L3 H1", "2": "nearest candidate"}
    assert layout.yaxis.range[0] > 2 and layout.yaxis.range[1] < 0
    assert layout.xaxis.range[0] == 0 and layout.xaxis.range[1] > 100
    assert layout.xaxis.title.text == "right &lt;b&gt;"
    heights = [rate_dots(ROWS[:n]).layout.height for n in (1, 2, 3)]
    assert heights == sorted(set(heights)) and rate_dots(ROWS, height=400).layout.height == 400


@pytest.mark.parametrize("theme", THEMES)
def test_highlighted_rows_differ_in_colour_and_shape(theme: str) -> None:
    plain, chosen = rate_dots(ROWS, highlighted=[0, 2], theme=theme).data
    assert list(plain.y) == [1] and list(chosen.y) == [0, 2]
    np.testing.assert_allclose(chosen.x, [87.5, 25])
    assert plain.marker.symbol != chosen.marker.symbol and plain.marker.color != chosen.marker.color
    assert plain.error_x.color == plain.marker.color and chosen.error_x.color == chosen.marker.color
    assert min(contrast(dots.marker.color, THEMES[theme].page) for dots in (plain, chosen)) > 2.9
    assert [dots.marker.symbol for dots in rate_dots(ROWS, highlighted=range(3)).data] == [chosen.marker.symbol]


def test_chance_is_a_dashed_line_from_top_to_bottom() -> None:
    (line,) = rate_dots(ROWS, chance=0.5).layout.shapes
    assert (line.x0, line.x1, line.y0, line.y1, line.yref) == (50, 50, 0, 1, "paper")
    assert line.line.dash == "dash"
    assert rate_dots(ROWS).layout.shapes == ()
    assert rate_dots(ROWS, chance=0.0).layout.shapes[0].x0 == 0


def test_names_numbers_and_intervals_are_said() -> None:
    figure = rate_dots(ROWS, title="Heads")
    assert figure.layout.meta["alt"] == "Heads: L9 H4 88 % [80, 95]; L3 H1 50 % [25, 62]; nearest candidate 25 %."
    assert list(figure.data[0].customdata) == [
        "L9 H4: 87.5 % [80, 95]",
        "L3 H1: 50.0 % [25, 62]",
        "nearest candidate: 25.0 %",
    ]
    assert rate_dots(ROWS, how_to_read="A dot.").layout.meta["how_to_read"] == "A dot."


def test_equal_names_keep_their_own_rows() -> None:
    (dots,) = rate_dots([("a", 0.25, NAN, NAN), ("a", 0.75, NAN, NAN)]).data
    assert list(dots.y) == [0, 1] and list(dots.x) == [25, 75]


@pytest.mark.parametrize(
    ("rows", "settings", "sentence"),
    [
        ([], {}, "share from 0 to 1"),
        ([("a", 1.5, NAN, NAN)], {}, "share from 0 to 1"),
        ([("a", -0.1, NAN, NAN)], {}, "share from 0 to 1"),
        ([("a", NAN, NAN, NAN)], {}, "share from 0 to 1"),
        (ROWS, {"highlighted": [3]}, "are 0 to 2, got"),
        (ROWS, {"highlighted": [-1]}, "are 0 to 2, got"),
    ],
)
def test_refuses_what_is_no_share_or_no_row(rows: list, settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rate_dots(rows, **settings)
