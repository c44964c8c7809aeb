"""Hover names a token in full where its axis shortens it, and costs nothing where no token is long."""

import json

import numpy as np
import pytest

from attnviz.figures import (
    cache_bands,
    candidate_bars,
    component_map,
    head_map,
    labelled_bars,
    next_token_bars,
    row_bars,
    sum_bars,
)
from attnviz.figures.map_views import size_map
from tests.figures.made_up import causal_map

LONG = ["a", "=" * 64, "b", "=" * 32]
WEIGHTS, ALLOWED, _ = causal_map(4)
ROW = np.full(4, 0.25)
DRAW = {
    "map": lambda names: head_map(WEIGHTS, names, names, allowed=ALLOWED),
    "without the first": lambda names: head_map(WEIGHTS, names, names, allowed=ALLOWED, scale="without_first"),
    "differences": lambda names: head_map(WEIGHTS - 0.1, names, names, kind="difference"),
    "sizes": lambda names: size_map(WEIGHTS, names, names, allowed=ALLOWED),
    "components": lambda names: component_map(np.eye(4), names),
    "cache": lambda names: cache_bands(np.ones((2, 4)), ["K 0", "K 1"], names),
    "row": lambda names: row_bars(ROW, names, query_label="b"),
    "sums": lambda names: sum_bars(ROW, ROW, names),
    "labelled": lambda names: labelled_bars(ROW, names, value_name="logits", how_to_read="Each bar is a word."),
    "next": lambda names: next_token_bars([(name, 0.25) for name in names]),
    "candidates": lambda names: candidate_bars([("L0 H0", ROW)], names, answer=None),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_a_long_token_is_there_in_full_and_short_ones_cost_nothing(draw):
    text = json.dumps(json.loads(draw(LONG).to_json())["data"])
    assert all(name in text for name in LONG)
    short = draw(["a", "b", "c", "d"])
    assert "customdata" not in json.dumps(json.loads(short.to_json())["data"])
    assert not [trace for trace in short.data if trace.opacity == 0]


def test_a_map_of_long_texts_stays_small():
    n = 128
    weights, allowed, _ = causal_map(n)
    names = ["w"] * n
    names[5], names[90] = LONG[1], LONG[3]
    plain = len(head_map(weights, ["w"] * n, ["w"] * n, allowed=allowed).to_json())
    assert len(head_map(weights, names, names, allowed=allowed).to_json()) < 1.2 * plain


def test_what_lies_over_a_map_has_its_numbers_and_no_cell_twice():
    figure = head_map(WEIGHTS, LONG, LONG, allowed=ALLOWED)
    over = [trace for trace in figure.data if trace.opacity == 0]
    seen = np.zeros((4, 4), int)
    for trace in over:
        values = np.asarray(trace.z)
        rows, columns = (np.asarray(trace[axis] if trace[axis] is not None else [trace[axis + "0"]]) for axis in "yx")
        places = np.ix_(rows, columns)
        drawn = np.isfinite(values)
        np.testing.assert_array_equal(values[drawn], np.asarray(WEIGHTS, np.float32)[places][drawn])
        seen[places] += drawn
    long = np.array([len(name) > 20 for name in LONG])
    np.testing.assert_array_equal(seen, ALLOWED & (long[:, None] | long))
