"""The page Generate without a browser: what it draws against the engine's own steps, and what it makes of odd cases."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.app.generate import with_without
from attnviz.app.generate.continuation import MOST, Continuation
from attnviz.app.generate.measuring import LENGTHS, N_STEPS, measure_both
from attnviz.app.generate.step_view import MOST_SIDE, _old_part
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.fields import LANDING
from attnviz.core.cost import formulas as cost
from attnviz.core.cost.published import published_models
from attnviz.core.generation.step import Step
from attnviz.core.trace.switches import Switches
from attnviz.models.measure.shapes import shape_of
from tests import tiny
from tests.ui.charts import values
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
Folder = Callable[..., Path]
WORDS = "w1 w2 w3 <br> w1 w2 $x$ w7"
N_WORDS = 8


@pytest.fixture
def open_page(open_app: Open) -> Open:
    """Return a function that opens the page at an address, as a link does."""
    return lambda **address: open_app(page="generate", **address)


@pytest.fixture
def open_tiny(open_page: Open, tiny_folder: Folder) -> Open:
    """Return a function that opens the page on a tiny model, at its layer 1, head 0."""

    def visit(name: str = "llama", **address: str) -> Visitor:
        return open_page(**{"model": str(tiny_folder(name)), "text": WORDS, "layer": "1", "head": "0"} | address)

    return visit


@pytest.fixture
def own_llama(tmp_path: Path) -> str:
    """Return the folder of a loaded model of the test's own, whose texts have no end."""
    folder = str(tiny.build("llama", tmp_path / "own", sharpen=tiny.SHARP))
    set_ends(cache.get_engine(ModelChoice(folder), lambda sentence: None), None)
    return folder


def set_ends(engine: Any, ids: list[int] | None) -> None:
    """Say which tokens end a text."""
    engine.model.generation_config.eos_token_id = ids


def engine_of(visitor: Visitor) -> Any:
    """Return the engine that a visitor's page runs."""
    return cache.get_engine(visitor.visit.choice, lambda sentence: None)


def steps_of(visitor: Visitor, n: int, **options: Any) -> list[Step]:
    """Return the first steps of the visitor's text, from the engine itself."""
    return list(engine_of(visitor).generate(visitor["text"], n, **options))


def assert_well(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.warnings(), visitor.notes()) == ([], [], [], [])


def assert_shows(visitor: Visitor, step: Step) -> None:
    """Check that the page shows that step: the token, its rivals, the map with all rows, and the kept vectors."""
    assert visitor.crashes() == [] and visitor.errors() == []
    assert f"**{step.token.label}** was taken: the model gives it {100 * step.probability:.3g} %" in visitor.says()
    layer, head = visitor["layer"], visitor["head"]
    trace = step.trace
    allowed = trace.allowed(layer, head)
    weights = np.where(allowed, trace.weights(layer, head), np.nan)
    np.testing.assert_allclose(values(visitor, "generate-map"), weights, atol=1e-6)
    assert visitor.component("generate-strip")["labels"] == [token.label for token in trace.tokens]
    percents = sorted(100 * chance for _, chance in step.candidates)
    np.testing.assert_allclose(np.sort(values(visitor, "rivals", axis="x")), percents, rtol=1e-5)
    for name, array in zip("KV", step.cache[layer] if step.cache else (), strict=False):
        np.testing.assert_allclose(values(visitor, f"cache-{name}"), np.linalg.norm(array, axis=-1), rtol=1e-5)


def button(visitor: Visitor, label: str) -> Any:
    return next(b for b in visitor.app.button if b.label == label)


def until(visitor: Visitor, done: Callable[[], bool], most: int = 200) -> None:
    """Let the page run again and again, as a browser does every now and then."""
    for _ in range(most):
        if done():
            return
        visitor.app.run()
    pytest.fail(f"not done after {most} runs")


# --- step by step ---


def test_nothing_is_written_before_the_first_step(open_tiny: Open) -> None:
    visitor = open_tiny()
    assert_well(visitor)
    assert "Press **Step**" in visitor.says() and not visitor.has("generate-map")
    assert [button(visitor, name).disabled for name in ("To start", "Back", "Step", "Play")] == [
        True,
        True,
        False,
        False,
    ]


