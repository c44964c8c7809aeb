"""Bars for next tokens and for one row of weights."""

import numpy as np
import pytest

from attnviz.figures import next_token_bars, row_bars
from attnviz.figures.bars import percent
from tests.figures.made_up import causal_map, labels


def test_next_tokens_in_the_order_given_first_on_top():
    figure = next_token_bars([("·Paris", 0.773), ("·the", 0.02)])
    np.testing.assert_allclose(figure.data[0].x, [77.3, 2], rtol=1e-6)
    assert list(figure.data[0].text) == ["77.3 %", "2 %"]
    assert figure.layout.yaxis.labelalias == {"0": "·Paris", "1": "·the"}
    assert list(figure.layout.yaxis.range) == [1.5, -0.5]


def test_a_token_stands_in_one_row_before_and_after():
    before, after = next_token_bars([("a", 0.5), ("b", 0.3)], [("c", 0.4), ("a", 0.1)]).data
    np.testing.assert_array_equal(before.y, [0, 1])
    np.testing.assert_array_equal(np.sort(after.y), [0, 2])
    assert dict(zip(after.y.tolist(), after.text, strict=True)) == {0: "10 %", 2: "40 %"}


def test_says_why_a_bar_is_missing():
    assert next_token_bars([("a", 0.5)], [("a", 0.4)]).layout.meta["notes"] == []
    assert len(next_token_bars([("a", 0.5)], [("b", 0.4)]).layout.meta["notes"]) == 1


def test_equal_labels_are_two_rows():
    figure = next_token_bars([("·a", 0.5), ("·a", 0.25)])
    np.testing.assert_array_equal(figure.data[0].y, [0, 1])


def test_next_tokens_may_all_be_impossible():
    figure = next_token_bars([("a", 0.0)])
    assert figure.layout.xaxis.range[1] > 0
    assert list(figure.data[0].text) == ["0 %"]


@pytest.mark.parametrize(
    ("share", "text"), [(0.98765, "98.8 %"), (0.1, "10 %"), (0.001, "0.1 %"), (0.0000123, "0.0012 %"), (1.0, "100 %")]
)
def test_percent_has_the_digits_it_deserves(share, text):
    assert percent(share) == text


@pytest.mark.parametrize("candidates", [[], [("a", 1.5)], [("a", float("nan"))], [("a", -0.1)]])
def test_refuses_what_is_no_probability(candidates):
    with pytest.raises(ValueError, match="probability"):
        next_token_bars(candidates)


def test_a_row_in_the_order_of_the_text_with_masked_keys_as_bands():
    weights, allowed, _ = causal_map(13)
    figure = row_bars(weights[8], labels(13), query_label="·it", allowed=allowed[8])
    np.testing.assert_array_equal(figure.data[0].x, range(9))
    np.testing.assert_allclose(figure.data[0].y, weights[8, :9], rtol=1e-6)
    (band,) = figure.layout.shapes
    assert (band.x0, band.x1, band.layer) == (8.5, 12.5, "below")
    assert list(figure.layout.yaxis.range) == [0, 1]


def test_bands_are_as_many_as_runs():
    allowed = [False, True, True, False, False, True, False]
    shapes = row_bars(np.full(7, 0.2), labels(7), query_label="q", allowed=allowed).layout.shapes
    assert [(band.x0, band.x1) for band in shapes] == [(-0.5, 0.5), (2.5, 4.5), (5.5, 6.5)]


def test_row_of_a_tile_keeps_the_indices_of_the_text():
    figure = row_bars([0.25, 0.5], ["a", "b"], query_label="q", key_start=64)
    np.testing.assert_array_equal(figure.data[0].x, [64, 65])
    assert "largest: b, 0.5." in figure.layout.meta["alt"]


@pytest.mark.parametrize(
    ("weights", "settings", "sentence"),
    [
        ([0.1, 0.2, 0.3], {}, r"got 2 labels, weights \(3,\)"),
        ([0.1, 2.0], {}, "between 0 and 1"),
        ([0.1, np.nan], {}, "between 0 and 1"),
        ([0.1, 0.2], {"allowed": [True]}, r"allowed \(1,\)"),
        ([0.1, 0.2], {"names": "ab"}, "names are two strings"),
    ],
)
def test_refuses_rows_that_do_not_fit(weights, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        row_bars(weights, ["a", "b"], query_label="q", **settings)
