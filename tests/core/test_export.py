"""Exported numbers, read again with other tools and compared with the trace; the script, run."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz import Switches
from attnviz.core.export.head_files import CSV_COLUMNS, file_name, head_csv, head_json, head_npz, head_numbers, script
from attnviz.core.export.table_files import table_csv, table_json, table_npz
from attnviz.core.trace.trace import Trace
from tests.core.made_traces import random_trace, random_weights

ROOT = Path(__file__).resolve().parents[2]
WORDS = "w1 <b>x</b> $x$ w1 w2"
UNSCALED = Switches(scaled=False, temperature=2)
ABOUT = {
    "attnviz": "9.9",
    "model": "made",
    "title": "made up",
    "revision": "",
    "dtype": "float32",
    "engine": "torch",
    "part": "decoder",
    "layer": 1,
    "head": 2,
    "text": "",
    "n_cut": 0,
}


@pytest.fixture(scope="module")
def llama(tiny_folder):
    return attnviz.load(str(tiny_folder("llama")))


def numbers(trace, layer=1, head=2, **named):
    return head_numbers(trace, layer, head, version="9.9", **named)


def as_maps(text, n):
    """Return weights, scores and allowed (queries, keys) of an exported CSV, and what it says about itself."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == CSV_COLUMNS and len(rows) == n * n and not any(row["about"] for row in rows[1:])
    maps = {name: np.full((n, n), np.nan, np.float32) for name in ("weight", "score", "allowed")}
    for row in rows:
        for name, cells in maps.items():
            cells[int(row["query_index"]), int(row["key_index"])] = float(row[name] or "-inf")
    return *maps.values(), json.loads(rows[0]["about"]), rows


@pytest.mark.parametrize("switches", [None, UNSCALED, Switches(causal=False)])
def test_csv_json_and_npz_hold_what_the_trace_says(switches):
    trace = random_trace(6)
    expected = [getattr(trace, x)(1, 2, switches=switches) for x in ("weights", "scores", "allowed")]
    given = numbers(trace, switches=switches)

    *maps, about, rows = as_maps(head_csv(given), 6)
    for found, right in zip(maps, expected, strict=True):
        np.testing.assert_array_equal(found, right)
    assert [row["key"] for row in rows[:6]] == [token.label for token in trace.tokens]

    content = json.loads(head_json(given))
    np.testing.assert_array_equal(np.float32(content["weights"]), expected[0])
    scores = np.array([[-np.inf if x is None else x for x in row] for row in content["scores"]], np.float32)
    np.testing.assert_array_equal(scores, expected[1])
    assert content["allowed"] == expected[2].tolist()
    assert content["queries"][3] == content["keys"][3] == vars(trace.tokens[3])

    with np.load(io.BytesIO(head_npz(given)), allow_pickle=False) as arrays:
        for name, right in zip(("weights", "scores", "allowed"), expected, strict=True):
            np.testing.assert_array_equal(arrays[name], right)
            assert arrays[name].dtype == right.dtype
        assert arrays["query_labels"].tolist() == [token.label for token in trace.tokens]
        assert arrays["key_ids"].tolist() == [token.id for token in trace.tokens]
        in_npz = {name: arrays[name].item() for name in about}

    shown = switches or Switches()
    said = {
        "causal": shown.causal,
        "scaled": shown.scaled,
        "temperature": shown.temperature,
        "ablate": [],
        "forbid": [],
    }
    rest = {"causal": None, "scaled": True, "temperature": 1.0, "ablate": [], "forbid": []}
    assert about == ABOUT | {"switches": said, "switches_of_the_pass": rest}
    assert {name: content[name] for name in about} == about
    assert {name: json.loads(x) if "switches" in name else x for name, x in in_npz.items()} == about


def test_the_switches_of_the_pass_are_told_apart(llama):
    passed = Switches(temperature=3, ablate={(0, 3), (0, 1)}, forbid={(None, 2, 3, 1)})
    trace = llama.trace(WORDS, switches=passed)
    about = numbers(trace).about
    assert about["switches_of_the_pass"]["ablate"] == [[0, 1], [0, 3]] and about["switches"]["temperature"] == 3
    assert about["switches"]["forbid"] == [[None, 2, 3, 1]]
    about = numbers(trace, switches=Switches()).about
    assert about["switches"]["temperature"] == 1 and about["switches_of_the_pass"]["temperature"] == 3