def test_step_back_and_to_start(open_tiny: Open) -> None:
    visitor = open_tiny()
    steps = steps_of(visitor, 3)
    for n, step in enumerate(steps, 1):
        visitor.press("Step")
        assert_shows(visitor, step)
        assert visitor.app.query_params["written"] == str(n)
    visitor.press("Back")
    assert_shows(visitor, steps[1])
    visitor.press("To start")
    assert "written" not in visitor.app.query_params and not visitor.has("generate-map")
    visitor.press("Step")
    assert_shows(visitor, steps[0])
    assert_well(visitor)


def test_the_real_model_goes_on(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(written="3")
    assert_shows(visitor, list(smollm2.generate(LANDING, 3))[-1])
    assert "13 x 13: 11 tokens of yours" in visitor.says()
    assert "The 12 columns that were there before are the same to the last bit." in visitor.says()


@pytest.mark.parametrize("n", [0, 1])
def test_steps_taken_back_are_not_run_again(open_tiny: Open, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    visitor = open_tiny(written="3")
    monkeypatch.setattr(type(visitor["continuation"]), "_add", lambda self, n: len(self.steps) < n and pytest.fail())
    visitor.app.session_state["written"] = n
    visitor.app.run()
    visitor.press("Step")
    assert_well(visitor)


def test_the_head_boxes_choose_map_and_kept_layer(open_tiny: Open) -> None:
    visitor = open_tiny(written="2")
    *_, step = steps_of(visitor, 2)
    for name, value in (("layer", 0), ("head", 3), ("layer", 1)):
        visitor.choose(name, value)
        assert_shows(visitor, step)
    layers = [np.linalg.norm(step.cache[layer][0], axis=-1) for layer in (0, 1)]
    assert np.abs(layers[0] - layers[1]).max() > 0.01  # else the test couldn't tell


def test_the_prompt_is_marked(open_tiny: Open) -> None:
    visitor = open_tiny(written="4")
    shapes = visitor.chart("generate-map")["layout"]["shapes"]
    lines = [shape for shape in shapes if shape["type"] == "line"]
    assert {tuple(line[side] for side in ("x0", "x1", "y0", "y1")) for line in lines} == {
        (0, 1, N_WORDS - 0.5, N_WORDS - 0.5),
        (N_WORDS - 0.5, N_WORDS - 0.5, 0, 1),
    }
    strip = visitor.component("generate-strip")
    assert strip["special"] == [False] * N_WORDS + [True] * 3


def test_only_the_new_column_is_framed(open_tiny: Open) -> None:
    frames = []
    for written in ("1", "2"):
        (frame,) = open_tiny(written=written).chart("cache-V")["layout"]["shapes"]
        frames.append((frame["x0"], frame["x1"]))
    assert frames == [(-0.5, N_WORDS - 0.5), (N_WORDS - 0.5, N_WORDS + 0.5)]


def test_kept_columns_are_compared_in_all_layers() -> None:
    old = {0: (np.ones((2, 3, 4)), np.ones((2, 3, 4))), 1: (np.ones((2, 3, 4)), np.ones((2, 3, 4)))}
    new = {layer: tuple(np.pad(array, ((0, 0), (0, 1), (0, 0))) for array in pair) for layer, pair in old.items()}
    steps = [SimpleNamespace(cache=old), SimpleNamespace(cache=new)]
    assert _old_part(steps, 3) == "The 3 columns that were there before are the same to the last bit."
    new[1][1][0, 2, 3] += 0.25
    assert "differ by at most 2.5e-01" in _old_part(steps, 3)


def test_of_a_long_text_the_last_tokens_are_drawn(open_tiny: Open) -> None:
    visitor = open_tiny(text=" ".join(["w1", "w2", "w3"] * 40), written="3")
    *_, step = steps_of(visitor, 3)
    n = len(step.trace.tokens)
    assert n == 122 and f"Drawn: tokens {n - MOST_SIDE} to {n - 1} of {n}." in visitor.says()
    weights = step.trace.weights(1, 0)[-MOST_SIDE:, -MOST_SIDE:]
    drawn = values(visitor, "generate-map")
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], weights[np.tri(MOST_SIDE, dtype=bool)], atol=1e-6)
    assert values(visitor, "cache-K").shape == (2, MOST_SIDE)
    assert_well(visitor)


