"""GGUF files: what is refused before it costs time, what is translated, and a cache that heals."""

import json
import math
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import transformers
from safetensors.torch import load_file

import attnviz
from attnviz.models.load import gguf
from attnviz.models.load import stored as files
from attnviz.models.load.gguf_header import check_gguf, read_header
from attnviz.models.load.gguf_settings import llama3_factors, restore_settings
from tests import tiny_gguf

TEXT = "the other thing, that the ten of them thought of then"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def refusal(path):
    with pytest.raises(ValueError) as error:
        attnviz.load(str(path))
    assert "\n" not in str(error.value) and path.name in str(error.value)
    return str(error.value)


def maps(path):
    trace = attnviz.load(str(path)).trace(TEXT)
    return np.stack([trace.layer_weights(layer) for layer in trace.layers])


def unrotated(array, heads):
    """Return q or k weights with the two halves of a head side by side, as transformers keeps them, not in turns."""
    return array.reshape(heads, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)


def by_hand(angles, magnitude=1.0):
    """Return (heads, queries, keys) weights of layer 0 of the tiny file, from its arrays and the angles alone."""
    arrays, ids = tiny_gguf.weights(), [tiny_gguf.words().index("th"), 5, 6, 7, 5, 6, 7, 8]
    x = arrays["token_embd.weight"][ids].astype(np.float64)
    x /= np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)
    turned = np.outer(np.arange(len(ids)), angles)  # (tokens, d_head / 2)
    scores = []
    for head in range(tiny_gguf.HEADS):
        q, k = (
            unrotated(arrays[f"blk.0.attn_{name}.weight"], n).reshape(n, tiny_gguf.D_HEAD, -1)[h].astype(np.float64)
            for name, n, h in (("q", tiny_gguf.HEADS, head), ("k", tiny_gguf.KV_HEADS, head // 2))
        )
        one, two = (magnitude * _turn(x @ each.T, turned) for each in (q, k))
        scores.append(one @ two.T / math.sqrt(tiny_gguf.D_HEAD))
    scores = np.where(np.tri(len(ids), dtype=bool), np.stack(scores), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return ids, weights / weights.sum(axis=-1, keepdims=True)


def _turn(x, angles):
    one, two = np.split(x, 2, axis=1)
    return np.concatenate([one * np.cos(angles) - two * np.sin(angles), two * np.cos(angles) + one * np.sin(angles)], 1)


def layer_0(path, ids):
    """Return the weights of layer 0 for these tokens, through the whole engine."""
    engine = attnviz.load(str(path))
    text = engine.tokenizer.decode(ids)
    trace = engine.trace(text)
    assert [token.id for token in trace.tokens] == ids
    return trace.layer_weights(0)


ANGLES = tiny_gguf.THETA ** -(np.arange(0, tiny_gguf.D_HEAD, 2) / tiny_gguf.D_HEAD)


# Scaled positions


def test_positions_that_are_not_scaled(cache, tmp_path):
    ids, expected = by_hand(ANGLES)
    np.testing.assert_allclose(layer_0(tiny_gguf.write(tmp_path / "plain.gguf"), ids), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "said",
    [
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        {"llama.rope.scaling.factor": 4.0},
        {"llama.rope.scale_linear": 4.0},
    ],
)
def test_linear_scaling_divides_the_angles(said, cache, tmp_path):
    ids, expected = by_hand(ANGLES / 4.0)
    path = tiny_gguf.write(tmp_path / "linear.gguf", changed=said)
    np.testing.assert_allclose(layer_0(path, ids), expected, rtol=0, atol=1e-5)


def test_yarn_is_llama_cpps_formula(cache, tmp_path):
    said = {"type": "yarn", "factor": 8.0, "original_context_length": 16}
    path = tiny_gguf.write(tmp_path / "yarn.gguf", changed={f"llama.rope.scaling.{k}": v for k, v in said.items()})
    at = [tiny_gguf.D_HEAD * math.log(16 / (beta * 2 * math.pi)) / (2 * math.log(tiny_gguf.THETA)) for beta in (32, 1)]
    low, high = max(0, math.floor(at[0])), min(tiny_gguf.D_HEAD - 1, math.ceil(at[1]))
    ramp = 1 - np.clip((np.arange(tiny_gguf.D_HEAD // 2) - low) / max(0.001, high - low), 0, 1)  # ggml: rope_yarn_ramp
    assert 0 < ramp.sum() < len(ramp)
    ids, expected = by_hand(ANGLES / 8.0 * (1 - ramp) + ANGLES * ramp, magnitude=1 + 0.1 * math.log(8.0))
    np.testing.assert_allclose(layer_0(path, ids), expected, rtol=0, atol=1e-5)


def test_llama_31_divides_angles_by_factors_of_its_own(cache, tmp_path):
    theta = 500000.0
    factors = llama3_factors(theta, tiny_gguf.D_HEAD, 8.0, 8192).astype(np.float32)
    assert set(factors) > {1.0, 8.0} and len(set(factors)) > 2
    path = tiny_gguf.write(
        tmp_path / "llama-3.1.gguf", changed={"llama.rope.freq_base": theta}, arrays={"rope_freqs.weight": factors}
    )
    angles = theta ** -(np.arange(0, tiny_gguf.D_HEAD, 2) / tiny_gguf.D_HEAD) / factors
    ids, expected = by_hand(angles)
    np.testing.assert_allclose(layer_0(path, ids), expected, rtol=0, atol=1e-5)
    config = json.loads((next(cache.iterdir()) / "config.json").read_text())
    assert config["rope_parameters"]["rope_type"] == "llama3" and config["rope_parameters"]["factor"] == 8.0


def test_factors_that_are_all_one_change_nothing(cache, tmp_path):
    ones = {"rope_freqs.weight": np.ones(8, np.float32)}
    paths = [tiny_gguf.write(tmp_path / "a.gguf", arrays=ones), tiny_gguf.write(tmp_path / "b.gguf")]
    one, two = (gguf.gguf_folder(path, "1", print) for path in paths)
    assert (one / "config.json").read_bytes() == (two / "config.json").read_bytes()


@pytest.mark.parametrize(
    ("said", "arrays", "named"),
    [
        ({}, {"rope_freqs.weight": np.arange(1, 9, dtype=np.float32)}, "rope_freqs.weight"),
        ({}, {"rope_factors_long.weight": np.ones(8, np.float32)}, "longrope"),
        ({"llama.rope.scaling.type": "longrope"}, {}, "longrope"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0, "llama.rope.scaling.attn_factor": 1.2},
         {}, "attn_factor"),
        ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0,
          "llama.rope.scaling.yarn_log_multiplier": 0.1}, {}, "yarn_log_multiplier"),
        ({"llama.rope.scaling.type": "unheard-of", "llama.rope.scaling.factor": 2.0}, {}, "unheard-of"),
    ],
)  # fmt: skip
def test_scaling_that_is_not_translated_is_named(said, arrays, named, cache, tmp_path):
    path = tiny_gguf.write(tmp_path / "scaled.gguf", changed=said, arrays=arrays)
    assert named in refusal(path)
    assert not list(cache.glob("*"))


# What transformers would drop


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"llama.attention.key_length": 8}, "key_length"),
        ({"llama.attention.scale": 0.5}, "attention.scale"),
        ({"llama.logit_scale": 8.0}, "logit_scale"),
        ({"llama.attention.sliding_window": 4}, "sliding_window"),
        ({"llama.attn_logit_softcapping": 30.0}, "attn_logit_softcapping"),
        ({"llama.expert_count": 4}, "expert_count"),
        ({"llama.attention.causal": False}, "causal"),
        ({"llama.something.new": 3}, "something.new"),
    ],
)
def test_a_setting_that_would_be_dropped_is_named(said, named, cache, tmp_path):
    assert named in refusal(tiny_gguf.write(tmp_path / "set.gguf", changed=said))
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(
    "said",
    [
        {"llama.attention.key_length": 16, "llama.attention.value_length": 16, "llama.vocab_size": 258},
        {"llama.attention.sliding_window": 4096, "llama.expert_count": 0, "llama.attention.causal": True},
        {"llama.rope.scaling.type": "none", "general.file_type": 2, "llama.logit_scale": 1.0},
    ],
)
def test_settings_that_change_nothing_are_let_pass(said, cache, tmp_path):
    paths = [tiny_gguf.write(tmp_path / "a.gguf", changed=said), tiny_gguf.write(tmp_path / "b.gguf")]
    one, two = (gguf.gguf_folder(path, "1", print) for path in paths)
    for name in ("config.json", "model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.parametrize(
    ("architecture", "kind", "found"),
    [
        ("phi3", "Phi3Config", {"sliding_window": 4}),
        ("starcoder2", "Starcoder2Config", {"sliding_window": 4}),
        ("llama", "LlamaConfig", {}),
        ("qwen2", "Qwen2Config", {}),
    ],
)
def test_settings_are_put_where_transformers_forgets_them(architecture, kind, found, tmp_path):
    said = {f"{architecture}.attention.sliding_window": 4}
    header = read_header(tiny_gguf.write(tmp_path / "a.gguf", changed=said, architecture=architecture))
    config = getattr(transformers, kind)()
    restore_settings(header, config)
    assert config.rope_parameters["rope_theta"] == tiny_gguf.THETA
    assert {name: getattr(config, name) for name in found} == found


