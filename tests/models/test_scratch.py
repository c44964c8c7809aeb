"""The NumPy engine against the torch engine on the same weights, and its parts against torch's own functions."""

import dataclasses
import json
import math
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from threadpoolctl import ThreadpoolController

import attnviz
from attnviz import Switches
from attnviz.models.listen.probe import bare_trace
from attnviz.models.scratch import activations
from attnviz.models.scratch import decoder as scratch
from tests.models.eager import SCRIPTS, TEXT
from tests.models.saving import GPT2, saved

NAMES = ["smollm2", "minilm", "llama", "gpt2", "gpt2_inv", "bert"]
DECODERS = ["smollm2", "llama", "gpt2", "gpt2_inv"]
SHAPE = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
# random weights large enough that maps aren't flat
LLAMA = SHAPE | {"intermediate_size": 64, "num_key_value_heads": 2, "initializer_range": 0.3}
BERT = SHAPE | {"intermediate_size": 64, "initializer_range": 0.3}


def assert_same(one, other, atol=2e-5):
    """Compare the maps of all layers, and the prediction, of two traces."""
    assert (one.layers, one.parts, one.tokens) == (other.layers, other.parts, other.tokens)
    for layer in one.layers:
        np.testing.assert_allclose(one.layer_weights(layer), other.layer_weights(layer), rtol=0, atol=atol)
    assert (one.next_logits is None) == (other.next_logits is None)
    if one.next_logits is not None:
        np.testing.assert_allclose(one.next_probabilities(), other.next_probabilities(), rtol=0, atol=1e-4)
        np.testing.assert_allclose(one.next_logits, other.next_logits, rtol=1e-4, atol=2e-4)


# Both engines, side by side


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_predictions_are_torchs_on_five_scripts(name, pair):
    torch_engine, engine = pair(name)
    for text in (TEXT, *SCRIPTS):
        assert_same(torch_engine.trace(text), engine.trace(text))


@pytest.mark.parametrize("name", ["smollm2", "minilm", "llama"])
def test_weights_are_torchs_on_a_long_text(name, pair):
    torch_engine, engine = pair(name)
    text = "w1 w2 w3 one two three and so on, $x$ w7 " * 60
    n = 192 if name == "smollm2" else 512
    one, other = (each.trace(text, max_tokens=n) for each in (torch_engine, engine))
    assert len(other.tokens) == n
    assert_same(one, other, atol=5e-5)


