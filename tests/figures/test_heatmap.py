"""One head's map: positions, masks, ranges, marks and what is refused."""

import re

import numpy as np
import pytest

from attnviz.figures import first_column_share, head_map
from attnviz.figures.theme import THEMES
from tests.figures.made_up import causal_map, labels


def colour_at(trace, value: float) -> str:
    """The colour of the stop at a value, which must be one."""
    place = (value - trace.zmin) / (trace.zmax - trace.zmin)
    return next(colour for stop, colour in trace.colorscale if abs(stop - place) < 1e-6)


def test_positions_are_the_axis_and_equal_labels_stay_apart():
    words = ["the", "cat", "the", "cat", "the"]
    figure = head_map(np.eye(5), words, words)
    np.testing.assert_array_equal(figure.data[0].x, range(5))
    np.testing.assert_array_equal(figure.data[0].y, range(5))
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert axis.labelalias == {str(i): word for i, word in enumerate(words)}
    assert list(figure.layout.yaxis.range) == [4.5, -0.5]  # the first query is on top


def test_a_tile_keeps_the_indices_of_the_text():
    figure = head_map(np.full((2, 3), 0.1), ["a", "b"], ["x", "y", "z"], query_start=200, key_start=40_000)
    np.testing.assert_array_equal(figure.data[0].y, [200, 201])
    np.testing.assert_array_equal(figure.data[0].x, [40_000, 40_001, 40_002])
    assert figure.layout.xaxis.labelalias["40002"] == "z"


def test_cells_are_square_and_rectangles_allowed():
    figure = head_map(np.full((2, 5), 0.2), labels(2), labels(5))
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.data[0].z.shape == (2, 5)


def test_masked_cells_are_gaps_on_grey_without_hover():
    weights, allowed, _ = causal_map(6)
    figure = head_map(weights, labels(6), labels(6), allowed=allowed)
    np.testing.assert_array_equal(np.isnan(figure.data[0].z), ~allowed)
    assert figure.data[0].hoverongaps is False
    assert figure.layout.plot_bgcolor == THEMES["light"].masked
    assert "Forbidden by the mask: 15 cells." in figure.layout.meta["alt"]


def test_a_weight_of_zero_is_not_masked():
    figure = head_map([[1.0, 0.0]], ["q"], ["a", "b"])
    np.testing.assert_array_equal(figure.data[0].z, [[1, 0]])
    assert colour_at(figure.data[0], 0) not in (THEMES["light"].masked, THEMES["light"].page)


def test_weights_share_one_range():
    flat, sharp = np.full((3, 3), 1 / 3), np.eye(3)
    ranges = {(f.data[0].zmin, f.data[0].zmax) for f in (head_map(w, labels(3), labels(3)) for w in (flat, sharp))}
    assert ranges == {(0, 1)}


def test_scores_are_centred_on_zero_and_masks_take_no_part():
    scores = np.array([[-3.0, -np.inf], [1.0, 2.0]])
    trace = head_map(scores, ["a", "b"], ["a", "b"], kind="scores").data[0]
    assert (trace.zmin, trace.zmax) == (-3, 3)
    np.testing.assert_array_equal(np.isnan(trace.z), [[False, True], [False, False]])
    assert list(trace.colorbar.ticktext) == ["−3", "0", "3"]
    assert "score" in trace.colorbar.title.text


def test_difference_states_its_symmetric_range():
    trace = head_map([[0.25, -0.5]], ["q"], ["a", "b"], kind="difference").data[0]
    assert list(trace.colorbar.tickvals) == [-0.5, 0, 0.5]
    assert colour_at(trace, 0) == THEMES["light"].below[0] == THEMES["light"].above[0]