@pytest.mark.parametrize(("kind", "layers"), [("Gemma2Config", 46), ("Gemma3TextConfig", 62)])
def test_gemmas_divide_by_the_root_of_what_llama_cpp_takes(kind, layers, tmp_path):
    said = {"gemma2.attention.key_length": 32}
    header = read_header(tiny_gguf.write(tmp_path / "a.gguf", changed=said, architecture="gemma2"))
    for n_layers, expected in ((26, 32), (layers, 144)):  # the largest ones: d_model / heads
        config = getattr(transformers, kind)(num_hidden_layers=n_layers, hidden_size=4608, num_attention_heads=32)
        restore_settings(header, config)
        assert config.query_pre_attn_scalar == expected


@pytest.mark.parametrize("name", ["blk.0.attn_q.bias", "blk.1.attn_q_norm.weight", "blk.2.attn_q.weight", "new.weight"])
def test_weights_that_would_be_dropped_are_named(name, cache, tmp_path):
    path = tiny_gguf.write(tmp_path / "more.gguf", arrays={name: np.ones(64, np.float32)})
    assert name in refusal(path)
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(("lost", "named"), [("blk.1.attn_k.weight", "k_proj"), ("blk.0.ffn_norm.weight", "layernorm")])
def test_weights_that_are_missing_are_named(lost, named, cache, tmp_path):
    assert named in refusal(tiny_gguf.write(tmp_path / "less.gguf", arrays={lost: None}))


