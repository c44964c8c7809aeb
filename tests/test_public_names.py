"""The names that others call or read: in Python, on the command line and inside files. None of them goes or changes."""

import dataclasses
import importlib
import inspect
import io
import json
from typing import Any

import numpy as np
import pytest
import typer

import attnviz
from attnviz.app.show.deck import Scene
from attnviz.app.talk.shipped import shipped_decks
from attnviz.cli import app
from attnviz.core.export.head_files import file_name, head_csv, head_json, head_npz, head_numbers, script
from attnviz.core.export.table_files import table_csv, table_json, table_npz
from attnviz.core.pronouns.items import SHIPPED
from attnviz.core.pronouns.scoreboard import CSV_COLUMNS, SCORES_FILE
from attnviz.models.engine import Engine
from tests.cases import every

DOORS = {
    "attnviz": "Step Switches Token Trace load __version__",
    "attnviz.core.attention": "softmax scaled_dot_product_attention multi_head_attention causal_mask",
    "attnviz.core.blockwise": "blockwise_attention",
    "attnviz.core.export": "file_name head_csv head_numbers",
    "attnviz.core.heads": "strongest",
    "attnviz.core.text_scores": "score_text",
    "attnviz.figures": """
        Curve Line Mark OKABE_ITO THEMES cache_bands candidate_bars code_on_slide component_bars component_map
        cost_curves distance_curve escape figure_html first_column_share flash_grid gradient_histogram head_map
        heads_changed labelled_bars layer_overview layers_by_heads map_on_slide next_token_bars on_page on_slide
        overview quantity rate_dots row_bars saturation_histogram score_histogram share_curves sum_bars talk_html
    """,
}
WHERE = "layer head part queries keys switches"
PARAMETERS = {  # as they are named and in this order; more may follow
    attnviz.load: "name engine dtype revision device progress",
    Engine.trace: "self text target switches max_tokens on_layer",
    Engine.generate: "self text n cache temperature top_k top_p seed switches candidates",
    attnviz.Switches: "causal scaled temperature ablate forbid",
    attnviz.Token: "index id label text start end special",
    attnviz.Trace.from_arrays: "tokens q k v weights scale causal name",
    attnviz.Trace.weights: f"self {WHERE}",
    attnviz.Trace.scores: f"self {WHERE}",
    attnviz.Trace.allowed: f"self {WHERE}",
    attnviz.Trace.qkv: "self layer head part",
    attnviz.Trace.scale: "self layer part",
    attnviz.Trace.heads: "self layer part",
    attnviz.Trace.causal: "self layer part",
    attnviz.Trace.layer_weights: "self layer part queries switches",
    attnviz.Trace.layers_of: "self part",
    attnviz.Trace.tokens_of: "self part",
    attnviz.Trace.next_tokens: "self n",
    attnviz.Trace.next_probabilities: "self",
}
ATTRIBUTES = {
    "trace": "text model tokens layers parts switches target n_cut seconds nbytes next_logits",
    "step": "token candidates seconds cache_bytes trace rank probability",
    "head": "scores weights allowed row cell name",
}
COMMANDS = {
    "app": "--port --browser --no-browser",
    "models": "",
    "heatmap": """
        --layer --head --out --text --file --model --causal --scaling --no-scaling --temperature --off --in-pass
        --target --part --theme --colours
    """,
    "heads": "--text --file --model --sort --known --lowest --n --part",
    "scan": "--model --items --out --lead --causal-only --control --no-control --cache --no-cache",
    "make-items": "--folder",
    "make-scores": "--model --out",
}
FACTS = "attnviz model title revision dtype engine part text n_cut switches switches_of_the_pass layer head"
INSIDE = {
    "a head's CSV": "query_index query key_index key allowed weight score about",
    "a head's JSON": f"{FACTS} queries keys weights scores allowed",
    "a head's NPZ": f"weights allowed scores query_labels query_ids key_labels key_ids {FACTS}",
    "a table's CSV": "query x about",
    "a table's JSON": "link columns",
    "a table's NPZ": "column_0 column_1 names link",
    "a scan's CSV": """
        layer head n accuracy accuracy_low accuracy_high weight_on_answer weight_on_distractor chance nearest first
        random_weights
    """,
    "shipped scores": "about boards",
    "a board": """
        model revision lead lang kind n n_groups baselines chosen control control_best layers accuracy low high answer
        distractor
    """,
    "an item": "id lang text pronoun answer distractors kind group source licence causal_ok meta",
    "shipped decks": "ten_minutes what_it_costs who_is_it",
    "a scene": """
        title caption picture text model precision engine layer head other query query_at key key_at word rival last
        switches whole_pass sizes_of sizes tokens number_bytes link question notes minutes
    """,
}


