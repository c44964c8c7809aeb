"""The tour: what it says is what the models do, it sets what it says, and it puts back what the visitor had."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnviz.app.guide.tour import Stop, stops
from attnviz.app.pages import FIELDS
from attnviz.app.shell import fields
from attnviz.app.shell.fields import LANDING
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures.palettes import PALETTES
from tests.ui.conftest import Visitor

EVERY = pytest.mark.parametrize("stop", stops(), ids=lambda stop: stop.title)
FIRST, SCORES, SEEN, OFF, VOTE = stops()
OWN = "The letters from my friend in Boston were lost"


def traced(engine: Any, stop: Stop) -> tuple[Trace, Trace]:
    """Return the trace at rest, and under the stop's switches."""
    values = stop.values(FIELDS)
    off = Switches(ablate=frozenset(tuple(pair) for pair in values["off"]))
    return engine.trace(values["text"]), engine.trace(values["text"], switches=off)


def cell(trace: Trace, stop: Stop) -> float:
    values = stop.values(FIELDS)
    return float(trace.weights(values["layer"], values["head"])[values["query"], values["key"]])


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def names(trace: Trace, stop: Stop) -> tuple[str, ...]:
    values = stop.values(FIELDS)
    return tuple(trace.tokens[values[name]].label.lstrip("·") for name in ("query", "key"))


def test_there_are_five_and_the_palettes_are_those_of_the_figures() -> None:
    assert len(stops()) == 5
    assert len({stop.title for stop in stops()}) == 5
    assert fields.PALETTES == PALETTES


@EVERY
def test_a_stop_sets_what_it_says(stop: Stop, smollm2: Any) -> None:
    values = stop.values(FIELDS)
    assert set(values) == set(FIELDS) - {"palette"}
    assert stop.choices.keys() <= FIELDS.keys()
    query, key = names(smollm2.trace(values["text"]), stop)
    said = f"{stop.text} {stop.sets}"
    assert f"“{key}”" in said and f"“{query}”" in said
    for layer, head in re.findall(r"L(\d+) H(\d+)", stop.sets):
        assert (int(layer), int(head)) in [(values["layer"], values["head"]), *values["off"]]
    assert 1 <= len(re.findall(r"[.](?:\s|$)", stop.text.strip())) <= 3


def test_it_looks_at_car(smollm2: Any) -> None:
    rest, _ = traced(smollm2, FIRST)
    assert names(rest, FIRST) == ("it", "car")
    assert f"gets {cell(rest, FIRST):.2f}," in FIRST.text
    assert FIRST.values(FIELDS)["text"] == LANDING


def test_the_score_comes_from_the_products(smollm2: Any) -> None:
    rest, _ = traced(smollm2, SCORES)
    q, k, _ = rest.qkv(13, 8)
    product = float(q[10].astype(float) @ k[3])
    assert len(q[10]) == 64 and np.isclose(rest.scale(13), 1 / 8)
    for number in (f"is {product:.1f}", f"the score {product / 8:.2f}", f"{cell(rest, SCORES):.3f} for"):
        assert number in SCORES.text.replace("\n", " ")


def test_the_piece_after_the_same_token_is_copied(smollm2: Any) -> None:
    rest, _ = traced(smollm2, SEEN)
    query, key = 24, 9
    assert rest.tokens[query].id == rest.tokens[key - 1].id and names(rest, SEEN) == ("F", "and")
    (label, chance), *_ = rest.next_tokens(1)
    assert label == "and" and percent(chance) in SEEN.text
    assert f"gives {cell(rest, SEEN):.2f}" in SEEN.text.replace("\n", " ")


def test_without_the_head_below_the_look_is_gone(smollm2: Any) -> None:
    rest, after = traced(smollm2, OFF)
    assert OFF.values(FIELDS)["off"] == [(16, 0)]
    assert f"from {cell(rest, OFF):.2f} to {cell(after, OFF):.2f}" in OFF.text.replace("\n", " ")
    back = np.diagonal(rest.weights(16, 0), -1)[1:]  # row 1's token before is the first, where heads rest
    assert back.mean() > 0.8


def test_a_look_is_not_a_vote(smollm2: Any) -> None:
    rest, after = traced(smollm2, VOTE)
    assert f"“Sarah” {cell(rest, VOTE):.2f}" in VOTE.text.replace("\n", " ")
    (label, before), *_ = rest.next_tokens(1)
    (same, now), *_ = after.next_tokens(1)
    assert label == same == "·Sarah"
    assert f"{percent(before)} before, {percent(now)} now" in VOTE.text.replace("\n", " ")


def test_a_fresh_visit_is_offered_the_tour_and_a_link_is_not(open_app: Callable[..., Visitor]) -> None:
    fresh = open_app()
    assert fresh.has("tour-yes")
    assert not open_app(layer="4").has("tour-yes")
    assert not open_app(page="cost").has("tour-yes")
    fresh.press("tour-no")
    assert not fresh.has("tour-yes") and fresh.has("tour-start")


def test_the_offer_goes_when_something_was_chosen(open_app: Callable[..., Visitor]) -> None:
    visitor = open_app()
    visitor.type(OWN)
    assert not visitor.has("tour-yes")


def test_the_tour_goes_through_its_stops_and_puts_back_what_was_there(open_app: Callable[..., Visitor]) -> None:
    visitor = open_app(text=OWN, layer="4", head="2", palette="grey", temperature="2")
    visitor.press("tour-start")
    _expect(visitor, FIRST)
    visitor.press("tour-next")  # on another page
    _expect(visitor, SCORES)
    assert visitor["page"] == "scratch"
    for stop in (SEEN, OFF, VOTE):
        visitor.press("tour-next")
        _expect(visitor, stop)
    assert not visitor.has("tour-next")
    visitor.press("tour-back")
    _expect(visitor, OFF)
    visitor.press("tour-end")
    now = tuple(visitor[name] for name in ("text", "draft", "layer", "head", "palette", "temperature", "off", "query"))
    assert now == (OWN, OWN, 4, 2, "grey", "2", [], None)
    assert not visitor.has("tour-end") and visitor.crashes() == []


def test_a_text_typed_during_the_tour_stays(open_app: Callable[..., Visitor]) -> None:
    visitor = open_app()
    visitor.press("tour-yes")
    visitor.type(OWN)
    visitor.press("tour-end")
    assert visitor["text"] == OWN


def _expect(visitor: Visitor, stop: Stop) -> None:
    assert stop.text.strip() in visitor.says() and stop.sets in visitor.says()
    values = stop.values(FIELDS)
    assert {name: visitor[name] for name in values if name in stop.choices} == {
        name: values[name] for name in stop.choices
    }
    assert visitor["palette"] in PALETTES and visitor.crashes() == [] and visitor.notes() == []