def test_the_tables_hold_the_numbers(open_tiny: Open) -> None:
    visitor = open_tiny(written="2")
    for key in ("rivals", "generate-map", "cache-K"):
        visitor.app.session_state[f"{key}-table"] = True
    visitor.app.run()
    assert_well(visitor)


# --- how tokens are chosen ---


def test_a_seed_gives_the_same_text_again(open_tiny: Open) -> None:
    chosen = {"warmth": "1.5", "top_k": "40", "top_p": "0.95", "seed": "7", "written": "6"}
    one, again, other = open_tiny(**chosen), open_tiny(**chosen), open_tiny(**chosen | {"seed": "8"})
    steps = steps_of(one, 6, temperature=1.5, top_k=40, top_p=0.95, seed=7)
    assert_shows(one, steps[-1])
    assert_shows(again, steps[-1])
    assert f"Drawn at random from {steps[-1].n_allowed} allowed tokens (seed 7)." in one.says()
    assert steps[-1].n_allowed <= 40
    assert [s.token.id for s in one["continuation"].steps] != [s.token.id for s in other["continuation"].steps]
    other.choose("seed", 7)
    assert_shows(other, steps[-1])
    assert other.app.query_params["seed"] == "7"


def test_without_chance_no_seed_is_asked(open_tiny: Open) -> None:
    visitor = open_tiny(seed="5", top_k="3", written="2")
    assert not visitor.has("top_k") and "Greedy: always the likeliest." in visitor.says()
    assert_shows(visitor, steps_of(visitor, 2)[-1])
    visitor.choose("warmth", "1")
    assert visitor.has("seed")
    assert_shows(visitor, steps_of(visitor, 2, temperature=1, top_k=3, seed=5)[-1])


# --- switches ---


def test_a_head_that_is_off_in_the_pass_changes_the_text(open_tiny: Open) -> None:
    visitor = open_tiny(written="5")
    heads = frozenset({(0, 0), (0, 1), (1, 2), (1, 0)})
    off = steps_of(visitor, 5, switches=Switches(ablate=heads))
    assert np.abs(off[-1].logits - steps_of(visitor, 5)[-1].logits).max() > 1e-3
    other = open_tiny(written="5", off="0.0_0.1_1.2_1.0", acts="pass")
    assert_shows(other, off[-1])
    other.press("All switches at rest")
    assert_shows(other, steps_of(visitor, 5)[-1])


def test_switches_on_the_picture_leave_the_text_alone(open_tiny: Open) -> None:
    visitor = open_tiny(written="5", temperature="4", acts="picture")
    assert_shows(visitor, steps_of(visitor, 5)[-1])
    visitor.choose("acts", "pass")
    assert_shows(visitor, steps_of(visitor, 5, switches=Switches(temperature=4))[-1])


def test_where_tokens_see_later_ones_nothing_is_kept(open_tiny: Open) -> None:
    visitor = open_tiny(written="3", causal="off", acts="pass")
    step = steps_of(visitor, 3, cache=False, switches=Switches(causal=False))[-1]
    assert_shows(visitor, step)
    assert np.isfinite(values(visitor, "generate-map")).all()
    assert "nothing can be kept: the page runs without a cache" in visitor.says() and not visitor.has("cache-K")
    visitor.choose("writing_topic", "memory")
    assert "held by the live cache" not in visitor.says()
    assert_well(visitor)