@pytest.mark.parametrize(
    "switches",
    [
        Switches(causal=False),
        Switches(causal=True),
        Switches(temperature=0.5),
        Switches(temperature=3),
        Switches(ablate={(0, 1), (1, 0), (1, 3)}),
        Switches(forbid={(None, None, 3, 1)}),
        Switches(forbid={(1, 2, 4, 0), (0, None, 5, 5), (None, 3, 2, 1), (0, 0, 10, 10)}),
        Switches(causal=False, temperature=0.7, ablate={(0, 2)}, forbid={(0, 0, 1, 4)}),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_switches_act_as_torchs(name, switches, pair):
    torch_engine, engine = pair(name)
    trace = engine.trace(SCRIPTS[0], switches=switches)
    assert_same(torch_engine.trace(SCRIPTS[0], switches=switches), trace)
    rest = engine.trace(SCRIPTS[0])
    moved = max(np.abs(trace.layer_weights(layer) - rest.layer_weights(layer)).max() for layer in trace.layers)
    assert (moved == 0) == (switches == Switches(causal=trace.model.causal))  # that is the model's own rule


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt2_inv", "bert"])
def test_scaling_off_acts_as_torchs(name, pair):
    torch_engine, engine = pair(name)
    trace = engine.trace(TEXT, switches=Switches(scaled=False))
    assert_same(torch_engine.trace(TEXT, switches=Switches(scaled=False)), trace)
    assert np.abs(trace.layer_weights(0) - engine.trace(TEXT).layer_weights(0)).max() > 0.1


def test_scaling_off_in_a_real_model_is_as_close_to_float64_as_torchs(smollm2, pair):
    """Scores 8 times as large make rounding grow from layer to layer, in torch's pass as much as in ours."""
    engine, switches = pair("smollm2")[1], Switches(scaled=False)
    theirs, ours = smollm2.trace(SCRIPTS[0], switches=switches), engine.trace(SCRIPTS[0], switches=switches)
    np.testing.assert_allclose(ours.layer_weights(0), theirs.layer_weights(0), rtol=0, atol=2e-5)
    records, _ = scratch.run(doubled(engine.model), [token.id for token in ours.tokens], switches)
    exact = dataclasses.replace(bare_trace({"decoder": dict(enumerate(records))}), switches=switches)
    apart = {
        name: max(np.abs(trace.layer_weights(layer) - exact.layer_weights(layer)).max() for layer in trace.layers)
        for name, trace in (("torch", theirs), ("numpy", ours))
    }
    assert apart["numpy"] < 5 * apart["torch"] + 1e-5
    assert apart["numpy"] < 0.02


def doubled(part):
    """Return a model with float64 weights."""
    if isinstance(part, np.ndarray):
        return part.astype(np.float64)
    if dataclasses.is_dataclass(part):
        return dataclasses.replace(part, **{name: doubled(value) for name, value in vars(part).items()})
    if hasattr(part, "_fields"):
        return type(part)(*map(doubled, part))
    return tuple(map(doubled, part)) if isinstance(part, tuple) else part


@pytest.mark.parametrize("name", NAMES)
def test_what_a_layer_leaves_is_what_torchs_leaves(name, pair):
    one, other = (engine.trace(SCRIPTS[0]) for engine in pair(name))
    for layer in one.layers:
        assert one.scale(layer) == pytest.approx(other.scale(layer), rel=1e-12)
        assert one.causal(layer) == other.causal(layer)
        for theirs, ours in zip(one.qkv(layer, 3), other.qkv(layer, 3), strict=True):
            assert ours.dtype == np.float32 and ours.shape == theirs.shape and not ours.flags.writeable
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=2e-4)
        np.testing.assert_array_equal(one.allowed(layer, 0), other.allowed(layer, 0))
    assert one.nbytes == other.nbytes


@pytest.mark.parametrize("name", NAMES)
def test_both_engines_say_the_same_about_a_model(name, pair):
    theirs, ours = (vars(engine.info) for engine in pair(name))
    differs = {key for key in theirs if theirs[key] != ours[key]}
    assert differs <= {"engine", "n_parameters"}  # BERT's pooler comes after all attention: it isn't read
    assert ours["engine"] == "numpy"
    assert ours["n_parameters"] == pytest.approx(theirs["n_parameters"], rel=0.01 if name == "minilm" else 0.05)


def test_the_untrained_model_runs_too():
    one, other = attnviz.load("untrained"), attnviz.load("untrained", engine="numpy")
    assert_same(one.trace(SCRIPTS[2]), other.trace(SCRIPTS[2]))


@pytest.mark.parametrize(("name", "text"), [("minilm", "word " * 600), ("gpt2_inv", "w1 " * 17)])
def test_too_long_texts_are_cut_as_by_torch(name, text, pair):
    one, other = (engine.trace(text) for engine in pair(name))
    assert (one.tokens, one.n_cut) == (other.tokens, other.n_cut) and other.n_cut > 0


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("  \n", {}),
        (3, {}),
        (TEXT, {"target": "w1"}),
        (TEXT, {"switches": Switches(ablate={(7, 0)})}),
        (TEXT, {"switches": Switches(forbid={(9, 0, 0, 0)})}),
        (TEXT, {"switches": Switches(forbid={(0, 0, 50, 0)})}),
        (TEXT, {"switches": Switches(forbid={(None, None, 1, 0), (0, None, 1, 1)})}),
    ],
)
def test_errors_are_torchs_word_for_word(text, options, pair):
    sentences = []
    for engine in pair("llama"):
        with pytest.raises(ValueError) as error:
            engine.trace(text, **options)
        sentences.append(str(error.value))
        assert not engine.busy
    assert sentences[0] == sentences[1]


