"""Layers by heads: every number at its layer and head, gaps where there is no head."""

import re

import numpy as np
import pytest

from attnviz.figures import heads_changed, layers_by_heads

LAYERS = [0, 3, 7]
VALUES = np.array([[0.1, 0.4], [0.0, np.nan], [-0.3, 0.2]])


@pytest.mark.parametrize(("across", "template"), [("layers", "L%{x} H%{y}"), ("heads", "L%{y} H%{x}")])
def test_every_value_is_at_its_layer_and_head(across, template):
    trace = layers_by_heads(VALUES, LAYERS, kind="difference", across=across).data[0]
    assert trace.hovertemplate.startswith(template)
    for row, layer in enumerate(LAYERS):
        for head in range(2):
            place = {"layers": layer, "heads": head}
            down = "heads" if across == "layers" else "layers"
            cell = trace.z[list(trace.y).index(place[down]), list(trace.x).index(place[across])]
            np.testing.assert_allclose(cell, VALUES[row, head], rtol=1e-6)


def test_missing_heads_are_gaps_without_hover():
    trace = layers_by_heads(VALUES, LAYERS, kind="difference").data[0]
    assert np.isnan(trace.z).sum() == 1
    assert trace.hoverongaps is False


def test_ranges():
    measure = layers_by_heads(np.abs(VALUES), LAYERS).data[0]
    difference = layers_by_heads(VALUES, LAYERS, kind="difference").data[0]
    given = layers_by_heads(np.abs(VALUES), LAYERS, value_range=(0, 1)).data[0]
    np.testing.assert_allclose([measure.zmin, measure.zmax], [0, 0.4], rtol=1e-6)
    np.testing.assert_allclose([difference.zmin, difference.zmax], [-0.4, 0.4], rtol=1e-6)
    assert (given.zmin, given.zmax) == (0, 1)
    nothing = heads_changed(np.zeros((3, 2)), LAYERS).data[0]
    assert (nothing.zmin, nothing.zmax) == (0, 1)


@pytest.mark.parametrize(("across", "corner"), [("layers", (1.5, 0.5)), ("heads", (0.5, 1.5))])
def test_the_frame_is_round_its_head(across, corner):
    (shape,) = heads_changed(np.abs(VALUES), LAYERS, switched=[(7, 1)], across=across).layout.shapes
    assert tuple(float(n) for n in re.match(r"M([\d.]+),([\d.]+)", shape.path).groups()) == corner


def test_describes_the_strongest_heads():
    alt = layers_by_heads(VALUES, LAYERS, kind="difference", bar_title="change").layout.meta["alt"]
    assert alt == "change of 5 heads in 3 layers. Strongest: L0 H1 0.4, L7 H0 −0.3, L7 H1 0.2."


@pytest.mark.parametrize(
    ("values", "settings", "sentence"),
    [
        (VALUES[:2], {}, r"\(3 layers, heads\), got \(2, 2\)"),
        (np.full((3, 2), np.nan), {}, "nothing to draw"),
        (VALUES, {"marked": [(1, 0)]}, "there is no head L1 H0"),
        (VALUES, {"marked": [(7, 2)]}, "there is no head L7 H2"),
        (VALUES, {"across": "queries"}, '"layers" or "heads"'),
        (VALUES, {"kind": "weights"}, '"measure" or "difference"'),
    ],
)
def test_refuses_what_does_not_fit(values, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        layers_by_heads(values, LAYERS, **settings)
