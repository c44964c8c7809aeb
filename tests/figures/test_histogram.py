"""Histograms draw the counts they are given, and say what was counted."""

import numpy as np
import pytest

from attnviz.figures import gradient_histogram, saturation_histogram

EDGES = [0.0, 0.25, 0.5, 1.0]


def test_bars_cover_their_bins_and_empty_bins_draw_nothing():
    bars = saturation_histogram([4, 0, 2], None, EDGES).data[0]
    np.testing.assert_array_equal(bars.y, [4, 2])
    np.testing.assert_allclose(bars.x - bars.width / 2, [0, 0.5])
    np.testing.assert_allclose(bars.x + bars.width / 2, [0.25, 1])
    np.testing.assert_allclose(bars.customdata, [[0, 0.25], [0.5, 1]])


def test_before_and_after_are_told_apart_without_colour():
    before, after = saturation_histogram([4, 0, 2], [1, 2, 3], EDGES).data
    assert before.marker.pattern.shape is None and after.marker.pattern.shape == "/"
    assert [before.name, after.name] == ["with 1/√d", "without 1/√d"]


def test_says_how_many_were_counted_and_what_was_not():
    settings = {"unit": "allowed cells", "left_out": "Row 0 is left out.", "n_not_finite": 3}
    notes = saturation_histogram([40, 20, 30], [1, 2, 87], EDGES, **settings).layout.meta["notes"]
    assert notes == [
        "90 allowed cells counted. Row 0 is left out.",
        "Not drawn: values that are not finite numbers, 3 of them.",
    ]


def test_names_both_totals_when_they_differ():
    notes = saturation_histogram([1, 1, 1], [1, 1, 0], EDGES, names=("a", "b")).layout.meta["notes"]
    assert notes == ["3 rows a, 2 rows b counted."]


def test_the_fullest_bin_is_described():
    alt = saturation_histogram([1, 5, 1], [0, 0, 7], EDGES).layout.meta["alt"]
    assert "with 1/√d: the fullest bin, 0.25 to 0.5, has 5 rows." in alt
    assert "without 1/√d: the fullest bin, 0.5 to 1, has 7 rows." in alt


def test_the_value_axis_is_fixed_by_the_edges():
    assert list(saturation_histogram([0, 0, 1], None, EDGES).layout.xaxis.range) == [0, 1]
    log = gradient_histogram([1, 2], None, [0.001, 0.01, 0.5], log_values=True).layout.xaxis
    assert log.type == "log"
    np.testing.assert_allclose(log.range, [-3, np.log10(0.5)])


def test_logarithmic_counts_take_their_range_along():
    axis = saturation_histogram([1, 0, 100], None, EDGES, log_counts=True, count_range=(0, 100)).layout.yaxis
    assert axis.type == "log"
    np.testing.assert_allclose(axis.range, [np.log10(0.5), 2])
    assert list(saturation_histogram([1, 0, 9], None, EDGES, count_range=(0, 10)).layout.yaxis.range) == [0, 10]


@pytest.mark.parametrize(
    ("counts", "edges", "settings", "sentence"),
    [
        ([1, 2], EDGES, {}, r"4 edges make 3 bins, got counts of shape \(2,\)"),
        ([1, 2], [0, 1, 1], {}, "each above the one before"),
        ([1, 2], [0, np.nan, 1], {}, "each above the one before"),
        ([1, -2], [0, 0.5, 1], {}, "whole numbers from 0"),
        ([1, 0.5], [0, 0.5, 1], {}, "whole numbers from 0"),
        ([1, 2], [0, 0.5, 1], {"names": ("one",)}, "names are two strings"),
        ([1, 2], [0, 0.5, 1], {"log_values": True}, "the first edge must be above 0"),
    ],
)
def test_refuses_counts_that_do_not_fit(counts, edges, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        gradient_histogram(counts, None, edges, **settings)
