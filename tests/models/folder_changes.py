"""What may happen to a model's folder: files and arrays that are lost, renamed, cut, exchanged or put beside it.

Each change is a value, so that hypothesis can draw, show and shrink it. What no program can notice isn't here: two
arrays of one shape that change places, a number in config.json that has no trace in the files.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tests import tiny

TEXT = "w1 w2 w30 w4 w5 $x$ w1 w2"
FROM_SCRATCH = {"llama", "shards", "gpt2", "bert"}
MODELS = (*sorted(FROM_SCRATCH), "mixtral", "t5")
INSIDE = ("layers.0.self_attn.q_proj.bias", "h.1.attn.extra", "encoder.layer.0.attention.self.query.lora_A.weight")
BESIDE = ("score.weight", "classifier.dense.bias", "value_head.weight")
NAMES = ("model_old.safetensors", "consolidated.safetensors", "pytorch_model.bin", "adapter_model.safetensors")
PREFIXES = ("_orig_mod.", "module.", "base_model.model.", "module._orig_mod.", "unheard.of.")
SIZES = {
    "llama": ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"),
    "gpt2": ("n_layer", "n_embd", "n_positions", "n_inner"),
    "bert": ("num_hidden_layers", "hidden_size", "intermediate_size", "max_position_embeddings", "type_vocab_size"),
    "mixtral": ("num_hidden_layers", "num_local_experts", "intermediate_size", "num_key_value_heads"),
    "t5": ("num_layers", "num_decoder_layers", "d_model", "d_ff", "relative_attention_num_buckets"),
}
SIZES["shards"] = SIZES["llama"]


@dataclass(frozen=True)
class Change:
    """Something that happens to a folder; `which` chooses among what is there."""

    kind: str
    which: int = 0
    other: int = 0
    value: Any = None


def build(name: str, folder: Path) -> Path:
    """Save the intact model of that name."""
    if name == "shards":
        tiny.tiny_model("llama", sharpen=tiny.SHARP).save_pretrained(folder, max_shard_size="40KB")
        tiny.tiny_tokenizer().save_pretrained(folder)
        assert len(list(folder.glob("*.safetensors"))) > 2
    elif name == "mixtral":
        _mixtral().save_pretrained(folder)
        tiny.tiny_tokenizer().save_pretrained(folder)
    else:
        tiny.build(name, folder, sharpen=tiny.SHARP)
    return folder


def changes(name: str) -> st.SearchStrategy[list[Change]]:
    """Draw one to three changes of the model of that name."""
    which = st.integers(0, 200)
    numbers = st.sampled_from([-1, 0, 1, 3, 5, 64, 10**9, None, "two", 1.5, True, [2]])
    one = st.one_of(
        st.builds(Change, st.sampled_from(["drop file", "swap files", "swap tensors"]), which, which),
        st.builds(Change, st.just("truncate file"), which, value=st.floats(0, 0.999)),
        st.builds(Change, st.sampled_from(["rename file", "add file"]), which, value=st.sampled_from(NAMES)),
        st.builds(Change, st.sampled_from(["drop tensor", "cut tensor", "break tensor", "whole numbers"]), which),
        st.builds(Change, st.just("rename tensor"), which, value=st.sampled_from([*PREFIXES, "old."])),
        st.builds(Change, st.just("prefix"), value=st.sampled_from(PREFIXES)),
        st.builds(Change, st.just("add tensor"), which, value=st.sampled_from(INSIDE + BESIDE)),
        st.builds(Change, st.just("copy tensor"), which, which),
        st.builds(Change, st.just("config"), st.sampled_from(range(len(SIZES[name]))), value=numbers),
        st.builds(Change, st.just("forget"), value=st.sampled_from(["architectures", "model_type"])),
        st.builds(Change, st.just("index"), which, value=st.sampled_from(["../x.safetensors", "gone.safetensors", 3])),
    )
    return st.lists(one, min_size=1, max_size=3)


def apply(name: str, folder: Path, change: Change) -> None:
    """Let a change happen to a folder; one for which there is nothing left doesn't."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    weights = [file for file in files if file.suffix == ".safetensors" and _is_whole(file)]
    if change.kind in _ON_FILES and files:
        _ON_FILES[change.kind](files, change)
    elif change.kind in _ON_TENSORS and weights:
        file = weights[change.which % len(weights)]
        tensors = load_file(file)
        if tensors:
            _ON_TENSORS[change.kind](tensors, change)
            save_file({key: np.ascontiguousarray(each) for key, each in tensors.items()}, file, {"format": "pt"})
    elif change.kind == "prefix":
        for file in weights:
            save_file({change.value + key: each for key, each in load_file(file).items()}, file, {"format": "pt"})
    elif change.kind in ("config", "forget"):
        _edit(folder / "config.json", SIZES[name][change.which] if change.kind == "config" else None, change.value)
    elif change.kind == "index":
        _edit_index(folder / "model.safetensors.index.json", change)


