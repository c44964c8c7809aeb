"""From a name to an engine: what loads, and the one sentence where it can't."""

import builtins
import importlib.util
import json
import shutil
import time

import numpy as np
import pytest
import torch

import attnviz
from attnviz.models.load import stored as files
from attnviz.models.load.catalogue import CATALOGUE


def test_the_catalogue_says_truly_what_it_loads(smollm2, minilm):
    assert (smollm2.info.n_layers, smollm2.info.n_heads, smollm2.info.n_kv_heads) == (30, 9, 3)
    assert "Instruct" in smollm2.info.title and any("4-bit" in note for note in smollm2.info.notes)
    assert smollm2.info.causal is True and smollm2.info.limit == 8192 and smollm2.info.predicts
    assert (minilm.info.n_layers, minilm.info.n_heads, minilm.info.causal) == (6, 12, False)
    assert minilm.info.limit == 512 and not minilm.info.predicts
    assert len(smollm2.info.revision) == len(minilm.info.revision) == 12


def test_the_untrained_model_is_always_there_and_always_the_same(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    one, two = attnviz.load("untrained"), attnviz.load("untrained")
    np.testing.assert_array_equal(one.trace("a b").layer_weights(3), two.trace("a b").layer_weights(3))
    assert "andom" in one.info.title and "nothing was learned" in one.info.notes[0]
    assert [token.label for token in one.trace("é!").tokens] == ["é 1/2", "é 2/2", "!"]


def test_loading_the_untrained_model_leaves_the_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    attnviz.load("untrained")
    np.testing.assert_array_equal(torch.rand(3), expected)


@pytest.mark.parametrize("form", ["plain", "trailing slash", "symlink", "spaces", "home"])
def test_folders_load_however_they_are_named(form, tiny_folder, tmp_path, monkeypatch):
    folder = tiny_folder("llama")
    if form == "symlink":
        (tmp_path / "link").symlink_to(folder)
        name = str(tmp_path / "link")
    elif form == "spaces":
        name = str(shutil.copytree(folder, tmp_path / "my own model"))
    elif form == "home":
        monkeypatch.setenv("HOME", str(folder.parent))
        name = f"~/{folder.name}"
    else:
        name = f"{folder}/" if form == "trailing slash" else str(folder)
    engine = attnviz.load(name)
    assert engine.info.layers == (0, 1) and engine.info.revision == files.weights_revision(folder)


def test_a_sentence_transformers_folder_with_extra_files_loads():
    assert attnviz.load(str(CATALOGUE["minilm"].path)).info.n_layers == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nope", "no file or folder ./nope"),
        ("/nowhere/model.gguf", "no file or folder"),
        (r"C:\models\x", "no file or folder"),
        ("", "name a model"),
        ("   ", "name a model"),
        ("an id with spaces", "no file or folder"),
        ("a/b/c", "no file or folder"),
    ],
)
def test_names_that_lead_nowhere(name, message):
    with pytest.raises(ValueError, match=message.replace("\\", "\\\\")):
        attnviz.load(name)


@pytest.mark.parametrize("name", ["gpt2", "nobody-at-all/no-such-model"])
def test_an_unknown_id_without_network_is_told_within_ten_seconds(name, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    started = time.perf_counter()
    with pytest.raises(ValueError, match="isn't on this machine") as error:
        attnviz.load(name)
    assert time.perf_counter() - started < 10
    assert "\n" not in str(error.value)


def test_a_hub_model_in_the_local_cache_loads_without_network(tiny_folder, monkeypatch, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_folder("llama"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    engine = attnviz.load("someone/tiny")
    assert engine.info.revision == commit[:12] and engine.info.title == "tiny"
    assert attnviz.load("someone/tiny", revision=commit[:12]).info.revision == commit[:12]  # as pages name it


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(ValueError, match="requirements-models.txt"):
        attnviz.load("smollm2")


def test_a_truncated_gguf_file(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "cache"))
    with open(CATALOGUE["smollm2"].path, "rb") as whole:
        (tmp_path / "short.gguf").write_bytes(whole.read(1_000_000))
    with pytest.raises(ValueError, match=r"short\.gguf can't be read"):
        attnviz.load(str(tmp_path / "short.gguf"))
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_text_file_that_is_called_gguf(tmp_path):
    (tmp_path / "notes.gguf").write_text("hello")
    with pytest.raises(ValueError, match=r"notes\.gguf isn't a GGUF file"):
        attnviz.load(str(tmp_path / "notes.gguf"))


def test_the_gguf_package_missing(tmp_path, monkeypatch):
    own_import = builtins.__import__

    def without_gguf(name, *rest, **options):
        if name == "gguf":
            raise ImportError(name)
        return own_import(name, *rest, **options)

    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(builtins, "__import__", without_gguf)
    with pytest.raises(ValueError, match="package gguf isn't installed"):
        attnviz.load("smollm2")


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ValueError, match=r"no config\.json"):
        attnviz.load(str(tmp_path))


def test_pickled_weights_are_not_read(tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "pickled")
    next(folder.glob("*.safetensors")).unlink()
    torch.save({"x": torch.zeros(1)}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="no pickle"):
        attnviz.load(str(folder))


def test_code_in_a_folder_is_never_run(tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "coded")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own_kind", "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ValueError, match="coded has an architecture that transformers doesn't know"):
        attnviz.load(str(folder))
    assert not (tmp_path / "ran").exists()


def test_damaged_safetensors(tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "damaged")
    weights = next(folder.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ValueError, match="damaged or cut short"):
        attnviz.load(str(folder))


def test_weights_that_do_not_fit_into_memory(tiny_folder, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1000})())
    with pytest.raises(ValueError, match="GB are free"):
        attnviz.load(str(tiny_folder("llama")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"engine": "jax"}, "engine must be"),
        ({"revision": "abc"}, "has revision"),
    ],
)
def test_options_that_cannot_be(options, message, tiny_folder):
    with pytest.raises(ValueError, match=message):
        attnviz.load(str(tiny_folder("llama")), **options)


def test_a_revision_that_matches(tiny_folder):
    revision = files.weights_revision(tiny_folder("llama"))
    assert attnviz.load(str(tiny_folder("llama")), revision=revision).info.revision == revision


@pytest.mark.parametrize(("name", "message"), [("mamba", "no attention maps"), ("longformer", "12 x 5 for 12 tokens")])
def test_architectures_that_cannot_be_shown(name, message, tiny_folder):
    with pytest.raises(ValueError, match=message):
        attnviz.load(str(tiny_folder(name)))


def test_progress_is_told(tiny_folder):
    said = []
    attnviz.load(str(tiny_folder("llama")), progress=said.append)
    assert len(said) >= 2


def test_the_converted_file_keeps_the_tokenizer(smollm2):
    for text in ("The cat", "naïve café 東京 👍", "a\n\n\tb  c", "wait ... what", "<|im_end|> hi"):
        assert smollm2.tokenizer.decode([token.id for token in smollm2.trace(text).tokens]) == text
    assert smollm2.trace("The cat").tokens[0].label == "The"
