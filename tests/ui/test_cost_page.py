"""The page Cost: its numbers follow from the sizes that are shown, and its film ends with the trace's output."""

import base64
import csv
import io
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.app.cost import measured_here as measured
from attnviz.app.cost.flash import block_sizes
from attnviz.app.cost.parts_list import DRAW
from attnviz.app.cost.texts import all_parts
from attnviz.core.cost.formulas import Shape, layer_cost, row_sum_bytes, score_bytes
from attnviz.core.cost.measurements import WAYS, csv_text
from attnviz.core.cost.published import published_models
from attnviz.models.measure.timing import Run
from tests.ui.charts import TINY
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
SECONDS = 600
CHARTS = [  # page, address -> chart -> what its files are of, for test_facts.py
    ("cost", TINY, {"cost-curves": "nothing"}),
    ("cost", TINY | {"cost_part": "matrix"}, {"matrix-curves": "nothing"}),
    ("cost", TINY | {"cost_part": "flash"}, {f"flash-{name}": "rest" for name in ("grid", "scores", "output")}),
]


@pytest.fixture
def open_part(open_app: Open) -> Callable[..., Visitor]:
    """Return a function that opens the page at a part, as its link does."""

    return lambda part, **address: open_app(page="cost", cost_part=part, **address)


def says(visitor: Visitor) -> str:
    return visitor.says().replace("\u00a0", " ")


def values(visitor: Visitor, chart: str, trace: int = 0, axis: str = "y") -> np.ndarray:
    """Return what a chart draws."""
    packed = visitor.chart(chart)["data"][trace][axis]
    flat = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    return flat.reshape([int(n) for n in str(packed.get("shape", len(flat))).split(",")])


def by_name(visitor: Visitor, chart: str) -> dict[str, int]:
    """Return the place of each named line in a chart."""
    return {trace["name"]: i for i, trace in enumerate(visitor.chart(chart)["data"]) if "name" in trace}


def kept(visitor: Visitor) -> dict[str, list[str]]:
    """Return the table of the followed query's running numbers."""
    frame = next(d for d in visitor.app.dataframe if "running maximum" in d.value.columns).value
    return {name: list(frame[name]) for name in frame.columns}