def test_a_model_of_finished_maps_has_no_scores():
    weights = random_weights(np.random.default_rng(0), 2, 3, 4, 4)
    trace = Trace.from_arrays(["a", ",", '"', "\n"], weights=weights)
    given = numbers(trace)
    maps, scores, _, _, rows = as_maps(head_csv(given), 4)
    np.testing.assert_array_equal(maps, np.float32(weights[1, 2]))
    assert np.isneginf(scores).all() and [row["key"] for row in rows[:4]] == ["a", ",", '"', "⏎"]
    assert json.loads(head_json(given))["scores"] is None
    assert "scores" not in np.load(io.BytesIO(head_npz(given))).files


def test_a_tile_keeps_its_place():
    trace = random_trace(8)
    given = numbers(trace, queries=slice(4, 7), keys=slice(2, 4))
    np.testing.assert_allclose(given.weights, trace.weights(1, 2)[4:7, 2:4], atol=1e-6)  # kernels round by size
    rows = list(csv.DictReader(io.StringIO(head_csv(given))))
    assert [(row["query_index"], row["key_index"]) for row in rows[:3]] == [("4", "2"), ("4", "3"), ("5", "2")]


def test_parts_have_tokens_of_their_own(tiny_folder):
    trace = attnviz.load(str(tiny_folder("t5"))).trace("w1 w2 w3", target="w4 w5")
    given = numbers(trace, part="cross")
    assert given.weights.shape == (len(given.queries), len(given.keys)) == (3, 3) and given.about["part"] == "cross"
    assert [token.label for token in given.queries] != [token.label for token in given.keys]


@pytest.mark.parametrize(
    ("text", "name", "switches", "expected"),
    [
        ("Mary bought a car, although", "smollm2", None, "attnviz-smollm2-L1-H2-mary-bought-a-car.csv"),
        ("…", "org/Big Model_2", None, "attnviz-big-model-2-L1-H2.csv"),
        ("../../etc", "./folder/tiny/", None, "attnviz-tiny-L1-H2-etc.csv"),
        ("C:\\x", "C:\\models\\m.gguf", None, "attnviz-m-gguf-L1-H2-c-x.csv"),
        ("東京 é", "m", UNSCALED, "attnviz-m-L1-H2-unscaled-temperature-2-東京-é.csv"),
        ("a" * 99, "m", Switches(causal=False), f"attnviz-m-L1-H2-causal-off-{'a' * 40}.csv"),
    ],
)
def test_a_name_says_what_is_inside_and_is_safe(text, name, switches, expected):
    q, k, v = np.zeros((3, 2, 3, 1, 4))
    trace = Trace.from_arrays([text], q, k, v, name=name)
    assert file_name(trace, 1, 2, "csv", switches=switches) == expected


def test_a_name_tells_heads_that_are_off(llama):
    trace = llama.trace("w1 w2", switches=Switches(ablate={(0, 1)}))
    assert re.fullmatch(r"attnviz-llama\w*-L0-H3-1-off-w1-w2\.npz", file_name(trace, 0, 3, "npz"))


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (None, None),
        (None, UNSCALED),
        (Switches(causal=False, ablate={(0, 1)}, forbid={(None, 1, 3, 0)}), None),
        (Switches(temperature=3), Switches()),
    ],
)
def test_the_script_gives_the_same_weights(llama, passed, shown):
    trace = llama.trace(WORDS + ' """ \\ 東', switches=passed)
    text = script(trace, 1, 2, version="9.9", switches=shown)
    assert len([line for line in text.splitlines() if line]) <= 10
    names = {}
    exec(compile(text, "script", "exec"), names)
    np.testing.assert_array_equal(names["weights"], trace.weights(1, 2, switches=shown))


def test_the_script_of_a_tile_gives_that_tile(llama):
    trace = llama.trace(WORDS)
    names = {}
    exec(script(trace, 1, 2, version="9.9", queries=slice(1, 3), keys=slice(0, 4)), names)
    np.testing.assert_array_equal(names["weights"], trace.weights(1, 2)[1:3, :4])


def test_the_script_of_a_part_and_of_a_cut_text(tiny_folder):
    t5 = attnviz.load(str(tiny_folder("t5")))
    trace = t5.trace("w1 w2 w3", target="w4 w5")
    names = {}
    exec(script(trace, 0, 1, version="9.9", part="cross"), names)
    np.testing.assert_array_equal(names["weights"], trace.weights(0, 1, part="cross"))
    cut = t5.trace("w1 w2 w3 w4", max_tokens=2)
    exec(script(cut, 0, 1, version="9.9", part="encoder"), names)
    assert cut.n_cut and names["weights"].shape == (2, 2)


