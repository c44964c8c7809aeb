"""The candidates' bars: ranked, named, in the colours that the sentence has, rules told apart."""

import itertools

import numpy as np
import pytest

from attnviz.figures import candidate_bars
from attnviz.figures.theme import OKABE_ITO, THEMES, candidate_colours
from tests.figures.eyes import contrast, distance

NAMES = ["Tom", "Anna", "the dog"]
ROWS = [("L9 H4, chosen", [0.11, 0.62, 0.0]), ("L2 H0", [0.3, 0.004, 0.3])]
RULES = [("first candidate", [1.0, 0.0, 0.0]), ("equal shares", [1 / 3] * 3)]


def test_bars_are_ranked_in_each_group_and_say_name_and_weight():
    (bars,) = candidate_bars(ROWS, NAMES, answer=1).data
    assert list(bars.text[:3]) == ["② Anna 0.62 ✓", "① Tom 0.11", "③ the dog 0"]
    assert list(bars.text[3:]) == ["① Tom 0.30", "③ the dog 0.30", "② Anna 0.004 ✓"]  # equal ones in their order
    np.testing.assert_allclose(bars.x, [0.62, 0.11, 0, 0.3, 0.3, 0.004], rtol=1e-6)
    assert np.all(np.diff(bars.y) >= 1)  # from the top down
    top, bottom = candidate_bars(ROWS, NAMES).layout.yaxis.range[::-1]
    assert top < bars.y[0] - 0.5 and bars.y[-1] + 0.5 < bottom


def test_each_group_has_its_name_between_its_bars_and_those_before():
    figure = candidate_bars(ROWS, NAMES, rules=RULES)
    names = figure.layout.annotations
    assert [name.text for name in names] == ["L9 H4, chosen", "L2 H0", "first candidate", "equal shares"]
    places = np.concatenate([bars.y for bars in figure.data])
    for index, name in enumerate(names):
        assert name.y + 0.5 <= places[3 * index] - 0.36  # clear of the bar below it
        assert index == 0 or name.y - 0.5 >= places[3 * index - 1] + 0.36


def test_a_name_from_right_to_left_leaves_number_and_weight_where_they_are():
    (bars,) = candidate_bars([("a", [0.5, 0.0001])], ["ליאור", "<b>"], answer=0).data
    assert list(bars.text) == ["① \u2068ליאור\u2069 0.50 ✓", "② &lt;b&gt; &lt;0.001"]


@pytest.mark.parametrize("theme", THEMES)
def test_a_candidate_keeps_its_colour_and_rules_are_hatched(theme):
    heads, rules = candidate_bars(ROWS, NAMES, rules=RULES, theme=theme).data
    first, second, third, *_ = candidate_colours(theme)
    assert list(heads.marker.color) == [second, first, third, first, third, second]
    assert list(rules.marker.pattern.fgcolor) == [first, second, third] * 2
    assert heads.marker.pattern.shape is None and rules.marker.pattern.shape == "/"


@pytest.mark.parametrize("size", [13, 24])
def test_there_is_room_for_the_label_of_a_full_bar_on_a_phone(size):
    end = candidate_bars([("a", [1.0])], ["the city councilmen"], label_size=size).layout.xaxis.range[1]
    label = len("① the city councilmen 1.00") * 0.5 * size  # px
    assert (1 - 1 / end) * 340 >= min(label, 200)
    assert candidate_bars([("a", [0.1])], ["b"]).layout.xaxis.range[1] == pytest.approx(1.02)


def test_the_description_lists_every_number_and_the_answer():
    meta = candidate_bars(ROWS, NAMES, answer=0, rules=RULES).layout.meta
    assert meta["alt"].startswith(
        "Weight on each candidate: L9 H4, chosen: Anna 0.62, Tom 0.11 (the right answer), the dog 0; L2 H0: Tom 0.30"
    )
    assert "equal shares: Tom 0.33 (the right answer), Anna 0.33, the dog 0.33." in meta["alt"]
    assert "✓" in meta["how_to_read"] and "✓" not in candidate_bars(ROWS, NAMES).layout.meta["how_to_read"]


def test_more_candidates_than_colours_are_told_apart_by_number():
    names = [f"c{i}" for i in range(22)]
    (bars,) = candidate_bars([("a", np.linspace(1, 0, 22))], names).data
    assert bars.marker.color[0] == bars.marker.color[7]
    assert bars.text[0].startswith("① c0") and bars.text[7].startswith("⑧ c7") and bars.text[21] == "(22) c21 0"


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_candidate_colours_are_seen_on_the_page_and_told_apart(theme):
    colours = candidate_colours(theme.name)
    assert set(colours) < set(OKABE_ITO) and len(colours) == 7
    assert min(contrast(colour, theme.page) for colour in colours) > 2
    assert min(contrast(colour, theme.page) for colour in colours[:4]) > 2.9
    assert min(distance(*pair) for pair in itertools.combinations(colours, 2)) > 20


@pytest.mark.parametrize(
    ("rows", "settings", "sentence"),
    [
        ([], {}, "got 0 rows and 0 rules of 3 candidates"),
        ([("a", [0.1, 0.2])], {}, r"each of 3 candidates in 'a', got \(2,\)"),
        ([("a", [0.1, 0.2, 1.5])], {}, "between 0 and 1"),
        ([("a", [0.1, 0.2, np.nan])], {}, "between 0 and 1"),
        (ROWS, {"answer": 3}, "from 0 to 2 or None, got 3"),
        (ROWS, {"rules": [("b", [1.0])]}, "in 'b'"),
    ],
)
def test_refuses_rows_that_do_not_fit(rows, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        candidate_bars(rows, NAMES, **settings)