def assert_well(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


def test_every_part_has_a_module_and_its_sentences() -> None:
    assert list(DRAW) == list(all_parts())


@pytest.mark.parametrize("part", DRAW)
def test_a_part_opens_from_its_link_and_says_what_a_speaker_would(open_part: Any, part: str) -> None:
    visitor = open_part(part)
    assert_well(visitor)
    assert all_parts()[part].title in "\n".join(header.value for header in visitor.app.subheader)
    assert len(re.findall(r"[.!?]( |$|\n)", all_parts()[part].text)) >= 3
    visitor.press(f"answer-{part}-button")
    assert_well(visitor)
    assert "{" not in visitor.says().split("Guess first.")[1]


def test_a_part_shows_the_source_of_its_functions(open_part: Any) -> None:
    for part in all_parts().values():
        assert all(callable(function) for function in part.functions())


# --- what grows how ---


def test_from_s_equals_d_on_is_put_right(open_part: Any) -> None:
    visitor = open_part("grows")
    visitor.press("answer-grows-button")
    answer = says(visitor)
    for text in ("At s = d = 4,096", "1.4 × 10¹¹", "2.7 × 10¹¹", "0.50 times", "8,192", "2.00 d", "24,576", "6.00 d"):
        assert text in answer, text
    assert "From s = 24,576 on (6.00 d) attention costs more than projections and MLP together." in answer


def test_the_tick_for_the_mlp_and_skipped_blocks_move_the_meeting_point(open_part: Any) -> None:
    visitor = open_part("grows")
    assert visitor.app.checkbox(key="cost_mlp").value is True
    visitor.app.checkbox(key="cost_skip").check().run()
    assert "From s = 49,152 on (12.00 d)" in says(visitor)
    visitor.app.checkbox(key="cost_mlp").uncheck().run()
    assert "From s = 16,384 on (4.00 d) attention costs more than the projections." in says(visitor)
    assert (visitor.app.query_params["cost_mlp"], visitor.app.query_params["cost_skip"]) == ("off", "on")
    assert list(by_name(visitor, "cost-curves")) == ["attention", "projections"]
    again = open_part("grows", cost_mlp="off", cost_skip="on")
    assert "From s = 16,384 on (4.00 d)" in says(again)


@pytest.mark.parametrize("axes", ["log", "linear"])
def test_the_curves_are_the_formula(open_part: Any, axes: str) -> None:
    visitor = open_part("grows", cost_axes=axes, cost_model="Llama 3.1 8B", cost_s="32768")
    assert_well(visitor)
    shape = next(model.shape for model in published_models() if model.name == "Llama 3.1 8B")
    lines = by_name(visitor, "cost-curves")
    lengths = values(visitor, "cost-curves", 0, "x")
    costs = [layer_cost(shape, int(s)) for s in lengths]
    for name, expected in (
        ("attention", [cost.attention for cost in costs]),
        ("projections", [cost.projections for cost in costs]),
        ("MLP", [cost.mlp for cost in costs]),
        ("projections and MLP", [cost.projections + cost.mlp for cost in costs]),
    ):
        np.testing.assert_allclose(values(visitor, "cost-curves", lines[name]), expected, rtol=1e-6)
    assert visitor.chart("cost-curves")["layout"]["xaxis"]["type"] == axes


def test_the_meeting_points_of_smollm2_are_marked(open_part: Any) -> None:
    visitor = open_part("grows", cost_model="SmolLM2-135M")
    assert_well(visitor)
    marks = visitor.chart("cost-curves")["data"][-1]
    np.testing.assert_allclose(values(visitor, "cost-curves", -1, "x"), [768, 3072])
    assert ["768" in marks["text"][0], "3,072" in marks["text"][1]] == [True, True]
    assert "From s = 3,072 on (5.33 d)" in says(visitor) and "With 3 query heads" in says(visitor)
    visitor.choose("cost_s", 16384)
    assert "16,384 tokens are more than SmolLM2-135M was made for (8,192)." in says(visitor)


def test_a_slider_makes_the_sizes_one_s_own_and_they_fit_each_other(open_part: Any) -> None:
    visitor = open_part("grows", cost_model="SmolLM2-135M")
    assert [visitor[f"cost_{name}"] for name in ("d", "heads", "group", "layers")] == [576, 9, 3, 30]
    visitor.choose("cost_d", 1024)
    assert_well(visitor)
    assert visitor["cost_model"] == "" and 1024 % visitor["cost_heads"] == 0
    assert visitor["cost_heads"] % visitor["cost_group"] == 0
    assert "the MLP is the classic one" in says(visitor)


@pytest.mark.parametrize(
    "address",
    [
        {"cost_d": "1000", "cost_heads": "7", "cost_group": "5", "cost_s": "100"},
        {"cost_d": "8", "cost_heads": "1", "cost_layers": "1", "cost_s": "16"},
        {"cost_d": "65536", "cost_heads": "1024", "cost_s": "524288", "cost_axes": "linear"},
    ],
)
@pytest.mark.parametrize("part", ["grows", "matrix"])
def test_odd_sizes_in_a_link_work(open_part: Any, part: str, address: dict[str, str]) -> None:
    assert_well(open_part(part, **address))


@pytest.mark.parametrize("address", [{"cost_s": "0"}, {"cost_d": "x"}, {"cost_model": "GPT-9"}, {"cost_mlp": "maybe"}])
def test_what_a_link_cannot_mean_is_said(open_app: Open, address: dict[str, str]) -> None:
    visitor = open_app(page="cost", cost_part="grows", **address)
    (note,) = visitor.notes()
    assert f"The link's “{next(iter(address))}” can't be read" in note
    visitor.app.run()
    assert_well(visitor)
    assert visitor["cost_s"] == 4096 and visitor["cost_mlp"] is True and visitor["cost_model"] == ""


# --- the score matrix ---


def test_the_matrix_of_8192_tokens_takes_4_gb_a_layer_and_137_in_training(open_part: Any) -> None:
    visitor = open_part("matrix", cost_s="8192")
    visitor.press("answer-matrix-button")
    assert "one layer's scores are 4.29 GB" in says(visitor).replace("**", "")
    assert "**4.29 GB**" in says(visitor) and "**137 GB**" in says(visitor) and "**134 MB**" in says(visitor)
    visitor.choose("cost_bytes", "4")
    assert "**8.59 GB**" in says(visitor) and "**275 GB**" in says(visitor)


def test_the_curves_of_bytes_are_the_formula(open_part: Any) -> None:
    visitor = open_part("matrix", cost_model="GPT-2 small")
    assert_well(visitor)
    lengths = values(visitor, "matrix-curves", 0, "x").astype(int)
    for trace, (heads, layers) in enumerate([(1, 1), (12, 1), (12, 12)]):
        expected = [score_bytes(int(s), heads, layers, 2) for s in lengths]
        np.testing.assert_allclose(values(visitor, "matrix-curves", trace), expected, rtol=1e-6)
    rows = [row_sum_bytes(int(s), 12, 12, 4) for s in lengths]
    np.testing.assert_allclose(values(visitor, "matrix-curves", 3), rows, rtol=1e-6)
    shape = Shape(768, 12, 12, 64, 3072, 12, gated=False)
    assert f"12 heads of {shape.d_head} multiply as much as one head of 768" in says(visitor)


# --- FlashAttention ---


def test_the_film_goes_block_by_block_and_keeps_what_a_softmax_needs(open_part: Any) -> None:
    visitor = open_part("flash", layer="13", head="8", cost_block="4")
    assert_well(visitor)
    trace = visitor.visit.rest
    n = len(trace.tokens)
    n_columns = -(-n // 4)
    assert visitor["flash-query"] == n - 1  # at first the last token is followed
    assert visitor["cost_at"] == (n - 1) // 4 * n_columns
    for _ in range(n_columns - 1):
        visitor.press("Next block")
    assert_well(visitor)
    scores = trace.scores(13, 8)[n - 1].astype(np.float64)
    table = kept(visitor)
    best = -np.inf
    for j in range(n_columns):
        seen = scores[: 4 * j + 4]
        np.testing.assert_allclose(float(table["running maximum"][j].replace("−", "-")), seen.max(), rtol=5e-3)
        np.testing.assert_allclose(float(table["running sum"][j]), np.exp(seen - seen.max()).sum(), rtol=5e-3)
        if j:
            factor = np.exp(best - seen.max())
            np.testing.assert_allclose(float(table["old sums times"][j]), factor, rtol=5e-3)
        best = seen.max()
    output = values(visitor, "flash-output", 0, "z")
    np.testing.assert_allclose(output[n_columns - 1], output[-1], atol=1e-5)
    np.testing.assert_allclose(output[-1], (trace.weights(13, 8) @ trace.qkv(13, 8)[2])[n - 1], atol=1e-5)
    assert np.abs(output[0] - output[-1]).max() > 1e-2
    assert "This row is finished." in says(visitor)


def test_a_growing_maximum_a_staying_one_and_a_skipped_block_are_told_apart(open_part: Any) -> None:
    visitor = open_part("flash", cost_block="2", cost_at="0")
    seen = set()
    for step in range(36):
        seen |= {
            word for word in ("The first block", "grew", "The maximum stayed", "Left out") if word in says(visitor)
        }
        if step < 35:
            visitor.press("Next block")
    assert_well(visitor)
    assert seen == {"The first block", "grew", "The maximum stayed", "Left out"}
    assert "15 of 36 blocks" in says(visitor)
    visitor.press("To the start")
    assert visitor["cost_at"] == 0 and "Block 1 of 36" in says(visitor)


def test_the_whole_output_equals_the_trace_s(open_part: Any) -> None:
    visitor = open_part("flash")
    difference = re.search(r"trace's output is \*\*(\S+)\*\*", says(visitor))[1]
    assert 0 <= float(difference.replace("−", "-")) < 1e-5


def test_another_block_size_starts_again_and_needs_more_at_once(open_part: Any) -> None:
    visitor = open_part("flash", cost_block="2", cost_at="7")
    assert "**2.08 kB** for blocks of 2" in says(visitor)  # (4 x 2 x 64 + 2 x 2 + 2 x 2) x 4 bytes
    visitor.choose("cost_block", 8)
    assert_well(visitor)
    assert visitor["cost_at"] == 2 and "**8.51 kB** for blocks of 8" in says(visitor)  # the last row of 2 x 2
    assert values(visitor, "flash-grid", 0, "z").shape == (2, 2)


def test_a_shorter_text_keeps_the_film_inside(open_part: Any) -> None:
    visitor = open_part("flash", cost_block="8", cost_at="3")
    visitor.type("Hi there")
    assert_well(visitor)
    assert visitor["cost_at"] < 4 and visitor.has("flash-grid")
    visitor.type("Hi")
    assert_well(visitor)


def test_an_encoder_skips_nothing(open_part: Any) -> None:
    visitor = open_part("flash", model="minilm", layer="2", head="1")
    assert_well(visitor)
    assert "Left out: 0 of" in says(visitor)


def test_a_model_of_finished_maps_says_so_in_one_sentence(open_part: Any, tiny_folder: Callable[..., Path]) -> None:
    visitor = open_part("flash", model=str(tiny_folder("bloom")), text="w1 w2 w3", layer="1", head="0")
    assert visitor.crashes() == [] and not visitor.has("flash-grid")
    assert visitor.notes() == [visitor.visit.info.cannot["scores"]]


@pytest.mark.parametrize("n", [1, 2, 11, 300, 4096, 10_000])
def test_every_text_has_blocks_to_choose_from(n: int) -> None:
    sizes = block_sizes(n, n)
    assert sizes and all(1 <= -(-n // size) <= 32 for size in sizes)


# --- measured here ---


def wait(visitor: Visitor) -> Run:
    run, end = visitor["timing_run"], time.monotonic() + SECONDS
    while run.state in ("waiting", "running") and time.monotonic() < end:
        time.sleep(0.1)
    visitor.wait_for("start-timing")
    return run


def test_a_measurement_is_drawn_told_and_given_as_csv(open_part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "Run", partial(Run, sizes=(256, 512, 2048), limit=33_000_000))
    visitor = open_part("measured")
    assert_well(visitor)
    visitor.press("Measure on this machine")
    assert any(button.label == "Stop" for button in visitor.app.button)
    run = wait(visitor)
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert run.state == "done" and {tokens for _, tokens, _ in run.skipped} == {2048}
    (note,) = visitor.notes()
    assert "NumPy, whole matrix at 2,048" in note and note.count("at 2,048") == len(WAYS)
    lines = by_name(visitor, "timing-seconds")
    for way, name in WAYS.items():
        expected = [m.seconds for m in run.results if m.way == way]
        np.testing.assert_allclose(values(visitor, "timing-seconds", lines[name]), expected, rtol=1e-6)
    assert "NumPy, time:" in says(visitor) and run.machine in says(visitor)
    rows = list(csv.DictReader(io.StringIO(csv_text(run.results, run.machine))))
    assert [(row["way"], int(row["tokens"])) for row in rows] == [(way, s) for s in (256, 512) for way in WAYS]
    visitor.choose("cost_part", "grows")
    visitor.choose("cost_part", "measured")
    assert visitor.has("timing-seconds")  # kept


def test_stop_stops_and_keeps_what_there_is(open_part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "Run", partial(Run, sizes=(128, 8192, 8192)))
    visitor = open_part("measured")
    visitor.press("Measure on this machine")
    run = visitor["timing_run"]
    while not run.results:
        time.sleep(0.05)
    visitor.press("Stop")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert run.state == "stopped" and visitor["timing"] is None
    assert "Stopped. What was measured until then is shown." in says(visitor)
    assert any(button.label == "Measure again" for button in visitor.app.button)


def test_switches_are_said_to_act_elsewhere(open_part: Any) -> None:
    assert "The switches act on the page Explore." in says(open_part("grows", causal="off"))