def _edit(file: Path, key: str | None, value: Any) -> None:
    try:
        config = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return
    if not isinstance(config, dict):
        return
    if key is None:
        config.pop(value, None)
    else:
        config[key] = value
    file.write_text(json.dumps(config))


def _edit_index(file: Path, change: Change) -> None:
    try:
        table = json.loads(file.read_bytes())["weight_map"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    table[sorted(table)[change.which % len(table)]] = change.value
    file.write_text(json.dumps({"weight_map": table}))


def _is_whole(file: Path) -> bool:
    try:
        return bool(load_file(file))
    except Exception:  # a file that was cut or exchanged before: there is nothing to change in it
        return False


def _drop(files: list[Path], change: Change) -> None:
    files[change.which % len(files)].unlink()


def _truncate(files: list[Path], change: Change) -> None:
    file = files[change.which % len(files)]
    file.write_bytes(file.read_bytes()[: int(change.value * file.stat().st_size)])


def _rename(files: list[Path], change: Change) -> None:
    file = files[change.which % len(files)]
    file.rename(file.with_name(change.value))


def _add(files: list[Path], change: Change) -> None:
    source = files[change.which % len(files)]
    if source.name != change.value:
        shutil.copy(source, source.with_name(change.value))


def _swap_files(files: list[Path], change: Change) -> None:
    one, two = files[change.which % len(files)], files[change.other % len(files)]
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])


def _drop_tensor(tensors: dict[str, Any], change: Change) -> None:
    del tensors[_name(tensors, change.which)]


def _cut_tensor(tensors: dict[str, Any], change: Change) -> None:
    name = _name(tensors, change.which)
    tensors[name] = tensors[name][: max(1, len(tensors[name]) // 2)]


def _break_tensor(tensors: dict[str, Any], change: Change) -> None:
    array = tensors[_name(tensors, change.which)]
    if array.dtype.kind == "f":
        array.flat[0] = np.nan


def _whole_numbers(tensors: dict[str, Any], change: Change) -> None:
    name = _name(tensors, change.which)
    tensors[name] = (tensors[name] * 100).astype(np.int8)


def _rename_tensor(tensors: dict[str, Any], change: Change) -> None:
    name = _name(tensors, change.which)
    tensors[change.value + name] = tensors.pop(name)


def _add_tensor(tensors: dict[str, Any], change: Change) -> None:
    head = next(iter(tensors)).split("layers.")[0].split("h.")[0].split("encoder.")[0]
    prefix = head if change.value in INSIDE and change.which % 2 else ""
    tensors[prefix + change.value] = np.ones((3, 4), np.float32)


def _copy_tensor(tensors: dict[str, Any], change: Change) -> None:
    """Put other numbers under a name that there is, with another way to write it."""
    name = _name(tensors, change.which)
    again = f"_orig_mod.{name}"
    if change.other % 2:  # with and without what a model with a head puts before its body
        bases = [base for base in ("model.", "transformer.") if name.startswith(base)]
        again = name.removeprefix(bases[0]) if bases else f"bert.{name}"
    tensors[again] = tensors[name] + 1 if tensors[name].dtype.kind == "f" else tensors[name]


def _swap_tensors(tensors: dict[str, Any], change: Change) -> None:
    one, two = _name(tensors, change.which), _name(tensors, change.other)
    if tensors[one].shape != tensors[two].shape:
        tensors[one], tensors[two] = tensors[two], tensors[one]


def _name(tensors: dict[str, Any], which: int) -> str:
    return sorted(tensors)[which % len(tensors)]


def _mixtral() -> Any:
    import torch
    import transformers

    config = transformers.MixtralConfig(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=24,
        num_local_experts=3,
        num_experts_per_tok=2,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.MixtralForCausalLM(config).eval()


_ON_FILES: dict[str, Callable[[list[Path], Change], None]] = {
    "drop file": _drop,
    "truncate file": _truncate,
    "rename file": _rename,
    "add file": _add,
    "swap files": _swap_files,
}
_ON_TENSORS: dict[str, Callable[[dict[str, Any], Change], None]] = {
    "drop tensor": _drop_tensor,
    "cut tensor": _cut_tensor,
    "break tensor": _break_tensor,
    "whole numbers": _whole_numbers,
    "rename tensor": _rename_tensor,
    "add tensor": _add_tensor,
    "copy tensor": _copy_tensor,
    "swap tensors": _swap_tensors,
}
