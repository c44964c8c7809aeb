"""Densities, curves, sums and component maps draw the numbers they are given."""

import numpy as np
import pytest

from attnviz.figures import Line, component_map, head_map, score_histogram, share_curves, sum_bars

EDGES = [-2.0, -1.0, 0.0, 2.0]


def test_bars_of_a_density_have_the_area_1():
    bars = score_histogram([2, 0, 6], EDGES).data[0]
    np.testing.assert_allclose(bars.y, [2 / 8, 6 / 8 / 2])
    np.testing.assert_allclose((bars.y * bars.width).sum(), 1)
    np.testing.assert_allclose(bars.x - bars.width / 2, [-2, 0])
    np.testing.assert_allclose(bars.customdata[:, 2], [2, 6])


def test_densities_are_drawn_over_the_bars_and_told_apart_without_colour():
    x = np.linspace(-2, 2, 9)
    figure = score_histogram([2, 1, 6], EDGES, [("exact", x, x**2), ("normal", x, x + 2)], value_range=(-9, 9))
    assert [trace.name for trace in figure.data] == ["scores", "exact", "normal"]
    assert [trace.line.dash for trace in figure.data[1:]] == ["solid", "dash"]
    np.testing.assert_allclose(figure.data[1].y, x**2)
    assert list(figure.layout.xaxis.range) == [-9, 9]
    assert score_histogram([2, 1, 6], EDGES, second=True).data[0].marker.pattern.shape == "/"


@pytest.mark.parametrize(
    ("counts", "edges", "curves", "sentence"),
    [
        ([1, 2], EDGES, 0, "expected 3 counts"),
        ([0, 0, 0], EDGES, 0, "one above 0"),
        ([1, -1, 2], EDGES, 0, "counts from 0"),
        ([1, 2], [0, 1, 1], 0, "each above the one before"),
        ([1, 2, 3], EDGES, 3, "at most 2 curves"),
    ],
)
def test_refuses_scores_that_do_not_fit(counts, edges, curves, sentence):
    with pytest.raises(ValueError, match=sentence):
        score_histogram(counts, edges, [("a", [0], [1])] * curves)


def test_shares_are_drawn_in_per_cent_and_told_apart_without_colour():
    lines = [Line("a", [0, 0.5], dashed=True), Line("b", [1, 0.25], second=True)]
    figure = share_curves([4, 8], lines, marked=6)
    first, second = figure.data
    np.testing.assert_allclose([first.y, second.y], [[0, 50], [100, 25]])
    assert (first.line.dash, second.line.dash) == ("dash", "solid")
    assert (first.marker.symbol, second.marker.symbol) == ("circle", "circle-open")
    assert figure.layout.xaxis.type == "log" and figure.layout.shapes[0].x0 == 6
    assert "a: 0.0 % to 50.0 %" in figure.layout.meta["alt"]


@pytest.mark.parametrize(
    ("x", "lines", "sentence"),
    [
        ([0, 1], [Line("a", [0, 1])], "above 0"),
        ([2, 1], [Line("a", [0, 1])], "each above the one before"),
        ([1, 2], [], "at least one line"),
        ([1, 2], [Line("a", [0, 1, 1])], "a: expected 2 shares"),
        ([1, 2], [Line("a", [0, 1.5])], "from 0 to 1"),
        ([1, 2], [Line("a", [0, np.nan])], "from 0 to 1"),
    ],
)
def test_refuses_curves_that_do_not_fit(x, lines, sentence):
    with pytest.raises(ValueError, match=sentence):
        share_curves(x, lines)


def test_sums_stand_side_by_side_over_their_token():
    figure = sum_bars([1, 1], [1.75, 0.25], ["a", "a"], start=5)
    rows, columns = figure.data
    np.testing.assert_array_equal([rows.x, columns.x], [[5, 6], [5, 6]])
    np.testing.assert_allclose([rows.y, columns.y], [[1, 1], [1.75, 0.25]])
    assert "rows sum to 1; the largest column is that of a, 1.75" in figure.layout.meta["alt"]
    assert "rows sum to 0.5 to 1;" in sum_bars([0.5, 1], [1, 0.5], ["a", "b"]).layout.meta["alt"]


@pytest.mark.parametrize(("columns", "sentence"), [([1.0], "one sum for each"), ([1.0, np.nan], "finite")])
def test_refuses_sums_that_do_not_fit(columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        sum_bars([1, 1], columns, ["a", "b"])


def test_components_are_coloured_round_0():
    figure = component_map([[0.0, 0.0, 0.0], [1.0, -3.0, 0.5]], ["a", "b"])
    cells = figure.data[0]
    np.testing.assert_array_equal(cells.z, [[0, 0, 0], [1, -3, 0.5]])
    assert (cells.zmin, cells.zmax) == (-3, 3)
    assert "Largest: component 1 of b, −3. Rows that are 0 throughout: 1." in figure.layout.meta["alt"]
    assert component_map([[1.0]], ["a"], value_range=5).data[0].zmax == 5


def test_cells_beyond_the_colours_are_counted():
    vectors, beyond = [[1.0, -3.0, 2.0]], "2 cells lie beyond the ends of the colour bar, the farthest at −3."
    cells = component_map(vectors, ["a"], value_range=1.5)
    assert beyond in cells.layout.meta["alt"] and beyond in cells.layout.meta["how_to_read"]
    assert cells.data[0].colorbar.ticktext == ("≤ −1.5", "0", "≥ 1.5")
    whole = component_map(vectors, ["a"])
    assert "beyond" not in whole.layout.meta["how_to_read"]
    assert whole.data[0].colorbar.ticktext == ("−3", "0", "3")
    weights = head_map(vectors, ["a"], list("bcd"), kind="difference", value_range=(-2.5, 2.5))
    assert "1 cell lies beyond the ends of the colour bar, at −3." in weights.layout.meta["how_to_read"]
    assert weights.data[0].colorbar.ticktext == ("≤ −2.5", "0", "2.5")
    assert "beyond" not in head_map(vectors, ["a"], list("bcd"), kind="difference").layout.meta["alt"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([[1.0]], r"\(2 tokens, components\)"),
        (np.zeros((2, 257)), "at most 256"),
        ([[1.0], [np.nan]], "finite components"),
    ],
)
def test_refuses_components_that_do_not_fit(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        component_map(values, ["a", "b"])