# Before anything costs time


@pytest.mark.parametrize(
    "beginning", [b"", b"GGU", b"\0" * 64, b"GGUF", b"GGUF" + b"\0" * 64, b"GGUF\3\0\0\0" + b"\xff" * 64]
)
def test_what_is_no_gguf_file_is_said_without_reading_it(beginning, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_hash_files", lambda stats: pytest.fail("hashed"))
    path = tmp_path / "zeros.gguf"
    with open(path, "wb") as file:
        file.write(beginning)
        file.truncate(max(len(beginning), 8 * 2**30 if beginning[:1] == b"\0" else 0))  # sparse: takes no disk
    refusal(path)
    assert not cache.exists()


def test_safetensors_named_by_their_file(tiny_folder):
    path = tiny_folder("llama") / "model.safetensors"
    with pytest.raises(ValueError, match="folder"):
        attnviz.load(str(path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model-00001-of-00002.gguf", {}),
        ("model.gguf", {"split.no": 0, "split.count": 2, "split.tensors.count": 40}),
        ("model-00002-of-00003.gguf", {"split.no": 1, "split.count": 3}),
    ],
)
def test_one_file_of_a_split_set(name, said, cache, tmp_path):
    sentence = refusal(tiny_gguf.write(tmp_path / name, changed=said))
    assert "1 of 2 parts" in sentence or "2 of 3 parts" in sentence
    assert not cache.exists()


def test_a_set_of_one_is_whole(cache, tmp_path):
    check_gguf(tiny_gguf.write(tmp_path / "m-00001-of-00001.gguf", changed={"split.no": 0, "split.count": 1}))


@pytest.mark.parametrize("kind", ["adapter", "mmproj", "imatrix"])
def test_a_gguf_file_that_is_no_model(kind, cache, tmp_path):
    assert kind in refusal(tiny_gguf.write(tmp_path / "other.gguf", changed={"general.type": kind}))


def test_an_architecture_that_transformers_does_not_know(cache, tmp_path):
    assert "unheard" in refusal(tiny_gguf.write(tmp_path / "new.gguf", architecture="unheard"))


# The cache


@pytest.fixture
def converted(cache, tmp_path):
    """Return (the file, its converted folder)."""
    path = tiny_gguf.write(tmp_path / "tiny.gguf")
    return path, gguf.gguf_folder(path, files.weights_revision(path), print)


def damage(folder, how):
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    if how == "changed byte":
        content[-5] ^= 64
        weights.write_bytes(content)
    elif how == "cut short":
        weights.write_bytes(content[:-10])
    elif how == "no weights":
        weights.unlink()
    elif how == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif how == "other configuration":
        (folder / "config.json").write_text((folder / "config.json").read_text().replace("50.0", "60.0"))
    elif how == "no list":
        (folder / gguf.LIST).unlink()
    elif how == "broken list":
        (folder / gguf.LIST).write_text("{")
    else:
        shutil.rmtree(folder)
        folder.mkdir()


DAMAGE = [
    "changed byte",
    "cut short",
    "no weights",
    "no tokenizer",
    "other configuration",
    "no list",
    "broken list",
    "",
]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_copy_is_made_again_once(how, converted, cache):
    path, folder = converted
    whole = {file.name: file.read_bytes() for file in folder.iterdir()}
    damage(folder, how)
    said = []
    assert gguf.gguf_folder(path, files.weights_revision(path), said.append) == folder
    assert any("again" in sentence for sentence in said)
    again = []
    gguf.gguf_folder(path, files.weights_revision(path), again.append)
    assert again == []
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == whole
    assert [each.name for each in cache.iterdir()] == [folder.name]


def test_a_copy_that_is_made_again_is_read(converted):
    path, folder = converted
    expected = maps(path)
    damage(folder, "changed byte")
    np.testing.assert_array_equal(maps(path), expected)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    attnviz.load(str(path))
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_what_killed_conversions_left_is_cleared_away(converted, cache):
    path, folder = converted
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead = [cache / f"converting-{ended.stdout.strip()}-abc", cache / "converting-xyz"]
    reused = cache / f"converting-{os.getpid()}-old"  # of a process that had this number before
    alive = cache / f"converting-{os.getpid()}-new"
    for each in (*dead, reused, alive):
        each.mkdir()
        (each / "model.safetensors").write_bytes(b"half")
    os.utime(reused, (time.time() - 10**8, time.time() - 10**8))
    gguf.gguf_folder(path, files.weights_revision(path), print)
    assert {each.name for each in cache.iterdir()} == {folder.name, alive.name}


def test_another_process_that_was_first_keeps_its_place(cache, tmp_path, monkeypatch):
    path = tiny_gguf.write(tmp_path / "tiny.gguf")
    own = gguf._convert

    def slow(path, header, folder):
        own(path, header, folder)
        monkeypatch.setattr(gguf, "_convert", own)
        gguf.gguf_folder(path, "1", print)  # meanwhile

    monkeypatch.setattr(gguf, "_convert", slow)
    assert gguf.what_is_broken(gguf.gguf_folder(path, "1", print)) == ""
    assert len(list(cache.iterdir())) == 1


def test_the_converted_weights_are_those_of_the_file(converted):
    arrays, tensors = tiny_gguf.weights(), load_file(converted[1] / "model.safetensors")
    assert len(arrays) == len(tensors)
    np.testing.assert_array_equal(tensors["model.layers.1.mlp.up_proj.weight"], arrays["blk.1.ffn_up.weight"])
    q = unrotated(arrays["blk.1.attn_q.weight"], tiny_gguf.HEADS)
    np.testing.assert_array_equal(tensors["model.layers.1.self_attn.q_proj.weight"], q)
    assert transformers.AutoConfig.from_pretrained(converted[1]).rope_parameters["rope_theta"] == tiny_gguf.THETA
