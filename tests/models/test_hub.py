"""Models of the Hub: which files are asked for, with a hub made of a folder."""

import fnmatch
import shutil
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

import attnviz
from attnviz.models.load import stored as files
from tests.models import folder_changes

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Return (a folder that stands for a repository, the names of all files that were downloaded)."""
    there, here, taken = tmp_path / "there", tmp_path / "here" / COMMIT, []
    there.mkdir()

    def info(self, name, revision=None, timeout=None):
        names = [str(file.relative_to(there)) for file in there.rglob("*") if file.is_file()]
        return SimpleNamespace(sha=COMMIT, siblings=[SimpleNamespace(rfilename=name) for name in names])

    def download(name, revision=None, local_files_only=False, allow_patterns=()):
        if local_files_only and not here.exists():
            raise LocalEntryNotFoundError("not here")
        for file in there.rglob("*"):
            relative = str(file.relative_to(there))
            if file.is_file() and any(fnmatch.fnmatch(relative, pattern) for pattern in allow_patterns):
                (here / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, here / relative)
                taken.append(relative)
        return str(here)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return there, taken


@pytest.mark.parametrize("name", ["llama", "shards"])
def test_only_the_files_of_the_model_are_downloaded(name, hub):
    there, taken = hub
    folder_changes.build(name, there)
    weights = {file.name for file in there.glob("*.safetensors")}
    for other in ("consolidated.safetensors", "model.fp16.safetensors", "pytorch_model.bin", "onnx/model.safetensors"):
        (there / other).parent.mkdir(exist_ok=True)
        (there / other).write_bytes(b"other")
    engine = attnviz.load("someone/something")
    assert engine.info.revision == COMMIT[:12] and engine.info.notes == ()
    assert {file for file in taken if "safetensors" in file and not file.endswith(".json")} == weights
    assert "pytorch_model.bin" not in taken and "onnx/model.safetensors" not in taken
    assert files.hub_folder("someone/something", None, pytest.fail)[1] == COMMIT[:12]  # all of it is here now


def test_a_download_that_broke_off_is_finished(hub):
    there, taken = hub
    folder_changes.build("shards", there)
    folder, _ = files.hub_folder("someone/something", None, print)
    lost = sorted(folder.glob("*.safetensors"))[1]
    lost.unlink()
    taken.clear()
    assert attnviz.load("someone/something").info.n_layers == 2
    assert lost.name in taken


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["config.json", "pytorch_model.bin"], "no pickle"),
        (["config.json", "other.safetensors"], "no safetensors"),
        (["adapter_config.json", "adapter_model.safetensors"], "adapter"),
        (["readme.txt"], "config.json"),
    ],
)
def test_repositories_without_a_model_are_not_downloaded(names, told, hub):
    there, taken = hub
    for name in names:
        (there / name).write_text("{}")
    with pytest.raises(ValueError, match=told):
        attnviz.load("someone/something")
    assert not [name for name in taken if name.endswith((".bin", ".safetensors"))]