def test_cells_that_only_one_map_has_are_grey_and_counted_apart():
    weights, allowed, _ = causal_map(4)
    unpaired = np.zeros((4, 4), bool)
    unpaired[2] = unpaired[:, 2] = True
    figure = head_map(weights - 0.5, labels(4), labels(4), allowed=allowed, kind="difference", unpaired=unpaired)
    np.testing.assert_array_equal(np.isnan(figure.data[0].z), ~allowed | unpaired)
    assert figure.layout.meta["notes"] == ["Grey as well: 7 cells that only one map has."]
    assert "Forbidden by the mask: 3 cells." in figure.layout.meta["alt"]  # 6 above the diagonal, 3 of them unpaired
    with pytest.raises(ValueError, match="shape|labels say"):
        head_map(weights, labels(4), labels(4), kind="difference", unpaired=unpaired[:3])


def test_equal_maps_are_said_to_be_equal():
    figure = head_map(np.zeros((2, 2)), ["a", "b"], ["a", "b"], kind="difference")
    assert figure.layout.meta["notes"] == ["The two maps are equal: every difference is 0."]
    assert figure.layout.title.subtitle.text == "The two maps are equal: every difference is 0."


def test_square_root_colours_keep_true_numbers():
    weights, allowed, _ = causal_map(6)
    linear, by_root = (head_map(weights, labels(6), labels(6), allowed=allowed, scale=s) for s in ("linear", "sqrt"))
    np.testing.assert_array_equal(by_root.data[0].z, linear.data[0].z)
    assert by_root.data[0].hovertemplate == linear.data[0].hovertemplate
    for value in (0.0, 0.25, 0.5, 1.0):  # these are stops of the linear scale, whose square is a stop of the other
        assert colour_at(by_root.data[0], value**2) == colour_at(linear.data[0], value)
    assert "square root" in by_root.layout.meta["notes"][0]


def test_without_the_first_token_colours_fit_the_rest_and_hover_stays_true():
    weights, allowed, _ = causal_map(8)
    rest, first = head_map(weights, labels(8), labels(8), allowed=allowed, scale="without_first").data
    largest = max(weights[q, k] for q in range(8) for k in range(1, q + 1))
    assert (rest.zmin, rest.zmax) == (0, pytest.approx(largest))
    np.testing.assert_allclose(first.z, weights[:, :1], rtol=1e-6)
    assert np.isnan(rest.z[:, 0]).all()
    assert first.hovertemplate == rest.hovertemplate
    flat = {colour for _, colour in first.colorscale}
    assert flat == {THEMES["light"].set_aside}
    assert not flat & {THEMES["light"].masked, THEMES["light"].weight[0]}


def test_without_the_first_token_says_how_much_weight_is_left_out():
    weights, allowed, _ = causal_map(8)
    figure = head_map(weights, labels(8), labels(8), allowed=allowed, scale="without_first")
    mean = sum(weights[q, 0] for q in range(1, 8)) / 7  # row 0 has no other choice
    assert f"On average it gets {mean:.0%} of a row's attention." in figure.layout.meta["notes"][0]


def test_a_later_tile_has_no_first_token_to_leave_out():
    figure = head_map(np.full((2, 2), 0.4), ["a", "b"], ["a", "b"], key_start=4, scale="without_first")
    assert len(figure.data) == 1
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)
    assert figure.layout.meta["notes"] == ["The text's first token is not in this part of the map."]


def test_a_single_row_under_a_mask_has_no_share():
    figure = head_map([[1.0, 0.0]], ["a"], ["a", "b"], allowed=[[True, False]], scale="without_first")
    assert "On average" not in figure.layout.meta["alt"]


def test_first_column_share_against_a_loop():
    weights, allowed, _ = causal_map(9)
    assert first_column_share(weights, allowed) == pytest.approx(np.mean([row[0] for row in weights[1:]]))
    assert first_column_share(weights) == pytest.approx(np.mean([row[0] for row in weights]))
    assert np.isnan(first_column_share([[1.0]], [[True]]))