# What holds for the NumPy engine alone


@pytest.mark.parametrize("name", DECODERS)
def test_no_look_ahead_to_the_last_bit(name, pair):
    ends = ("Paris", "Rome") if name == "smollm2" else ("w4", "w9")
    one, other = (pair(name)[1].trace(f"The capital of France w1 is {end}") for end in ends)
    assert len(one.tokens) == len(other.tokens)
    for layer in one.layers:
        np.testing.assert_array_equal(one.layer_weights(layer)[:, :-1], other.layer_weights(layer)[:, :-1])
    assert np.abs(one.next_logits - other.next_logits).max() > 0


def test_no_map_of_all_heads_is_ever_held(pair):
    engine = pair("llama")[1]
    tracemalloc.start()
    trace = engine.trace("w1 w2 w3 " * 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n_tokens = len(trace.tokens)
    assert n_tokens == 1500
    assert peak - trace.nbytes < 4 * n_tokens**2 * 4 / 3  # a third of 4 heads, 4 bytes a cell


def test_an_interrupted_pass_leaves_nothing_behind(pair):
    engine, told = pair("llama")[1], []

    def stop(done, layers):
        told.append((done, layers))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.trace(TEXT, on_layer=stop)
    assert told == [(1, 2)] and not engine.busy
    engine.trace(TEXT, on_layer=lambda done, layers: told.append((done, layers)))
    assert told[1:] == [(1, 2), (2, 2)]


def test_a_pass_leaves_cores_to_others_and_gives_the_threads_back(pair):
    libraries = [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
    before, inside = [each.get_num_threads() for each in libraries], []

    def look(done, layers):
        inside.extend(each.get_num_threads() for each in libraries)

    pair("llama")[1].trace(TEXT, on_layer=look)
    assert len(inside) == 2 * len(libraries) and all(n <= max(1, (os.cpu_count() or 1) // 2) for n in inside)
    assert [each.get_num_threads() for each in libraries] == before


def test_a_pass_needs_neither_torch_nor_transformers(tiny_folder, pair):
    script = """
import json, sys, types
sys.modules["torch"] = sys.modules["transformers"] = None  # importing them is an error now
from pathlib import Path
import attnviz.models.scratch.numpy_engine
from attnviz.models.scratch.decoder import run
from attnviz.models.scratch.weights import build, readers_of
folder = Path(sys.argv[1])
config = types.SimpleNamespace(**json.loads((folder / "config.json").read_text()))
records, logits = run(build(config, readers_of(folder), "it"), json.loads(sys.argv[2]))
print(json.dumps(logits.tolist()))
"""
    expected = pair("llama")[0].trace(TEXT)
    ids = json.dumps([token.id for token in expected.tokens])
    command = [sys.executable, "-c", script, str(tiny_folder("llama")), ids]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(done.stdout), expected.next_logits, rtol=0, atol=1e-5)


# Settings and files


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Llama", LLAMA | {"attention_bias": True, "mlp_bias": True}),
        ("Llama", LLAMA | {"head_dim": 16, "tie_word_embeddings": True}),
        ("Llama", LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}, "rms_norm_eps": 0.3}),
        ("GPT2", GPT2 | {"tie_word_embeddings": False, "n_inner": 48, "activation_function": "gelu"}),
        ("GPT2", GPT2 | {"layer_norm_epsilon": 0.3, "activation_function": "relu", "scale_attn_weights": False}),
        ("Bert", BERT | {"hidden_act": "gelu_new", "layer_norm_eps": 0.3}),
        ("Bert", BERT | {"hidden_act": "silu"}),
    ],
)
def test_settings_of_a_configuration(kind, settings, tmp_path):
    torch.manual_seed(0)
    classes = {"Llama": "LlamaForCausalLM", "GPT2": "GPT2LMHeadModel", "Bert": "BertModel"}
    model = getattr(transformers, classes[kind])(getattr(transformers, f"{kind}Config")(**settings))
    folder = str(saved(tmp_path, model))
    one, other = attnviz.load(folder), attnviz.load(folder, engine="numpy")
    assert one.info.cannot == other.info.cannot
    assert_same(one.trace(TEXT), other.trace(TEXT))
    assert other.trace(TEXT).layer_weights(1).max(axis=-1).std() > 0.05  # rows differ: the maps aren't flat


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_stored_in_another_precision(dtype, tmp_path):
    torch.manual_seed(0)
    folder = str(saved(tmp_path, transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)), dtype))
    assert_same(attnviz.load(folder).trace(TEXT), attnviz.load(folder, engine="numpy").trace(TEXT))


