"""Costs over the length, the grid of blocks, and amounts in words."""

import numpy as np
import pytest

from attnviz.figures import THEMES, Curve, Mark, cost_curves, flash_grid, quantity

S = np.array([64, 128, 256, 512])
LINES = [Curve("whole", S, 4.0 * S**2), Curve("blocks", S, 64.0 * S), Curve("s²", S, 1.0 * S**2, guide=True)]
NAMES = ["0 to 1", "2 to 3", "4"]
CAUSAL = np.triu(np.ones((3, 3), bool), 1)


def test_curves_draw_the_numbers_on_logarithmic_axes_and_are_told_apart_without_colour():
    figure = cost_curves(LINES, markers=False, marked=100)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    for trace, line in zip(figure.data, LINES, strict=True):
        np.testing.assert_allclose(trace.x, line.x)
        np.testing.assert_allclose(trace.y, line.y)
    assert len({trace.line.dash for trace in figure.data}) == 3
    assert figure.layout.shapes[0].x0 == 100
    measured = cost_curves(LINES, markers=True)
    assert len({trace.marker.symbol for trace in measured.data[:2]}) == 2 and measured.data[2].mode == "lines"


def test_a_mark_is_a_ring_at_its_place_with_its_text():
    figure = cost_curves(LINES, marks=[Mark(16, 1024, "meet"), Mark(256, 4 * 256**2, "far", above=False)])
    rings, (first, second) = figure.data[-1], figure.layout.annotations
    np.testing.assert_allclose([rings.x, rings.y], [[16, 256], [1024, 4 * 256**2]])
    np.testing.assert_allclose([first.x, first.y], np.log10([16, 1024]))  # annotations on such axes take logarithms
    assert (first.text, first.yanchor, second.yanchor) == ("meet", "bottom", "top")
    assert "meet: at 16." in figure.layout.meta["alt"]
    plain = cost_curves(LINES, log=False, marks=[Mark(16, 1024, "meet")]).layout.annotations[0]
    assert (plain.x, plain.y) == (16, 1024)


def test_linear_axes_begin_at_0():
    figure = cost_curves(LINES, log=False)
    assert figure.layout.xaxis.range[0] == figure.layout.yaxis.range[0] == 0
    assert figure.layout.xaxis.ticktext[0] == "0" and figure.layout.yaxis.tickvals[-1] <= 4 * 512**2


def test_ticks_are_few_round_and_inside():
    figure = cost_curves([Curve("a", [1, 2**19], [3e3, 7e14])], unit="bytes")
    for axis, low, high in ((figure.layout.xaxis, 1, 2**19), (figure.layout.yaxis, 3e3, 7e14)):
        assert 3 <= len(axis.tickvals) <= 6
        assert low <= min(axis.tickvals) and max(axis.tickvals) <= high
    assert all(text.endswith("B") for text in figure.layout.yaxis.ticktext)


@pytest.mark.parametrize(
    ("curves", "sentence"),
    [
        ([], "got 0"),
        ([Curve("a", S, S)] * 8, "got 8"),
        ([Curve("a", S, S[:2])], "a: expected as many costs"),
        ([Curve("a", [2, 1], [1, 1])], "rising"),
        ([Curve("a", [1, 2], [0, 1])], "above 0"),
        ([Curve("a", [1, 2], [np.nan, 1])], "above 0"),
    ],
)
def test_refuses_curves_that_do_not_fit(curves, sentence):
    with pytest.raises(ValueError, match=sentence):
        cost_curves(curves)


@pytest.mark.parametrize("theme", THEMES)
def test_blocks_before_the_one_in_work_are_done_and_forbidden_ones_left_out(theme):
    figure = flash_grid(CAUSAL, (1, 1), query_names=NAMES, key_names=NAMES, theme=theme)
    cells = figure.data[0]
    np.testing.assert_array_equal(cells.z, [[1, 2, 2], [1, 3, 2], [0, 0, 0]])
    assert [list(row) for row in cells.text] == [["✓", "", ""], ["✓", "●", ""], ["", "", ""]]
    assert len({colour for _, colour in cells.colorscale}) == 4
    assert "In work: queries 2 to 3, keys 2 to 3. Done: 2, left out: 3, to come: 3." in figure.layout.meta["alt"]


def test_a_block_that_is_left_out_stays_so_when_its_turn_comes():
    figure = flash_grid(CAUSAL, (0, 1), query_names=NAMES, key_names=NAMES)
    np.testing.assert_array_equal(figure.data[0].z[0], [1, 2, 2])
    assert len(figure.layout.shapes) == 2  # hatching, and the frame round the place


def test_a_large_grid_has_no_signs_and_stays_small():
    names = [str(i) for i in range(32)]
    figure = flash_grid(np.zeros((32, 32)), (3, 3), query_names=names, key_names=names)
    assert figure.data[0].text is None and len(figure.to_json()) < 20_000


@pytest.mark.parametrize(
    ("skipped", "now", "sentence"), [(np.zeros((2, 3)), (0, 0), r"got \(2, 3\)"), (CAUSAL, (3, 0), r"got \(3, 0\)")]
)
def test_refuses_blocks_that_are_not_there(skipped, now, sentence):
    with pytest.raises(ValueError, match=sentence):
        flash_grid(skipped, now, query_names=NAMES, key_names=NAMES)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "bytes", "0 B"),
        (999, "bytes", "999 B"),
        (999_700, "bytes", "1 MB"),
        (137_438_953_472, "bytes", "137 GB"),
        (5e-8, "seconds", "0.05 µs"),
        (0.0125, "seconds", "12.5 ms"),
        (90, "seconds", "90 s"),
        (0.25, "", "0.25"),
        (24_576, "", "24,576"),
        (9.96e11, "", "10¹²"),
        (8.796e12, "", "8.8 × 10¹²"),
    ],
)
def test_amounts_are_written_with_their_unit(value, unit, text):
    assert quantity(value, unit).replace("\u00a0", " ") == text


def test_there_is_no_other_unit():
    with pytest.raises(ValueError, match="got 'miles'"):
        quantity(1, "miles")