@pytest.mark.parametrize(
    ("target", "n", "n_cut"), [("w4 w5", None, 0), ("<b>x</b> w7", None, 0), (None, None, 0), ("w4 w5 w6 w7", 4, 1)]
)
@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_a_target_goes_with_its_trace(tiny_folder, target, n, n_cut, part):
    trace = attnviz.load(str(tiny_folder("t5"))).trace("w1 w2 w3", target=target, max_tokens=n)
    assert (trace.target, trace.n_cut) == (target, n_cut)
    found = numbers(trace, 1, 0, part=part)
    assert found.about.get("target") == target == json.loads(head_json(found)).get("target")
    assert json.loads(next(csv.DictReader(io.StringIO(head_csv(found))))["about"]).get("target") == target
    with np.load(io.BytesIO(head_npz(found))) as file:
        assert (file["target"].item() if "target" in file else None) == target
    names = {}
    exec(script(trace, 1, 0, version="9.9", part=part), names)
    np.testing.assert_array_equal(names["weights"], found.weights)
    assert part != "cross" or found.weights.shape == (1 + len((target or "").split()) - n_cut, 3)


def test_the_script_runs_as_a_program(tmp_path):
    trace = attnviz.load("untrained").trace("Üb <er>")
    file = tmp_path / "again.py"
    file.write_text(script(trace, 3, 1, version=attnviz.__version__), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, file], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, encoding="utf-8"
    )
    assert run.returncode == 0, run.stderr
    assert str(trace.weights(3, 1).round(3)) in run.stdout


def test_no_script_without_a_model():
    with pytest.raises(ValueError, match="captured elsewhere"):
        script(Trace.from_arrays("a", weights=[[[[1.0]]]]), 0, 0, version="9.9")


def test_no_such_head():
    with pytest.raises(ValueError, match="heads 0 to 2, got 3"):
        numbers(random_trace(3), head=3)
    with pytest.raises(ValueError, match="part must be one of"):
        numbers(random_trace(3), part="cross")


TABLE = {
    "word, “quoted”": ["a,b", "<c>", "é"],
    "weight": np.array([0.1, np.nan, 1e-30]),
    "n": [1, 2, 3],
    "maybe": [0.5, None, np.float32(0.25)],
    "mixed": ["x", None, 3],
    "yes": np.array([True, False, True]),
}
FACTS = {"model": "m", "n_cut": 0, "switches": {"causal": None}}
EMPTY = {"weight": [0.1, None, 1e-30], "maybe": [0.5, None, 0.25], "mixed": ["x", None, 3]}


def test_a_table_is_read_again_from_csv_and_json():
    content = json.loads(table_json(TABLE, FACTS))
    assert {name: content[name] for name in FACTS} == FACTS
    lists = {name: list(map(float, column)) if name == "yes" else list(column) for name, column in TABLE.items()}
    assert content["columns"] == lists | EMPTY | {"yes": [True, False, True]}
    rows = list(csv.DictReader(io.StringIO(table_csv(TABLE, FACTS))))
    assert [row["about"] for row in rows] == [json.dumps(FACTS), "", ""]
    for name, cells in content["columns"].items():
        assert [row[name] for row in rows] == ["" if cell is None else str(cell) for cell in cells]


def test_a_table_is_read_again_from_npz_without_pickle():
    with np.load(io.BytesIO(table_npz(TABLE, FACTS)), allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == list(TABLE)
        columns = [arrays[f"column_{place}"] for place in range(len(TABLE))]
        assert columns[0].tolist() == TABLE["word, “quoted”"] and columns[4].tolist() == ["x", "", "3"]
        np.testing.assert_array_equal(columns[1], TABLE["weight"])
        np.testing.assert_array_equal(columns[3], [0.5, np.nan, 0.25])
        assert columns[2].tolist() == [1, 2, 3] and columns[5].dtype == bool
        assert (arrays["model"].item(), arrays["n_cut"].item()) == ("m", 0)
        assert json.loads(arrays["switches"].item()) == FACTS["switches"]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError):
        table_csv({"a": [1], "b": [1, 2]}, {})