@pytest.mark.parametrize("class_name", ["LlamaModel", "GPT2Model", "BertForMaskedLM"])
def test_models_saved_with_another_head(class_name, tmp_path):
    torch.manual_seed(0)
    kind = getattr(transformers, class_name)
    settings = {"LlamaModel": LLAMA, "GPT2Model": GPT2, "BertForMaskedLM": BERT}[class_name]
    folder = str(saved(tmp_path, kind(kind.config_class(**settings))))
    one, other = attnviz.load(folder), attnviz.load(folder, engine="numpy")
    assert not other.info.predicts and one.info.architecture == other.info.architecture
    assert_same(one.trace(TEXT), other.trace(TEXT))


def test_norms_by_their_older_names(tiny_folder, tmp_path):
    weights = load_file(tiny_folder("bert") / "model.safetensors")
    old = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for key, value in weights.items()
    }
    other = copied(tiny_folder("bert"), tmp_path, old)
    one, two = (attnviz.load(str(folder), engine="numpy") for folder in (tiny_folder("bert"), other))
    assert_same(one.trace(TEXT), two.trace(TEXT), atol=0)


def copied(folder, place, weights):
    """Copy a model's folder with other weights."""
    for file in folder.glob("*.json"):
        (place / file.name).write_bytes(file.read_bytes())
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    return place


@pytest.mark.parametrize(("name", "model_type"), [("mistral_sw4", "mistral"), ("opt", "opt"), ("t5", "t5")])
def test_other_layouts_are_refused(name, model_type, tiny_folder):
    sentence = f"the from-scratch engine knows the layouts llama, bert and gpt2; this is {model_type}"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        attnviz.load(str(tiny_folder(name)), engine="numpy")


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
            "knows rope_type default; this model has linear",
        ),
        ("llama", {"hidden_act": "gelu"}, "knows hidden_act silu; this model has gelu"),
        ("bert", {"is_decoder": True}, "knows is_decoder False; this model has True"),
        ("bert", {"position_embedding_type": "relative_key"}, "knows position_embedding_type absolute; this"),
        ("gpt2", {"activation_function": "mish"}, "knows activation_function gelu, .*; this model has mish"),
        ("llama", {"num_hidden_layers": 3}, "no weights called layers.2.input_layernorm.weight"),
        ("llama", {"intermediate_size": 32}, r"expected layers.0.mlp.gate_proj.weight .* \(32, 32\), got"),
    ],
)
def test_settings_that_are_not_written_out_are_refused(name, settings, sentence, tiny_folder, tmp_path):
    folder = copied(tiny_folder(name), tmp_path, load_file(tiny_folder(name) / "model.safetensors"))
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=sentence):
        attnviz.load(str(folder), engine="numpy")


def test_quantised_weights_are_refused(tiny_folder, tmp_path):
    weights = load_file(tiny_folder("gpt2") / "model.safetensors")
    name = next(key for key in weights if key.endswith("h.1.mlp.c_fc.weight"))
    folder = copied(tiny_folder("gpt2"), tmp_path, weights | {name: weights[name].to(torch.int8)})
    with pytest.raises(ValueError, match=r"expected h.1.mlp.c_fc.weight as real numbers .*, got int8"):
        attnviz.load(str(folder), engine="numpy")


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"dtype": "bfloat16"}, {"device": "meta"}])
def test_the_numpy_engine_runs_in_float32_on_the_cpu(options):
    with pytest.raises(ValueError, match="float32 on the cpu|device"):
        attnviz.load("untrained", engine="numpy", **options)


