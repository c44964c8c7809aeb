"""How often models are loaded and run for the Explore page, and that visitors never see each other's maps."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
import pytest
import streamlit
import torch
from streamlit.runtime import Runtime

from attnviz.app.shell import cache
from attnviz.app.shell.shelf import Shelf
from attnviz.core.heads.battery import battery_texts
from attnviz.core.trace.switches import Switches
from attnviz.models.load import by_name as loading
from tests.ui.conftest import Passes, Visitor

Open = Callable[..., Visitor]
RUNS = 6
LOOKS = {  # everything that changes what is drawn and not what the model computes
    "layer": 3,
    "head": 1,
    "measure": "distance",
    "order": "measure",
    "colours": "without_first",
    "strip": "lines",
    "histogram": "layer",
    "query": 4,
    "key": 2,
}


def test_one_pass_a_text_and_none_for_another_look(open_app: Open, passes: Passes) -> None:
    visitor = open_app()
    assert passes.own == [("smollm2", visitor["text"], Switches())]
    for name, value in LOOKS.items():
        visitor.choose(name, value)
    for step in ("step a layer up", "step a head to the right"):
        visitor.press(step)
    visitor.app.run()
    assert len(passes.own) == 1
    visitor.type("A new text")
    visitor.type("And another")
    visitor.type("A new text")
    assert [text for _, text, _ in passes.own[1:]] == ["A new text", "And another"]
    assert visitor.crashes() == []


def test_switches_on_the_picture_take_the_pass_that_the_next_words_need(open_app: Open, passes: Passes) -> None:
    visitor = open_app(query="4", key="2")
    for name, value in (("mask", False), ("divided", False), ("view", "before"), ("view", "difference")):
        visitor.choose(name, value)
    visitor.press("Forbid everywhere")
    visitor.press("All switches at rest")
    mask, both = Switches(causal=False), Switches(causal=False, scaled=False)
    expected = [Switches(), mask, both, replace(both, forbid=frozenset({(None, None, 4, 2)}))]
    assert visitor.crashes() == [] and [switches for _, _, switches in passes.own] == expected
    encoder = open_app(model="minilm", causal="on")  # it predicts no word
    assert encoder.crashes() == [] and len(passes.own) == len(expected) + 1


def test_switches_in_the_pass_take_one_each_and_none_when_they_come_again(open_app: Open, passes: Passes) -> None:
    visitor = open_app(acts="pass")
    expected = [Switches()]
    for mask, temperature in ((False, "1"), (False, "2"), (True, "2"), (False, "2"), (True, "1")):
        visitor.choose("mask", mask)
        visitor.choose("temperature", temperature)
        switches = Switches(causal=None if mask else False, temperature=float(temperature))
        expected += [] if switches in expected else [switches]
    assert visitor.crashes() == []
    assert {switches for _, _, switches in passes.own} == set(expected)
    assert len(passes.own) == len(expected)
    for name, value in (
        ("mask", False),
        ("view", "difference"),
        ("layer", 2),
        ("colours", "sqrt"),
        ("acts", "picture"),
        ("acts", "pass"),
    ):
        visitor.choose(name, value)
    assert len(passes.own) == len(expected)


def test_each_model_runs_once_and_its_maps_come_back(open_app: Open, passes: Passes) -> None:
    visitor = open_app(layer="2", head="1")
    maps = {"smollm2": visitor.drawn()}
    for model in ("minilm", "untrained", "smollm2", "minilm", "untrained"):
        visitor.choose("model", model)
        np.testing.assert_array_equal(visitor.drawn(), maps.setdefault(model, visitor.drawn()))
    assert [name for name, _, _ in passes.own] == ["smollm2", "minilm", "untrained"]
    assert len({shown.tobytes() for shown in maps.values()}) == 3


def test_reference_texts_run_once_a_model(open_app: Open, passes: Passes, monkeypatch: pytest.MonkeyPatch) -> None:
    own: Shelf[Any] = Shelf(200)
    monkeypatch.setattr(cache, "results", lambda: own)
    visitor = open_app(model="untrained", layer="1", head="0", text="one")
    assert len(passes.reference) == len(battery_texts())
    visitor.type("two")
    visitor.choose("mask", False)
    open_app(model="untrained", text="three")
    assert len(passes.reference) == len(battery_texts())
    assert [text for _, text, _ in passes.own] == ["one", "two", "two", "three"]  # once more without the mask


def test_ten_toggles_and_five_texts_load_the_model_once(
    open_app: Open, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    load = loading.load
    monkeypatch.setattr(loading, "load", lambda name, **options: loads.append(name) or load(name, **options))
    own: Shelf[Any] = Shelf(cache.MODELS_IN_MEMORY)
    monkeypatch.setattr(cache, "engines", lambda: own)
    visitor = open_app(model="untrained", layer="0", head="0", acts="pass")
    loads.clear()
    visitor.choose("precision", "bfloat16")
    for number in range(5):
        visitor.type(f"text number {number}")
        visitor.choose("mask", False)
        visitor.choose("mask", True)
    assert visitor.crashes() == []
    assert loads == ["untrained"]
    assert len(passes.own) == 1 + 1 + 2 * 5  # in float32; in bfloat16; with and without the mask


@pytest.fixture
def tabs_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let apps under test run in several threads: streamlit's AppTest takes its runtime away at the end of each run."""
    kept: dict[str, Any] = {}
    instance = Runtime.__dict__["_instance"]

    def latest(_: type[Runtime]) -> Any:
        kept["runtime"] = Runtime._instance or kept["runtime"]
        return kept["runtime"]

    monkeypatch.setattr(Runtime, "instance", classmethod(latest))
    monkeypatch.setattr(Runtime, "exists", classmethod(lambda cls: True))
    monkeypatch.setattr(Runtime, "_instance", instance)
    monkeypatch.setattr(streamlit.config, "get_option", streamlit.config.get_option)