@pytest.fixture(scope="module")
def engine() -> Any:
    return attnviz.load("untrained")


@every("module, names", DOORS.items())
def test_a_module_has_the_names_that_others_import(module: str, names: str) -> None:
    door = importlib.import_module(module)
    assert [name for name in names.split() if not hasattr(door, name)] == []


@every("function, names", PARAMETERS.items())
def test_a_function_takes_what_it_took(function: Any, names: str) -> None:
    now = list(inspect.signature(function).parameters)
    assert [name for name in now if name in names.split()] == names.split()


def test_what_comes_back_has_its_attributes(engine: Any) -> None:
    trace = engine.trace("Ann saw it")
    (step,) = engine.generate("Ann", 1)
    given = {"trace": trace, "step": step, "head": trace.head(2, 1)}
    for name, attributes in ATTRIBUTES.items():
        assert [attribute for attribute in attributes.split() if not hasattr(given[name], attribute)] == [], name


def test_a_head_answers_as_its_trace(engine: Any) -> None:
    trace = engine.trace("Ann saw it")
    head = trace.head(2, 1, switches=attnviz.Switches(temperature=2))
    for name in ("scores", "weights", "allowed"):
        right = getattr(trace, name)(2, 1, switches=attnviz.Switches(temperature=2))
        np.testing.assert_array_equal(getattr(head, name), right)
    assert head.name == "L2 H1"


def test_commands_take_the_options_they_took() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, options in COMMANDS.items():
        now = {option for given in commands[name].params for option in (*given.opts, *given.secondary_opts)}
        assert set(options.split()) <= now, name


def test_files_have_inside_what_they_had(engine: Any) -> None:
    numbers = head_numbers(engine.trace("Ann saw it"), 2, 1, version="1")
    columns, facts = {"query": ["a", "b"], "x": [1.0, 2.0]}, {"link": "l"}
    scores = json.loads(SCORES_FILE.read_text(encoding="utf-8"))
    items = (SHIPPED / "en.jsonl").read_text(encoding="utf-8")
    inside = {
        "a head's CSV": head_csv(numbers).partition("\n")[0].split(","),
        "a head's JSON": json.loads(head_json(numbers)),
        "a head's NPZ": np.load(io.BytesIO(head_npz(numbers))),
        "a table's CSV": table_csv(columns, facts).partition("\n")[0].split(","),
        "a table's JSON": json.loads(table_json(columns, facts)),
        "a table's NPZ": np.load(io.BytesIO(table_npz(columns, facts))),
        "a scan's CSV": CSV_COLUMNS,
        "shipped scores": scores,
        "a board": scores["boards"][0],
        "an item": json.loads(items.partition("\n")[0]),
        "shipped decks": shipped_decks(),
        "a scene": [field.name for field in dataclasses.fields(Scene)],
    }
    assert {what: list(names) for what, names in inside.items()} == {w: names.split() for w, names in INSIDE.items()}


def test_a_file_is_named_and_a_script_written_as_before(engine: Any) -> None:
    trace = engine.trace("Ann saw it")
    assert file_name(trace, 2, 1, "csv") == "attnviz-untrained-L2-H1-ann-saw-it.csv"
    lines = script(trace, 2, 1, version="1").splitlines()
    assert {"import attnviz", "trace = engine.trace('Ann saw it')"} <= set(lines)
    assert "engine = attnviz.load('untrained', engine='torch', dtype='float32', revision='seed 0')" in lines
    assert any(line.startswith("weights = trace.weights(2, 1)") for line in lines)