def test_an_engine_that_is_not_there():
    with pytest.raises(ValueError, match="torch.*numpy.*got 'jax'"):
        attnviz.load("untrained", engine="jax")


# The parts, against torch


@pytest.fixture
def numbers():
    """Return a function from a shape to random float32 numbers, the same ones each time."""
    generator = np.random.default_rng(0)
    return lambda *shape: generator.normal(size=shape, scale=3).astype(np.float32)


def assert_as_torch(found, expected, atol=2e-6):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=atol)


def test_rms_norm(numbers):
    x, gain = numbers(7, 48), numbers(48)
    expected = torch.nn.functional.rms_norm(torch.from_numpy(x), (48,), torch.from_numpy(gain), eps=0.1)
    assert_as_torch(scratch.rms_norm(x, scratch.Norm(gain, None, 0.1)), expected)


def test_layer_norm(numbers):
    x, gain, offset = numbers(7, 48), numbers(48), numbers(48)
    given = (torch.from_numpy(gain), torch.from_numpy(offset))
    expected = torch.nn.functional.layer_norm(torch.from_numpy(x), (48,), *given, eps=0.1)
    assert_as_torch(scratch.layer_norm(x, scratch.Norm(gain, offset, 0.1)), expected)


def test_linear(numbers):
    x, weight, bias = numbers(7, 48), numbers(20, 48), numbers(20)
    expected = torch.nn.functional.linear(*map(torch.from_numpy, (x, weight, bias)))
    assert_as_torch(scratch.linear(x, scratch.Linear(weight.T, bias)), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (activations.gelu, torch.nn.functional.gelu),
        (activations.gelu_tanh, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        (activations.silu, torch.nn.functional.silu),
        (activations.relu, torch.nn.functional.relu),
        (activations.erf, torch.erf),
    ],
)
def test_what_bends(function, expected, numbers):
    x = np.concatenate([numbers(20000), np.float32([0, 4, -4, 5, -5, 100, -100, 1000, -1000])])
    with np.errstate(all="raise", under="ignore"):
        found = function(x)
    assert_as_torch(found, expected(torch.from_numpy(x)))


def test_erf_is_within_1e_7():
    x = np.linspace(-4.5, 4.5, 90001, dtype=np.float32)
    exact = np.array([math.erf(number) for number in x])
    assert np.abs(activations.erf(x) - exact).max() < 1e-7
    assert (np.diff(activations.erf(np.float32([-1000, -3, 0, 3, 1000]))) > 0).all()


def test_the_two_forms_of_gelu_are_close_but_differ():
    x = np.linspace(-5, 5, 1001, dtype=np.float32)
    apart = np.abs(activations.gelu(x) - activations.gelu_tanh(x)).max()
    assert 1e-4 < apart < 5e-4


def _rounding(expected):
    """Return what float32 may lose where large numbers cancel, as they do in another order on other machines."""
    return 2e-6 * float(expected.abs().max())


def test_swiglu_and_feed_forward(numbers):
    x = numbers(300, 24)
    gate, up, down = numbers(24, 400), numbers(24, 400), numbers(400, 24)
    tensors = [torch.from_numpy(each) for each in (x, gate, up, down)]
    expected = (torch.nn.functional.silu(tensors[0] @ tensors[1]) * (tensors[0] @ tensors[2])) @ tensors[3]
    both = scratch.Linear(np.concatenate([gate, up], axis=1))
    found = scratch.swiglu(x, both, scratch.Linear(down))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=_rounding(expected))
    expected = torch.nn.functional.gelu(tensors[0] @ tensors[2]) @ tensors[3]
    found = scratch.feed_forward(x, scratch.Linear(up), scratch.Linear(down), "gelu")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=_rounding(expected))
