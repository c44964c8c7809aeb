"""What is handed in wrongly at the public door is one sentence that names the argument, and never silently obeyed."""

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz import Switches, Trace
from attnviz.core.attention.textbook import (
    attention_scores,
    causal_mask,
    multi_head_attention,
    repeat_kv,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from attnviz.core.export.head_files import file_name, head_numbers, script
from tests.cases import case

TEXT = "w1 w2 <br> w4 w5"
NO_TRUTH = ["x", "True", 2, -1, 1.0, 0.0, np.float64(1), [True], (), np.array([True, False]), {}, torch.tensor(True)]
NO_WHOLE = [13.0, 1.0, True, False, np.True_, [1], (0, 1), None, "x", "1", np.float32(1), {}, np.array([1]), 1j]
NO_NUMBER = [True, np.False_, "1", [1.0], None, float("nan"), float("inf"), -float("inf"), 1j, 10**400, np.array([1.0])]
NO_TEXT = [None, 3, True, b"w1", ["w1", "w2"], ("w1",), object, np.array(["w1"]), Path("w1")]
NO_SLICE = [3, True, "x", [0, 1], (0, 2), range(2), slice("a"), slice(0.0, 2), slice(None, None, 0), slice(True), 1.5]
NO_SWITCHES = ["x", True, 0, {}, {"causal": False}, [], SimpleNamespace(causal=None, ablate=()), Switches, None]
NO_PART = ["x", "", 1, True, ["decoder"], ("decoder",), b"decoder", {}]
OUT_OF_RANGE = [-1, 99, 10**30, np.int64(99)]


def _no(values: list[Any], *but: Any) -> list[Any]:
    """Return the values without those that the argument does take."""
    return [value for value in values if not any(value is one for one in but)]


Q, W = np.ones((3, 4)), np.eye(4)

# what is called -> argument -> values that it doesn't take. A call gets (trace, engine, **wrong).
TABLE: dict[str, tuple[Callable[..., Any], dict[str, list[Any]]]] = {
    "Switches": (
        lambda trace, engine, **wrong: Switches(**wrong),
        {
            "causal": NO_TRUTH,
            "scaled": [*NO_TRUTH, None],
            "temperature": [*NO_NUMBER, 0, -1.0, 1e-9, 1e9],
            "ablate": [None, 3, True, "ab", (3, 1), [3], {(1,)}, {(1, 2, 3)}, {(1.0, 2)}, {(True, 2)}, {("0", "1")}]
            + [{(None, 1)}, [[0, [1]]], {(0, 1): True, "x": 1}, {0: 1}],
            "forbid": [None, 3, "abcd", ["abcd"], (0, 0, 1, 0), {(0, 0, None, 0)}, {(0, 0, 1, None)}, {(0, 0, 1)}]
            + [{(0, 0, 1.0, 0)}, {(0, 0, True, 0)}, {(0, False, 1, 0)}, {(13.0, 0, 1, 0)}, {("x", 0, 1, 0)}, [None]],
        },
    ),
    **{
        f"trace.{name}": (
            lambda trace, engine, name=name, **wrong: getattr(trace, name)(**{"layer": 1, "head": 0} | wrong),
            {
                "layer": [*NO_WHOLE, *OUT_OF_RANGE],
                "head": [*NO_WHOLE, *OUT_OF_RANGE],
                "part": NO_PART,
                "queries": NO_SLICE,
                "keys": NO_SLICE,
                "switches": _no(NO_SWITCHES, None),
            },
        )
        for name in ("weights", "scores", "allowed")
    },
    "trace.layer_weights": (
        lambda trace, engine, **wrong: trace.layer_weights(**{"layer": 1} | wrong),
        {
            "layer": [*NO_WHOLE, *OUT_OF_RANGE],
            "part": NO_PART,
            "queries": NO_SLICE,
            "switches": _no(NO_SWITCHES, None),
        },
    ),
    "trace.qkv": (
        lambda trace, engine, **wrong: trace.qkv(**{"layer": 1, "head": 0} | wrong),
        {"layer": [*NO_WHOLE, *OUT_OF_RANGE], "head": [*NO_WHOLE, *OUT_OF_RANGE], "part": NO_PART},
    ),
    **{
        f"trace.{name}": (
            lambda trace, engine, name=name, **wrong: getattr(trace, name)(**{"layer": 1} | wrong),
            {"layer": [*NO_WHOLE, *OUT_OF_RANGE], "part": NO_PART},
        )
        for name in ("heads", "scale", "causal")
    },
    **{
        f"trace.{name}": (lambda trace, engine, name=name, **wrong: getattr(trace, name)(**wrong), {"part": NO_PART})
        for name in ("tokens_of", "layers_of")
    },
    "trace.next_tokens": (lambda trace, engine, **wrong: trace.next_tokens(**wrong), {"n": [*NO_WHOLE, 0, -1]}),
    "script": (
        lambda trace, engine, **wrong: script(trace, **{"layer": 1, "head": 0, "version": "1"} | wrong),
        {
            "layer": [*NO_WHOLE, *OUT_OF_RANGE],
            "head": [*NO_WHOLE, *OUT_OF_RANGE],
            "part": NO_PART,
            "switches": _no(NO_SWITCHES, None),
            "queries": NO_SLICE,
            "keys": NO_SLICE,
        },
    ),
    "head_numbers": (
        lambda trace, engine, **wrong: head_numbers(trace, **{"layer": 1, "head": 0, "version": "1"} | wrong),
        {"layer": [*NO_WHOLE, *OUT_OF_RANGE], "head": NO_WHOLE, "part": NO_PART, "queries": NO_SLICE, "keys": NO_SLICE},
    ),
    "file_name": (
        lambda trace, engine, **wrong: file_name(trace, **{"layer": 1, "head": 0, "ending": "csv"} | wrong),
        {"layer": [*NO_WHOLE, *OUT_OF_RANGE], "head": [*NO_WHOLE, *OUT_OF_RANGE], "part": NO_PART},
    ),
    "engine.trace": (
        lambda trace, engine, **wrong: engine.trace(**{"text": TEXT} | wrong),
        {
            "text": [*NO_TEXT, "", " \n", "\u200b", "w1 \ud83d"],
            "target": _no(NO_TEXT, None) + ["w1"],  # this model has no second text at all
            "switches": _no(NO_SWITCHES, None),
            "max_tokens": [*_no(NO_WHOLE, None), 0, -1],
            "on_layer": ["x", 1, True, []],
        },
    ),
    "engine.generate": (
        lambda trace, engine, **wrong: engine.generate(**{"text": TEXT, "n": 2} | wrong),
        {
            "text": [*NO_TEXT, "", " "],
            "n": [*NO_WHOLE, 0, -1],
            "cache": [*NO_TRUTH, None],
            "temperature": [*NO_NUMBER, -0.1],
            "top_k": [*_no(NO_WHOLE, None), 0, -1],
            "top_p": [*_no(NO_NUMBER, None), 0, 1.5, -0.5],
            "seed": [*NO_WHOLE, -1],
            "switches": _no(NO_SWITCHES, None),
            "candidates": [*NO_WHOLE, 0],
        },
    ),
    "attnviz.load": (
        lambda trace, engine, **wrong: attnviz.load(**{"name": "untrained"} | wrong),
        {
            "name": [None, 3, True, b"smollm2", ["smollm2"], "", "  ", "w" * 5000, "~nobody-at-all/model", "a\0b"],
            "engine": ["jax", "Torch", None, True, ["numpy"], 1],
            "dtype": ["float", "int8", None, torch.float32, np.float32, 32, ["float32"]],
            "revision": [1, True, ["seed 0"], b"seed 0", "seed 1"],
            "device": ["nonsense", "", "cpu:x", "cuda:999", "meta", "vulkan", None, 0, True, ["cpu"], b"cpu"],
            "progress": ["x", 1, True, []],
        },
    ),
    "Trace.from_arrays": (
        lambda trace, engine, **wrong: Trace.from_arrays(**{"tokens": ["a", "b"], **FLAT} | wrong),
        {
            "tokens": [None, 3, True, [1, 2], [None, None], [b"a", b"b"]],
            "causal": NO_TRUTH,
            "scale": _no(NO_NUMBER, None),
            "name": NO_TEXT,
        },
    ),
    "causal_mask": (
        lambda trace, engine, **wrong: causal_mask(**{"n_queries": 3} | wrong),
        {
            "n_queries": [*NO_WHOLE, -1],
            "n_keys": [*_no(NO_WHOLE, None), -1],
            "offset": _no(NO_WHOLE, None),
            "dtype": ["x", int, bool, 3, [float]],
        },
    ),
    **{
        name: (
            lambda trace, engine, function=function, given=given, **wrong: function(*given, **wrong),
            {"causal": [*NO_TRUTH, None], "scale": _no(NO_NUMBER, None), "mask": ["x", [[1, 0, 1]], {}, [[None]], 3]},
        )
        for name, function, given in (
            ("attention_scores", attention_scores, (Q, Q)),
            ("scaled_dot_product_attention", scaled_dot_product_attention, (Q, Q, Q)),
        )
    },
    "multi_head_attention": (
        lambda trace, engine, **wrong: multi_head_attention(Q, W, W, W, W, **{"n_heads": 2} | wrong),
        {"n_heads": [*NO_WHOLE, 0, -2, 3], "causal": [*NO_TRUTH, None]},
    ),
    "split_heads": (lambda trace, engine, **wrong: split_heads(Q, **wrong), {"n_heads": [*NO_WHOLE, 0, -2, 3]}),
    "repeat_kv": (lambda trace, engine, **wrong: repeat_kv(Q[None], **wrong), {"n_groups": [*NO_WHOLE, 0, -2]}),
    "softmax": (
        lambda trace, engine, **wrong: softmax(**{"scores": Q} | wrong),
        {"scores": [None, "x", [True, False], [1j], {}, [[1.0], [1.0, 2.0]]], "axis": [*NO_WHOLE, 2, -3]}
        | {"sinks": ["x", True, [1j], {}, np.ones(7)]},
    ),
}
FLAT = dict.fromkeys("qkv", np.ones((1, 1, 2, 4)))

# a sentence may call an argument as people do
ALSO_CALLED = {"name": "name|model|file or folder", "dtype": "dtype", "part": "part", "n_heads": "n_heads|heads"}
ALSO_CALLED |= {"text": "text", "target": "target", "layer": "layer", "head": "head", "revision": "revision"}

CASES = [
    (name, call, argument, value)
    for name, (call, arguments) in TABLE.items()
    for argument, values in arguments.items()
    for value in values
]


@pytest.fixture(scope="module")
def engine(tiny_folder: Callable[..., Path]) -> Any:
    return attnviz.load(tiny_folder("llama"))  # a Path is as good as a string


@pytest.fixture(scope="module")
def trace(engine: Any) -> Trace:
    return engine.trace(TEXT)


def test_what_is_handed_in_wrongly_is_one_sentence_that_names_it(trace, engine):
    for name, call, argument, value in CASES:
        with case(f"{name} with {argument} {value!r}"):
            with pytest.raises((ValueError, TypeError)) as error:
                call(trace, engine, **{argument: value})
            said = str(error.value)
            assert re.search(ALSO_CALLED.get(argument, argument), said), said
            assert "\n" not in said and len(said) < 300


def test_switches_said_another_way_are_the_same_switches(trace, engine):
    for given, meant in (
        ({"causal": 0}, {"causal": False}),
        ({"causal": np.False_}, {"causal": False}),
        ({"causal": 1}, {"causal": True}),
        ({"causal": np.int64(0)}, {"causal": False}),
        ({"scaled": 0}, {"scaled": False}),
        ({"scaled": np.True_}, {}),
        ({"temperature": np.float32(2)}, {"temperature": 2.0}),
        ({"temperature": Fraction(1, 2)}, {"temperature": 0.5}),
        ({"temperature": np.int64(3)}, {"temperature": 3.0}),
        ({"ablate": np.array([[0, 1]])}, {"ablate": {(0, 1)}}),
        ({"ablate": [[0, np.int8(1)]]}, {"ablate": {(0, 1)}}),
        ({"forbid": [[None, np.int64(0), 1, 0]]}, {"forbid": {(None, 0, 1, 0)}}),
    ):
        with case(given):
            switches = Switches(**given)
            assert switches == Switches(**meant) and hash(switches) == hash(Switches(**meant))
            assert type(switches.causal) in (bool, type(None)) and type(switches.scaled) is bool
            assert {type(n) for entry in switches.ablate | switches.forbid for n in entry} <= {int, type(None)}
            np.testing.assert_array_equal(
                engine.trace(TEXT, switches=switches).layer_weights(1),
                engine.trace(TEXT, switches=Switches(**meant)).layer_weights(1),
            )


def test_numbers_of_numpy_are_numbers(trace, engine):
    one, rows = np.int64(1), slice(np.int32(1), np.int64(3))
    np.testing.assert_array_equal(trace.weights(one, np.uint8(2), queries=rows), trace.weights(1, 2)[1:3])
    np.testing.assert_array_equal(trace.scores(one, one, keys=rows), trace.scores(1, 1)[:, 1:3])
    assert trace.heads(one) == trace.heads(1) and len(trace.next_tokens(np.int64(3))) == 3
    assert len(engine.trace(TEXT, max_tokens=np.int16(2)).tokens) == 2
    steps = list(engine.generate(TEXT, np.int64(2), cache=np.True_, temperature=np.float32(1), seed=np.int64(0)))
    assert [step.token.id for step in steps] == [s.token.id for s in engine.generate(TEXT, 2, temperature=1, seed=0)]


def test_a_tile_of_finished_maps_is_checked_too():
    captured = Trace.from_arrays(["a", "b"], weights=np.full((1, 1, 2, 2), 0.5))
    for wrong in ({"queries": 1}, {"keys": [0]}, {"layer": 0.0}, {"head": False}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            captured.weights(**{"layer": 0, "head": 0} | wrong)


@pytest.mark.parametrize("target", [3, b"w1", ["w1"], True])
def test_a_target_that_is_no_text_is_said(tiny_folder, target):
    with pytest.raises(ValueError, match="target must be a string or None"):
        attnviz.load(tiny_folder("t5")).trace("w1 w2", target=target)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has such a device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
def test_a_device_that_is_not_there_is_said_before_anything_is_read(device):
    with pytest.raises(ValueError, match="device 'cuda.*no device|no device 'cuda"):
        attnviz.load("./nope", device=device)


def test_the_numpy_engine_takes_the_cpu_however_it_is_named(tiny_folder):
    engine = attnviz.load(tiny_folder("llama"), engine="numpy", device=torch.device("cpu"))
    assert engine.info.name == str(tiny_folder("llama"))