def test_a_model_whose_cache_cannot_be_used_writes_without_and_says_why(open_page: Open, tmp_path: Path) -> None:
    folder = tiny.build(tiny.recipe("DogeForCausalLM", "DogeConfig", num_key_value_heads=2), tmp_path)
    visitor = open_page(model=str(folder), text=WORDS, written="2", layer="1", head="0")
    reason = visitor.visit.info.cannot["cache"]
    assert_shows(visitor, steps_of(visitor, 2, cache=False)[-1])
    assert reason in visitor.says() and not visitor.has("cache-K")
    visitor.choose("writing_topic", "both")
    assert reason in "".join(visitor.notes()) and not visitor.has("run-both")
    assert visitor.crashes() == visitor.errors() == []


# --- playing ---


def test_playing_writes_a_token_each_time_until_it_is_stopped(open_tiny: Open) -> None:
    visitor = open_tiny()
    visitor.press("Play")
    counts = [visitor["written"]]
    for _ in range(4):
        visitor.app.run()
        counts.append(visitor["written"])
    assert counts == list(range(counts[0], counts[0] + 5))
    visitor.press("Stop")
    n = visitor["written"]
    visitor.app.run()
    assert visitor["written"] == n and button(visitor, "Play")
    assert_shows(visitor, steps_of(visitor, n)[-1])


def test_a_step_by_hand_stops_the_playing(open_tiny: Open) -> None:
    visitor = open_tiny()
    visitor.press("Play")
    n = visitor["written"]
    visitor.press("Step")
    visitor.app.run()
    assert visitor["written"] == n + 1 and not visitor["playing"]


def test_playing_ends_where_the_page_ends(open_tiny: Open, own_llama: str) -> None:
    visitor = open_tiny(model=own_llama, written="61")
    visitor.press("Play")
    until(visitor, lambda: not visitor["playing"], most=10)
    assert visitor["written"] == MOST
    assert visitor.notes() == [f"That is as far as this page goes: {MOST} tokens."]
    assert (
        button(visitor, "Step").disabled and button(visitor, "Play").disabled and not button(visitor, "Back").disabled
    )
    assert visitor.crashes() == []


def test_a_new_text_while_it_plays_is_written_from_its_start(open_tiny: Open) -> None:
    visitor = open_tiny(written="5")
    visitor.press("Play")
    visitor.type("w9 w8 w7")
    assert visitor["written"] <= 1
    visitor.app.run()
    assert_shows(visitor, steps_of(visitor, visitor["written"])[-1])
    assert len(visitor["continuation"].steps[0].trace.tokens) == 3
    visitor.choose("model", "minilm")
    assert visitor.crashes() == [] and "can't continue a text" in visitor.says()


def test_leaving_the_page_while_it_plays_and_coming_back(open_tiny: Open) -> None:
    visitor = open_tiny()
    visitor.press("Play")
    n = visitor["written"]
    visitor.app.switch_page("attnviz/app/explore/page.py").run()
    visitor.app.run()
    assert visitor["written"] == n and visitor.crashes() == []
    visitor.app.switch_page("attnviz/app/generate/page.py").run()
    assert_shows(visitor, steps_of(visitor, visitor["written"])[-1])


def test_two_visitors_write_their_own_texts(open_tiny: Open) -> None:
    one, two = open_tiny(), open_tiny(text="w5 w6")
    for _ in range(3):
        one.press("Step")
        two.press("Step")
    assert_shows(one, steps_of(one, 3)[-1])
    assert_shows(two, steps_of(two, 3)[-1])


def test_two_runs_of_one_visitors_page_never_make_a_step_at_once() -> None:
    def slow() -> Iterator[int]:
        for n in range(6):
            time.sleep(0.02)
            yield n

    writing, faults = Continuation((), slow(), True), []

    def write() -> None:
        try:
            writing.reach(6, lambda n: None)
        except ValueError as error:  # generator already executing
            faults.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [] and writing.steps == list(range(6))


# --- links ---


def test_a_link_shows_the_same_picture(open_page: Open, open_tiny: Open) -> None:
    visitor = open_tiny(warmth="1", seed="3")
    for _ in range(4):
        visitor.press("Step")
    visitor.press("Back")
    other = open_page(**visitor.app.query_params)
    for chart in ("generate-map", "rivals", "cache-K", "cache-V"):
        assert other.chart(chart) == visitor.chart(chart)
    assert other.app.query_params == visitor.app.query_params
    assert other["written"] == 3


