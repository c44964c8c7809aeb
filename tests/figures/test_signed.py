"""Bars above and below 0, and scores over distance: which numbers are drawn where."""

import numpy as np
import pytest

from attnviz import figures
from attnviz.figures.theme import THEMES


def drawn(figure, axis="y"):
    """Return x -> the height of the bar there, over all traces (for bars that lie down: y -> length)."""
    other = "x" if axis == "y" else "y"
    return {int(place): float(value) for bar in figure.data for place, value in zip(bar[other], bar[axis], strict=True)}


def test_component_bars_tells_the_largest_from_the_others():
    figure = figures.component_bars([3.0, -1.0, 0.5, -2.0], highlighted=[0, 3], names=("big", "small"))
    assert drawn(figure) == {0: 3.0, 1: -1.0, 2: 0.5, 3: -2.0}
    big, small = figure.data
    assert (big.name, list(big.x), small.name, list(small.x)) == ("big", [0, 3], "small", [1, 2])
    assert big.marker.color != small.marker.color and big.marker.pattern.shape == "/"
    assert figure.layout.showlegend
    assert "sum to 0.5" in figure.layout.meta["alt"] and "component 0, 3" in figure.layout.meta["alt"]


def test_component_bars_of_one_kind_need_no_legend():
    figure = figures.component_bars([1.0, 2.0])
    assert len(figure.data) == 1 and not figure.layout.showlegend


@pytest.mark.parametrize(
    ("values", "highlighted", "message"),
    [([], [], "1 to 1024"), ([np.nan], [], "finite"), ([[1.0]], [], "shape"), ([1.0], [1], "0 to 0")],
)
def test_component_bars_refuses(values, highlighted, message):
    with pytest.raises(ValueError, match=message):
        figures.component_bars(values, highlighted=highlighted)


def test_labelled_bars_keeps_equal_labels_apart_and_leaves_room_for_numbers():
    figure = figures.labelled_bars([2.0, -1.0, 0.0], ["a", "a", "b"], start=5, highlighted=[2])
    assert drawn(figure, "x") == {5: 2.0, 6: -1.0, 7: 0.0}
    assert figure.layout.yaxis.labelalias == {"5": "a", "6": "a", "7": "b"}
    low, high = figure.layout.xaxis.range
    assert low < -1 and high > 2
    assert sorted(text for bar in figure.data for text in bar.text) == ["0", "2", "−1"]


def test_labelled_bars_of_nothing_but_zeros_have_an_axis():
    low, high = figures.labelled_bars([0.0], ["a"]).layout.xaxis.range
    assert low < high


def test_labelled_bars_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match="a label for each of 2"):
        figures.labelled_bars([1.0, 2.0], ["a"])


@pytest.mark.parametrize("theme", THEMES)
def test_a_distance_curve_marks_where_the_two_stand(theme):
    scores = np.array([1.0, 5.0, -2.0])
    figure = figures.distance_curve(scores, marked=1, theme=theme)
    line, ring = figure.data
    np.testing.assert_array_equal(line.y, scores)
    assert (list(ring.x), list(ring.y)) == ([1], [5.0])
    assert "highest at distance 1, 5; where they stand, at distance 1, 5." in figure.layout.meta["alt"]


def test_a_distance_curve_draws_the_average_and_its_band():
    low, mean, high = np.zeros(3), np.ones(3), np.full(3, 2.0)
    figure = figures.distance_curve([3.0, 4.0, 5.0], average=mean, band=(low, high), names=("it", "all"))
    np.testing.assert_array_equal([trace.y for trace in figure.data], [low, high, [3, 4, 5], mean])  # the mean on top
    assert [trace.name for trace in figure.data][2:] == ["it", "all"]


def test_two_distance_curves_can_share_an_axis():
    low, high = figures.distance_curve([3.0, 4.0], value_range=(-10, 10)).layout.yaxis.range
    assert low < -10 and high > 10
    assert figures.distance_curve([3.0, 4.0]).layout.yaxis.range is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scores": [1.0, np.inf]}, "finite"),
        ({"scores": [1.0], "average": [1.0, 2.0]}, "one length"),
        ({"scores": [1.0, 2.0], "marked": 2}, "0 to 1"),
    ],
)
def test_a_distance_curve_refuses(settings, message):
    with pytest.raises(ValueError, match=message):
        figures.distance_curve(**settings)


def test_a_component_map_outlines_the_marked_rows():
    figure = figures.component_map(np.eye(3), ["a", "b", "c"], start=7, marked=[8])
    (outline,) = figure.layout.shapes
    assert outline.path == "M-0.5,0.5L2.5,0.5L2.5,1.5L-0.5,1.5Z"
    assert outline.line.color == THEMES["light"].accent
    assert figures.component_map(np.eye(3), ["a", "b", "c"]).layout.shapes == ()
