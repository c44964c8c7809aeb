"""Models of every kind on the Explore page: typed names, folders, precisions, parts, and switches that can't act."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.models.load.by_name import load
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
Folder = Callable[..., Path]
WORDS = "w1 w2 w3 w4 w5 w6"


def test_a_folder_typed_into_the_picker_is_shown(open_app: Open, tiny_folder: Folder) -> None:
    folder = str(tiny_folder("llama"))
    visitor = open_app(layer="1", head="2", text=WORDS)
    visitor.choose("model", folder)
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])
    weights = load(folder).trace(WORDS).weights(1, 2)
    np.testing.assert_allclose(np.nan_to_num(visitor.drawn()), weights, atol=1e-6)
    assert "LlamaForCausalLM" in visitor.says()
    assert open_app(**visitor.app.query_params).visit.info.name == folder


WRONG = ["./nope", "/no/such folder", "C:\\models\\x", "nobody/nothing-of-that-name", "gpt2", "<b>x</b>", "~/nope.gguf"]


def test_a_wrong_name_gets_one_sentence_and_the_last_model_stays(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", _no_network)
    visitor = open_app()
    drawn = visitor.drawn()
    for name in WRONG:
        visitor.choose("model", name)
        assert visitor.crashes() == []
        (sentence,) = visitor.errors()
        assert name in sentence and sentence.endswith(".") and len(sentence) < 300
        assert "Still showing SmolLM2-135M-Instruct (4-bit)." in visitor.says(), name
        np.testing.assert_array_equal(visitor.drawn(), drawn)
    visitor.choose("layer", 3)
    visitor.type("Still here")
    assert visitor.crashes() == [] and visitor["layer"] == 3 and visitor.drawn().shape == (2, 2)
    visitor.choose("model", "smollm2")
    assert (visitor.crashes(), visitor.errors()) == ([], [])


def _no_network(*_: Any, **__: Any) -> None:
    raise OSError("no network")


def test_a_folder_without_a_model_and_a_damaged_one(open_app: Open, tiny_folder: Folder, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_folder("llama"), broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    (tmp_path / "fake.gguf").write_text("This is no model.")
    (tmp_path / "empty").mkdir()
    visitor = open_app()
    for name in ("broken", "fake.gguf", "empty"):
        visitor.choose("model", str(tmp_path / name))
        assert visitor.crashes() == [], name
        (sentence,) = visitor.errors()
        assert name in sentence
        assert visitor.has("head-map"), name


def test_an_empty_model_name_is_a_sentence(open_app: Open) -> None:
    visitor = open_app(model="")
    assert visitor.crashes() == []
    (sentence,) = visitor.errors()
    assert sentence[0].isalnum() and "smollm2" in sentence


def test_a_wrong_name_in_a_link_leaves_the_picker_usable(open_app: Open) -> None:
    visitor = open_app(model="./nope")
    assert visitor.crashes() == [] and len(visitor.errors()) == 1
    assert not visitor.has("head-map")
    visitor.choose("model", "smollm2")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.has("head-map")


def test_another_precision_is_another_model(open_app: Open) -> None:
    visitor = open_app(model="untrained", layer="2", head="1", text="ab ab ab")
    full = visitor.drawn()
    for dtype, error in (("bfloat16", 0.1), ("float16", 0.02)):
        visitor.choose("precision", dtype)
        assert (visitor.crashes(), visitor.errors()) == ([], [])
        assert visitor.visit.info.dtype == dtype and f"weights in {dtype}" in visitor.says()
        half = visitor.drawn()
        np.testing.assert_allclose(np.nansum(half, axis=1), 1, atol=1e-5)
        assert 0 < np.nanmax(np.abs(half - full)) < error
    visitor.choose("precision", "float32")
    np.testing.assert_array_equal(visitor.drawn(), full)


@pytest.mark.parametrize("model", ["untrained", "minilm"])
def test_the_engine_from_scratch_gives_the_same_maps(open_app: Open, model: str) -> None:
    visitor = open_app(model=model, layer="2", head="1", text="ab ab ab", causal="off", acts="pass")
    torch_map = visitor.drawn()
    visitor.choose("engine", "numpy")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.visit.info.engine == "numpy" and visitor.widget("precision").disabled
    assert 0 < np.nanmax(np.abs(visitor.drawn() - torch_map)) < 1e-5
    assert "Against PyTorch, over all heads: weights differ by at most" in visitor.says()
    visitor.choose("engine", "torch")
    np.testing.assert_array_equal(visitor.drawn(), torch_map)
    assert "Against PyTorch" not in visitor.says()


def test_a_model_without_an_engine_from_scratch_is_a_sentence(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(model=str(tiny_folder("t5")), text=WORDS)
    visitor.choose("engine", "numpy")
    assert visitor.crashes() == [] and len(visitor.errors()) == 1
    assert visitor.has("head-map")
    visitor.choose("engine", "torch")
    assert (visitor.crashes(), visitor.errors()) == ([], [])


@pytest.mark.parametrize("name", ["gptneo", "bloom"])
def test_switches_that_cannot_act_are_disabled_and_say_why(open_app: Open, tiny_folder: Folder, name: str) -> None:
    visitor = open_app(model=str(tiny_folder(name)), text=WORDS, layer="1", head="0", query="3", key="1")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    reason = visitor.visit.info.cannot["causal"]
    for key in ("mask", "temperature", "off", "histogram", "forbid-head", "forbid-layer", "forbid-all"):
        widget = visitor.widget(key)
        assert widget.disabled and widget.help == reason, key
    assert next(b for b in visitor.app.button if b.label == "Switch L1 H0 off").disabled
    assert "score" not in visitor.says().split("weight")[1][:20]
    assert np.isfinite(visitor.drawn()).any()


@pytest.mark.parametrize("name", ["gptneo", "bloom", "t5"])
def test_switches_in_a_link_that_cannot_act_are_put_at_rest_with_a_note(
    open_app: Open, tiny_folder: Folder, name: str
) -> None:
    switched = {"temperature": "off", "off": "1.0", "forbid": "1.0.3.1", "acts": "pass"}
    visitor = open_app(model=str(tiny_folder(name)), text=WORDS, layer="1", head="0", **switched)
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.visit.switches.at_rest
    assert len(visitor.notes()) >= 1


def test_switches_are_put_at_rest_with_a_note_when_the_new_model_cannot(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(layer="1", head="0", text=WORDS, causal="off", temperature="off", off="1.0", forbid="1.0.3.1")
    visitor.choose("model", str(tiny_folder("bloom")))
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.visit.switches.at_rest
    assert visitor.notes() == [visitor.visit.info.cannot["causal"]]


def test_the_factor_is_not_offered_where_there_is_none(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(model=str(tiny_folder("t5")), text=WORDS, temperature="off")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    temperature = visitor.widget("temperature")
    assert not temperature.disabled and not any("√" in option for option in temperature.options)
    assert visitor.visit.info.cannot["scaled"] in temperature.help
    assert visitor["temperature"] == "1" and visitor.widget("histogram").disabled
    assert visitor.visit.info.cannot["scaled"] in visitor.notes()


def test_an_encoder_decoder_shows_each_part_with_its_own_tokens(open_app: Open, tiny_folder: Folder) -> None:
    folder = str(tiny_folder("t5"))
    trace = load(folder).trace(WORDS)
    visitor = open_app(model=folder, text=WORDS, layer="1", head="2")
    shapes = {}
    for part in ("encoder", "decoder", "cross", "encoder"):
        visitor.choose("part", part)
        assert (visitor.crashes(), visitor.errors()) == ([], []), part
        np.testing.assert_allclose(np.nan_to_num(visitor.drawn()), trace.weights(1, 2, part=part), atol=1e-6)
        shapes[part] = visitor.drawn().shape
        assert visitor.app.query_params["part"] == part
    assert shapes == {"encoder": (6, 6), "decoder": (1, 1), "cross": (1, 6)}
    visitor.choose("model", "smollm2")
    assert visitor.crashes() == [] and not visitor.has("part")


def test_only_layers_with_softmax_attention_are_offered(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(model=str(tiny_folder("qwen3next")), text=WORDS, layer="0", head="0")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.name == "L3 H0"
    assert visitor.component("overview")["rowLabels"] == ["L3"]
    visitor.press("step a layer up")
    visitor.press("step a layer down")
    assert visitor.crashes() == [] and visitor.name == "L3 H0"


@pytest.mark.parametrize(("name", "says"), [("mamba", "no attention maps"), ("longformer", "isn't supported")])
def test_a_model_without_maps_says_so_and_the_last_one_stays(
    open_app: Open, tiny_folder: Folder, name: str, says: str
) -> None:
    visitor = open_app()
    visitor.choose("model", str(tiny_folder(name)))
    assert visitor.crashes() == []
    (sentence,) = visitor.errors()
    assert says in sentence
    assert visitor.drawn().shape == (11, 11)


def test_rows_with_a_learned_sink_are_said_to_sum_to_less(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(model=str(tiny_folder("gptoss")), text=WORDS, layer="1", head="0")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    missing = 1 - np.nansum(visitor.drawn(), axis=1).mean()
    assert missing > 0.01
    assert f"Rows sum to less than 1: {missing:.0%} goes to this head's learned sink" in visitor.says()