@pytest.mark.parametrize("written", ["65", "-1", "x"])
def test_a_link_that_cannot_be_read_says_so(open_tiny: Open, written: str) -> None:
    visitor = open_tiny(written=written)
    assert visitor["written"] == 0 and visitor.crashes() == []
    assert visitor.notes() == ["The link's “written” can't be read, so the page's own is shown."]


# --- with and without the cache ---


def test_both_ways_are_run_and_compared(open_page: Open) -> None:
    visitor = open_page(model="untrained", layer="0", head="0", writing_topic="both")
    visitor.press("Run both")
    until(visitor, lambda: visitor.has("both-seconds"))
    assert_well(visitor)
    n = len(LENGTHS) * N_STEPS
    (result,) = [line for line in visitor.says().split("\n") if line.startswith("Over ")]
    assert f"Over {n} steps the same tokens came out" in result
    gap = float(re.search(r"differ by at most \*\*(.+?)\*\*", result)[1])
    assert 0 < gap < 1e-4
    np.testing.assert_array_equal(
        values(visitor, "both-seconds", axis="x"), [length + N_STEPS - 1 for length in LENGTHS]
    )
    shape = shape_of(attnviz.load("untrained"))
    data = {trace["name"]: i for i, trace in enumerate(visitor.chart("both-formula")["data"])}
    for cached, name in ((True, "attention, with the cache"), (False, "attention, without")):
        where = values(visitor, "both-formula", data[name], "x")
        expected = [cost.step_cost(shape, int(t), cache=cached).attention for t in where]
        np.testing.assert_allclose(values(visitor, "both-formula", data[name], "y"), expected, rtol=1e-5)
    again = open_page(model="untrained", layer="0", head="0", writing_topic="both")
    assert again.has("both-seconds")  # kept for all