@pytest.mark.usefixtures("tabs_in_threads")
@pytest.mark.parametrize("acts", ["pass", "picture"])
def test_two_visitors_with_opposite_switches_never_see_each_others_maps(open_app: Open, acts: str) -> None:
    address = {"model": "untrained", "layer": "2", "head": "1", "acts": acts}
    visitors = {causal: open_app(causal=causal, **address) for causal in ("on", "off")}
    visitors["off"].app._bidi_component_manager = visitors["on"].app._bidi_component_manager
    together = threading.Barrier(2)

    def visit(causal: str) -> list[float]:
        """Return the largest weight on a later token after each of many texts."""
        found = []
        for number in range(RUNS):
            together.wait(600)
            visitors[causal].type(f"The {number} visitors read another text")
            assert visitors[causal].crashes() == []
            visit = visitors[causal].visit
            assert visit.switches == Switches(causal=causal == "on")
            assert np.isfinite(visitors[causal].drawn()[0, 1:]).all() == (causal == "off")
            maps = [visit.after.layer_weights(layer, switches=visit.picture) for layer in visit.after.layers]
            found.append(float(np.triu(np.stack(maps), 1).max()))
        return found

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(visitors, pool.map(visit, visitors), strict=True))
    assert found["on"] == [0.0] * RUNS
    assert min(found["off"]) > 0.01


def test_an_error_of_one_visitor_leaves_the_other_unharmed(open_app: Open) -> None:
    good, bad = open_app(acts="pass", causal="off"), open_app()
    before = good.drawn()
    bad.type("")
    bad.choose("off", [(13, 8)])
    good.app.run()
    np.testing.assert_array_equal(good.drawn(), before)
    assert (good.crashes(), good.errors()) == ([], [])


def parts_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds, with its name."""
    if isinstance(thing, Mapping | MappingProxyType):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((str(index), value) for index, value in enumerate(thing))
    elif isinstance(thing, FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells)
    elif type(thing).__module__.startswith("attnviz"):
        yield from vars(thing).items()


def tensors_in(thing: Any, path: str = "", seen: set[int] | None = None) -> Iterator[str]:
    """Yield where in an object a tensor or a torch module is held."""
    seen = set() if seen is None else seen
    if isinstance(thing, torch.Tensor | torch.nn.Module):
        yield path
    elif id(thing) not in seen:
        seen.add(id(thing))
        for name, part in parts_of(thing):
            yield from tensors_in(part, f"{path}.{name}", seen)


def test_no_tensor_is_kept_for_a_visitor(open_app: Open) -> None:
    visitor = open_app(acts="pass", causal="off", histogram="layer", measure="entropy", query="3", key="2")
    state = visitor.app.session_state.to_dict()
    assert "visit" in state
    assert list(tensors_in(state)) == []