def test_marks_lie_on_their_cells():
    settings = {
        "query_start": 10,
        "key_start": 20,
        "highlight_query": 12,
        "marked": [(11, 23)],
        "forbidden": [(13, 20)],
    }
    figure = head_map(np.full((4, 5), 0.2), labels(4), labels(5), **settings)
    boxes = []
    for shape in figure.layout.shapes:
        points = np.array([[float(n) for n in pair] for pair in re.findall(r"(-?[\d.]+),(-?[\d.]+)", shape.path)])
        boxes.append([points[:, 1].min(), points[:, 1].max(), points[:, 0].min(), points[:, 0].max()])
    row, frame, cross = np.array(boxes)
    np.testing.assert_allclose(row, [1.5, 2.5, -0.5, 4.5])
    np.testing.assert_allclose(frame, [0.5, 1.5, 2.5, 3.5])
    np.testing.assert_allclose(cross, [2.7, 3.3, -0.3, 0.3])


@pytest.mark.parametrize("mark", [{"highlight_query": 9}, {"marked": [(0, 3)]}, {"forbidden": [(-1, 0)]}])
def test_refuses_marks_outside_the_map(mark):
    with pytest.raises(ValueError, match="queries 0 to 2 and keys 0 to 2"):
        head_map(np.eye(3), labels(3), labels(3), **mark)


def test_names_the_strongest_cell_that_had_a_choice():
    weights = np.array([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.8, 0.1, 0.1]])
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    alt = head_map(weights, ["a", "b", "<c>"], ["a", "b", "<c>"], allowed=allowed, title="L1 H2").layout.meta["alt"]
    assert "Strongest: from <c> to a, 0.8." in alt


def test_counts_what_is_not_finite_and_leaves_it_blank():
    figure = head_map([[np.nan, 0.5], [np.inf, 0.5]], ["a", "b"], ["a", "b"])
    np.testing.assert_array_equal(np.isnan(figure.data[0].z), [[True, False], [True, False]])
    assert figure.layout.meta["notes"] == ["Left blank: allowed cells that are not finite numbers, 2 of them."]


def test_the_callers_array_stays_as_it_was():
    weights, allowed, _ = causal_map(5)
    weights = weights.astype(np.float32)
    before = weights.copy()
    head_map(weights, labels(5), labels(5), allowed=allowed, scale="without_first")
    np.testing.assert_array_equal(weights, before)


@pytest.mark.parametrize(("n", "limit"), [(13, 20_000), (128, 130_000), (256, 450_000)])
def test_stays_small(n, limit):
    weights, allowed, _ = causal_map(n)
    assert len(head_map(weights, labels(n), labels(n), allowed=allowed, scale="without_first").to_json()) < limit


@pytest.mark.parametrize(
    ("shape", "n_queries", "n_keys", "sentence"),
    [
        ((3, 3), 3, 2, r"\(queries, keys\) = \(3, 2\)"),
        ((3,), 3, 3, r"got \(3,\)"),
        ((0, 0), 0, 0, "at least one cell"),
        ((257, 3), 257, 3, "pass a tile of it"),
    ],
)
def test_refuses_shapes_that_do_not_fit(shape, n_queries, n_keys, sentence):
    with pytest.raises(ValueError, match=sentence):
        head_map(np.zeros(shape), ["q"] * n_queries, ["k"] * n_keys)


@pytest.mark.parametrize(
    ("values", "settings", "sentence"),
    [
        ([[3.0]], {}, 'pass kind="scores"'),
        ([[-0.2]], {}, "between 0 and 1"),
        ([[1.0]], {"kind": "logits"}, '"weights", "scores" or "difference"'),
        ([[1.0]], {"kind": "scores", "scale": "sqrt"}, "for scores scale is one of"),
        ([[1.0]], {"scale": "log"}, "for weights scale is one of"),
        ([[1.0]], {"allowed": [[True, True]]}, r"allowed \(1, 2\)"),
    ],
)
def test_refuses_numbers_that_cannot_be_what_they_are_said_to_be(values, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        head_map(values, ["q"], ["k"], **settings)