def test_a_measurement_can_be_stopped(open_tiny: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = open_tiny(writing_topic="both", text="w1 w2 w4")
    assert "repeated to 16, 64, 128, 256, 512 tokens" in visitor.says()
    go_on = threading.Event()
    monkeypatch.setattr(with_without, "measure_both", lambda engine, text, lengths, say: go_on.wait(300))
    visitor.press("Run both")
    visitor.app.run()
    visitor.press("Stop")
    go_on.set()
    assert visitor.has("run-both") and visitor["measuring_both"] is None
    assert cache.results().peek(("both ways", visitor.visit.choice, "w1 w2 w4")) is None
    assert_well(visitor)


def test_each_step_of_the_measurement_is_told(open_page: Open) -> None:
    told = []
    found = measure_both(attnviz.load("untrained"), "some text", LENGTHS[:2], lambda *said: told.append(said[:2]))
    assert told == [(n, 4 * N_STEPS) for n in range(1, 4 * N_STEPS + 1)] and len(found) == 2


def test_another_text_is_not_measured_unasked(open_page: Open) -> None:
    visitor = open_page(model="untrained", layer="0", head="0", writing_topic="both", text="first text")
    visitor.press("Run both")
    visitor.type("second text")
    assert visitor.has("run-both") and not visitor.has("both-seconds")
    visitor.choose("writing_topic", "steps")
    visitor.choose("writing_topic", "both")
    assert visitor.has("run-both")
    assert_well(visitor)


def test_a_short_limit_leaves_no_room_to_measure(open_tiny: Open) -> None:
    visitor = open_tiny("gpt2_inv", writing_topic="both")
    assert visitor.crashes() == [] and not visitor.has("run-both")
    (note,) = visitor.notes()
    assert f"takes 16 tokens in all; to measure both ways takes {LENGTHS[0] + N_STEPS}." in note
    visitor = open_tiny("opt", writing_topic="both")
    assert "repeated to 16 tokens" in visitor.says()  # of 64, so the next length and its steps don't fit
    visitor.press("Run both")
    until(visitor, lambda: visitor.has("both-seconds"))
    assert_well(visitor)


# --- memory and other models ---


@pytest.mark.parametrize("name", ["llama", "mistral_sw4", "gemma2", "gpt2", "opt"])
def test_the_formula_gives_the_bytes_of_the_live_cache(open_tiny: Open, name: str) -> None:
    visitor = open_tiny(name, written="5", writing_topic="memory")
    shape = shape_of(engine_of(visitor))
    expected = cost.cache_bytes(shape, N_WORDS + 4, 4)
    assert steps_of(visitor, 5)[-1].cache_bytes == expected
    assert f"**{expected:,} bytes** are held by the live cache" in visitor.says()
    assert f"the formula gives {expected:,}: exactly the same." in visitor.says()
    factors = (shape.n_layers, shape.n_kv_heads, N_WORDS + 4, shape.d_head, 2, 4)
    assert " \\times ".join(map(str, factors)) in "".join(element.value for element in visitor.app.latex)
    assert ("the cache is half" in visitor.says()) == (shape.n_kv_heads == 2)
    assert_well(visitor)


def test_half_precision_keeps_half(open_tiny: Open) -> None:
    visitor = open_tiny(precision="bfloat16", written="1", writing_topic="memory")
    assert f"**{2 * 2 * N_WORDS * 8 * 2 * 2:,} bytes**" in visitor.says() and "exactly the same" in visitor.says()


def test_grouped_queries_keep_a_third(open_page: Open) -> None:
    visitor = open_page(written="1", writing_topic="memory")
    assert f"**{30 * 3 * 11 * 64 * 2 * 4:,} bytes**" in visitor.says() and "exactly the same" in visitor.says()
    assert "9 query heads but only 3 key/value heads, so the cache is a third" in visitor.says()


@pytest.mark.parametrize(
    ("bits", "per_weight", "per_number"), [("16 bits", 2, 2), ("8 bits", 1, 1), ("4 bits", 0.5, 2)]
)
def test_other_models_are_worked_out_from_their_sizes(
    open_page: Open, bits: str, per_weight: float, per_number: float
) -> None:
    visitor = open_page(writing_topic="models", bits=bits)
    assert_well(visitor)
    table = next(frame.value for frame in visitor.app.dataframe if "tokens in 24 GB" in frame.value.columns)
    models = published_models()
    assert list(table["model"]) == [model.name for model in models] and len(models) >= 8
    for row, model in zip(table.to_dict("records"), models, strict=True):
        shape = model.shape
        one = shape.n_layers * shape.n_kv_heads * shape.d_head * 2 * per_number  # bytes of a token
        assert amount(row["cache at 32k"]) == pytest.approx(one * 32_768, rel=0.006)
        room = 24e9 - model.parameters * per_weight
        if room < 0:
            assert row["tokens in 24 GB"] == "weights don’t fit"
        else:
            most = int(row["tokens in 24 GB"].strip("()").replace(",", ""))
            assert most == int(room // one)
            assert row["tokens in 24 GB"].startswith("(") == (most > model.context)
        assert all(part in visitor.says() for part in (model.name, model.source[:30]))


def amount(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]


# --- models and texts that are odd ---


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("minilm", "predicts no next token, so it can't continue a text."),
        ("t5", "writes a second text beside the first; only models with one text continue it."),
        ("bloom", "can't be shown while it writes: only its finished maps can be had."),
    ],
)
def test_models_that_cannot_go_on_say_so_in_one_sentence(
    open_page: Open, tiny_folder: Folder, name: str, sentence: str
) -> None:
    model = name if name == "minilm" else str(tiny_folder(name))
    visitor = open_page(model=model, text=WORDS, layer="1", head="0", written="5")
    for topic in ("steps", "both", "memory"):
        visitor.choose("writing_topic", topic)
        (note,) = visitor.notes()
        assert note.endswith(sentence), topic
        assert (visitor.crashes(), visitor.errors()) == ([], [])


