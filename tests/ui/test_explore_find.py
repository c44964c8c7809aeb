"""The head finder on Explore: its four ways against the traces, and texts and models that give nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.app.explore.find.by_feeding import WORDS
from attnviz.app.explore.find.ways import WAYS
from attnviz.app.shell.fields import LANDING
from attnviz.core.compare.agreement import map_change
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.finder import drawn_scores, heads_like
from attnviz.core.heads.patterns import PATTERNS
from attnviz.core.heads.scored_text import score_pattern
from attnviz.core.trace.switches import Switches
from tests.ui.conftest import Passes, Visitor, _unpacked

Open = Callable[..., Visitor]
Folder = Callable[..., Path]
UNKNOWN = ("own", "induction", "delimiters", "first")  # what no head of minilm is known for
TWICE = f"{WORDS} {WORDS}"


def listed(visitor: Visitor) -> list[tuple[int, int]]:
    """Return the heads in the list, in its order."""
    keys = [button.key.split() for button in visitor.app.button if str(button.key).startswith("found ")]
    return [(int(layer), int(head)) for _, layer, head in keys]


def numbers(visitor: Visitor) -> str:
    """Return all HTML on the page: the numbers and bars of the list are in it."""
    return "\n".join(element.proto.body for element in visitor.app.get("html"))


def quiet(visitor: Visitor) -> bool:
    return (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


def test_known_heads_are_listed_best_first_and_a_click_selects_one(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", text=TWICE)
    assert quiet(visitor)
    heads = listed(visitor)
    assert heads[0] == (18, 6) and len(heads) == 12
    here = score_pattern(smollm2.trace(TWICE), "induction")
    assert f"{here.scores[18, 6]:.2f} (n {here.n[18, 6]})" in numbers(visitor)
    assert PATTERNS["induction"].explanation in visitor.says()
    visitor.press("found 18 6")
    assert visitor.name == "L18 H6" and visitor.app.query_params["layer"] == "18"


def test_the_chosen_texts_put_the_heads_in_order(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", text=TWICE, pattern="previous", found_in="here")
    scores = score_pattern(smollm2.trace(TWICE), "previous").scores
    assert listed(visitor) == [entry[:2] for entry in strongest(scores, smollm2.info.layers, 12)]
    assert PATTERNS["previous"].explanation in visitor.says() and quiet(visitor)


def test_a_text_without_occasion_says_so(open_app: Open) -> None:
    visitor = open_app(tool="find", found_in="here")
    assert "This text gives no occasion for “what came next last time”" in visitor.says()
    assert listed(visitor) == [] and quiet(visitor)
    visitor.choose("found_in", "known")
    assert listed(visitor)[0] == (18, 6) and "no occasion" in numbers(visitor)
    visitor.choose("pattern", "next")
    assert "its mask or its tokens rule it out" in visitor.says() and quiet(visitor)


def test_every_pattern_in_an_encoder(open_app: Open) -> None:
    visitor = open_app(tool="find", model="minilm", text=LANDING, layer="0", head="2")
    for pattern in PATTERNS:
        visitor.choose("pattern", pattern)
        assert quiet(visitor) and len(listed(visitor)) == 12, pattern
        assert ("high enough to be known for it" in visitor.says()) == (pattern in UNKNOWN), pattern
    visitor.choose("pattern", "previous")
    assert listed(visitor)[0] == (0, 2)
    visitor.choose("pattern", "next")
    assert listed(visitor)[0] == (1, 8)


def test_a_link_with_an_unknown_pattern_gets_a_note(open_app: Open) -> None:
    visitor = open_app(tool="find", pattern="nonsense")
    assert visitor.crashes() == [] and visitor["pattern"] == "induction"
    assert visitor.notes() == ["There is no pattern “nonsense”, so the page's own is shown."]


def test_heads_like_the_selected_one(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", find_by="like", text=TWICE, layer="18", head="6")
    found = heads_like(smollm2.trace(TWICE).head(18, 6))
    assert listed(visitor) == [entry[:2] for entry in strongest(found.similarity, smollm2.info.layers, 13)[1:]]
    assert f"{found.n_resting} of 270 heads" in visitor.says() and quiet(visitor)


def test_a_head_at_rest_is_like_no_other(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="like", layer="18", head="6")
    assert "L18 H6 rests on this text: only 1.5% of its weight" in visitor.says()
    assert listed(visitor) == [] and quiet(visitor)


def test_maps_under_a_switch_on_the_picture_are_compared_as_they_look(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", find_by="like", temperature="4")
    expected = heads_like(smollm2.trace(LANDING, switches=Switches()).head(13, 8)).similarity
    assert listed(visitor) != [entry[:2] for entry in strongest(expected, smollm2.info.layers, 13)[1:]]
    assert quiet(visitor)


@pytest.mark.parametrize("acts", ["picture", "pass"])
@pytest.mark.parametrize(("view", "trace"), [("before", 0), ("after", 1), ("difference", 1)])
def test_drawing_and_likeness_follow_the_view(open_app: Open, smollm2: Any, acts: str, view: str, trace: int) -> None:
    visitor = open_app(tool="find", find_by="drawn", drawn="10.3", forbid="13.8.10.3", acts=acts, view=view)
    switches = Switches(forbid=frozenset({(13, 8, 10, 3)}))
    expected = smollm2.trace(LANDING, switches=switches if trace and acts == "pass" else Switches())
    if trace and acts == "picture":
        expected = replace(expected, switches=switches)
    if view != "difference":
        drawing = _unpacked(visitor.chart("drawn-map")["data"][0]["z"])
        np.testing.assert_allclose(drawing, visitor.drawn(), atol=1e-5)
    scores = drawn_scores(expected, [(10, 3)])
    assert listed(visitor) == [entry[:2] for entry in strongest(scores, smollm2.info.layers, 12)]
    assert ((13, 8) in listed(visitor)) == (trace == 0)
    visitor.choose("find_by", "like")
    found = heads_like(expected.head(13, 8)).similarity
    assert listed(visitor) == [entry[:2] for entry in strongest(found, smollm2.info.layers, 13)[1:]] and quiet(visitor)


def test_a_row_with_a_single_key_finds_nothing_and_says_so(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="drawn", drawn="0.0")
    assert "Only rows with a single key to look at are drawn." in visitor.says()
    assert listed(visitor) == [] and quiet(visitor)
    visitor = open_app(tool="find", find_by="drawn", drawn="0.0_10.3")
    assert "Only rows with a single key" not in visitor.says() and listed(visitor)[0] == (13, 8)


def test_cells_beyond_the_map_are_named_and_can_be_added(open_app: Open, smollm2: Any) -> None:
    text = " ".join(WORDS.split() * 4)
    tokens = smollm2.trace(text).tokens
    assert 40 < len(tokens) <= 160
    visitor = open_app(tool="find", find_by="drawn", text=text)
    assert f"Tokens 0 to 31 of {len(tokens)} are drawn here" in visitor.says()
    assert "not on this map" not in visitor.says()
    visitor.choose("draw-query", 40)
    visitor.choose("draw-key", 3)
    visitor.press("Add")
    assert visitor["drawn"] == [(40, 3)] and listed(visitor) and quiet(visitor)
    cell = f"“{tokens[40].label}” (40) to “{tokens[3].label}” (3)"
    assert f"Drawn but not on this map: {cell}." in visitor.says()


def test_drawing_with_the_keyboard_and_taking_away(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", find_by="drawn")
    assert "Nothing is drawn yet." in visitor.says()
    visitor.choose("draw-query", 10)
    visitor.choose("draw-key", 3)
    visitor.press("Add")
    scores = drawn_scores(smollm2.trace(LANDING), [(10, 3)])
    assert listed(visitor) == [entry[:2] for entry in strongest(scores, smollm2.info.layers, 12)]
    assert listed(visitor)[0] == (13, 8) and visitor.app.query_params["drawn"] == "10.3"
    visitor.press("Take away")
    assert visitor["drawn"] == [] and "Nothing is drawn yet." in visitor.says() and quiet(visitor)


def test_ready_drawings_and_clear(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="drawn")
    visitor.press("token before")
    assert visitor["drawn"] == [(q, q - 1) for q in range(2, 11)]
    assert listed(visitor)[0] == (16, 0)
    visitor.press("first column")
    assert visitor["drawn"] == [(q, 0) for q in range(1, 11)]
    visitor.press("diagonal")
    assert visitor["drawn"] == [(q, q) for q in range(1, 11)]
    same = next(button for button in visitor.app.button if button.key == "draw same")
    assert same.disabled  # no token comes twice in this text
    visitor.press("Clear")
    assert visitor["drawn"] == [] and quiet(visitor)


def test_cells_above_the_diagonal_and_outside_the_text(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="find", find_by="drawn", drawn="10.3_2.6_99.1")
    assert "1 drawn cell lies where the mask lets no head look" in visitor.says()
    scores = drawn_scores(smollm2.trace(LANDING), [(10, 3)])
    assert listed(visitor) == [entry[:2] for entry in strongest(scores, smollm2.info.layers, 12)]
    assert "1 drawn cell lies outside this text and doesn't count." in visitor.says()
    visitor = open_app(tool="find", find_by="drawn", drawn="2.6")
    assert listed(visitor) == [] and quiet(visitor)


def test_l16_h0_feeds_l18_h6_on_words_that_come_twice(open_app: Open, smollm2: Any, passes: Passes) -> None:
    visitor = open_app(tool="find", find_by="feeds", layer="16", head="0", text=TWICE)
    off = Switches(ablate=frozenset({(16, 0)}))
    before, after = smollm2.trace(TWICE), smollm2.trace(TWICE, switches=off)
    fed = strongest(map_change(before, after), before.layers, 8)
    assert listed(visitor) == [entry[:2] for entry in fed] and (18, 6) in listed(visitor)
    stripes = [score_pattern(trace, "induction").scores[18, 6] for trace in (before, after)]
    sentence = f"L18 H6 on what came next last time falls from {stripes[0]:.2f} to {stripes[1]:.2f}."
    assert sentence in visitor.says() and stripes[0] > 0.9 and stripes[1] < 0.5
    assert "isn't proof of a direct feed" in visitor.says() and quiet(visitor)


def test_the_leading_example_is_offered_where_a_text_has_none(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="feeds")
    visitor.press("feeds-example")
    assert (visitor["text"], visitor.name) == (TWICE, "L16 H0")
    assert "of L18 H6 on what came next last time falls" in visitor.says() and quiet(visitor)


def test_the_last_layer_feeds_no_map(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="feeds", layer="29")
    assert "is in the last layer with attention" in visitor.says() and quiet(visitor)


@pytest.mark.parametrize("way", WAYS)
def test_a_text_of_one_token(open_app: Open, way: str) -> None:
    visitor = open_app(tool="find", find_by=way, text="Hi", found_in="here")
    assert quiet(visitor) and listed(visitor) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "address"), [("t5", {"part": "cross"}), ("qwen3next", {"layer": "3"})])
def test_cross_attention_and_layers_without_attention(
    open_app: Open, tiny_folder: Folder, way: str, name: str, address: dict[str, str]
) -> None:
    folder = str(tiny_folder(name))
    visitor = open_app(
        model=folder, tool="find", find_by=way, text="w1 w2 w3 w4 w1 w2", drawn="1.1", head="0", **address
    )
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    if name == "t5":
        expected = {"pattern": "cross-attention has two", "feeds": "encoder"}.get(way, "")
        assert expected in visitor.says()


def test_long_texts_draw_on_the_part_that_is_shown(open_app: Open) -> None:
    text = " ".join(f"{word} {i}" for i, word in enumerate(2 * TWICE.split()))
    visitor = open_app(tool="find", find_by="drawn", text=text, zoom="48")
    assert quiet(visitor) and visitor.widget("draw-query").value == 48 + 31
    visitor.press("diagonal")
    assert visitor["drawn"][0] == (48, 48) and len(visitor["drawn"]) == 32
    for way in WAYS:
        visitor.choose("find_by", way)
        assert quiet(visitor), way


def test_bars_are_as_long_as_the_numbers_say(open_app: Open) -> None:
    visitor = open_app(tool="find", find_by="like")
    rows = re.findall(r">(\d\.\d\d)<div[^>]*><div[^>]*width:([\d.]+)%", numbers(visitor))
    assert len(rows) == 12
    np.testing.assert_allclose(
        [float(score) for score, _ in rows], [float(width) / 100 for _, width in rows], atol=0.006
    )