@pytest.mark.parametrize("name", ["gptoss", "qwen3next", "gemma2_nocap", "mistral_sw4"])
def test_unusual_attention_is_shown(open_tiny: Open, name: str) -> None:
    layer = {"qwen3next": "3"}.get(name, "0")
    visitor = open_tiny(name, written="6", layer=layer)
    assert_shows(visitor, steps_of(visitor, 6)[-1])
    visitor.choose("writing_topic", "memory")
    assert "exactly the same" in visitor.says()
    assert_well(visitor)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_the_engine_from_scratch_drives_the_page(open_tiny: Open, name: str) -> None:
    visitor = open_tiny(name, engine="numpy", written="4")
    assert engine_of(visitor).info.engine == "numpy"
    assert_shows(visitor, steps_of(visitor, 4)[-1])
    other = open_tiny(name, written="4")
    ids = [[step.token.id for step in one["continuation"].steps] for one in (visitor, other)]
    assert ids[0] == ids[1]
    for topic in ("memory", "both"):
        visitor.choose("writing_topic", topic)
        assert visitor.crashes() == []


def test_a_text_that_fills_the_model(open_tiny: Open) -> None:
    visitor = open_tiny("gpt2_inv", written="7")
    assert button(visitor, "Step").disabled is False
    visitor.press("Step")
    visitor.press("Step")
    assert visitor["written"] == 16 - N_WORDS and button(visitor, "Step").disabled
    (note,) = visitor.notes()
    assert note.startswith("That is as far as") and note.endswith("goes: 16 tokens in all.")
    full = open_tiny("gpt2_inv", text=" ".join(["w1"] * 16), written="3")
    (note,) = full.notes()
    assert "has 16 tokens" in note and note.endswith("shorten the text.")
    assert full.crashes() == visitor.crashes() == []


def test_a_model_that_ends_its_text_at_once(open_tiny: Open, own_llama: str) -> None:
    visitor = open_tiny(model=own_llama)
    set_ends(engine_of(visitor), [steps_of(visitor, 1)[0].token.id])
    visitor = open_tiny(model=own_llama)
    visitor.press("Step")
    assert_shows(visitor, steps_of(visitor, 1)[-1])
    visitor.press("Step")
    assert visitor["written"] == 1 and button(visitor, "Step").disabled
    assert visitor.notes() == ["The model ended its text here (its end token came)."]
    visitor.press("Back")
    visitor.press("Play")
    until(visitor, lambda: not visitor["playing"], most=5)
    assert visitor["written"] == 1 and visitor.crashes() == []


def test_texts_that_end_at_once_cannot_be_compared(open_tiny: Open, own_llama: str) -> None:
    visitor = open_tiny(model=own_llama, writing_topic="both")
    set_ends(engine_of(visitor), list(range(97)))
    visitor.press("Run both")
    until(visitor, lambda: visitor.notes() != [] or visitor.crashes() != [])
    assert visitor.crashes() == [] and "The model ended this text before a second token" in visitor.notes()[0]


@pytest.mark.parametrize("text", ["I 👩‍👩‍👧 you", "日本語", "$x$ <b>", "שלום", "\n\na"])
def test_characters_of_several_tokens(open_page: Open, text: str) -> None:
    for model in ("smollm2", "untrained") if len(text) < 4 else ("untrained",):
        visitor = open_page(model=model, text=text, layer="1", head="0", written="4", warmth="2", seed="1")
        assert_well(visitor)
        step = steps_of(visitor, 4, temperature=2, seed=1)[-1]
        assert visitor.component("generate-strip")["labels"] == [token.label for token in step.trace.tokens]


@pytest.mark.usefixtures("no_traces")
def test_a_text_that_the_page_did_not_read_whole_is_not_continued(
    open_tiny: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_TOKENS", 6)
    visitor = open_tiny(text=WORDS + " w9 w9", written="2")
    assert any("texts of up to 6 are continued" in note for note in visitor.notes())
    assert "was taken" not in visitor.says() and not visitor.crashes()


def test_what_the_last_token_may_see_is_counted(open_tiny: Open) -> None:
    assert f"looks back at all {N_WORDS} tokens, itself included" in open_tiny(written="1").says()
    window = open_tiny("mistral_sw4", written="1")
    assert f"looks back at the 4 of {N_WORDS} tokens that it may see" in window.says()
