"""Which files of a folder are a model, and what stands in them: one rule for whoever reads, weighs or hashes weights.

The rule is that of transformers: `model.safetensors`, else the parts that `model.safetensors.index.json` lists. Other
files beside them belong to no model. Standard library and safetensors alone.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

WHOLE = "model.safetensors"
INDEX = f"{WHOLE}.index.json"
ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
FLOATS = frozenset({"F64", "F32", "F16", "BF16"})

# names that torch.compile, FSDP and checkpointing put between two names, and DDP, PEFT and DeepSpeed before all of them
_WRAPPED = re.compile(r"(?:(?<=\.)|^)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
_IN_FRONT = ("module.", "base_model.model.", "_forward_module.")


@dataclass(frozen=True)
class Stored:
    """An array in a file: where it lies, its name there, its type as safetensors spells it ("F32"), its shape."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The weights of a model, not yet read.

    Attributes:
        folder: where they lie.
        tensors: by their names without what training tools put before them.
        notes: sentences on what lies beside them and isn't read.
    """

    folder: Path
    tensors: Mapping[str, Stored]
    notes: tuple[str, ...] = ()

    @property
    def n_weights(self) -> int:
        """How many numbers the files hold."""
        return sum(int(np.prod(stored.shape, dtype=object)) for stored in self.tensors.values())


def open_checkpoint(folder: Path, title: str = "") -> Checkpoint:
    """Read the headers of a model's files: what is there, not the numbers.

    Raises:
        ValueError: no model, a part that isn't there or is damaged, or one weight that stands there twice.
    """
    title = title or folder.name
    files = weight_files(folder, title)
    found: dict[str, Stored] = {}
    for file in files:
        for stored in _stored_in(file):
            twin = found.setdefault(stored.name, stored)
            if twin is not stored and (twin.dtype != stored.dtype or _bytes_of(twin) != _bytes_of(stored)):
                raise ValueError(
                    f"{title} can't be loaded: {twin.file.name} and {file.name} hold different weights {stored.name}"
                )
    tensors: dict[str, Stored] = {}
    for name, plain in plain_names(found).items():
        twin = tensors.setdefault(plain, found[name])
        if twin.name != name:
            raise ValueError(f"{title} can't be loaded: its files hold {plain} twice, as {twin.name} and as {name}")
    if not tensors:
        raise ValueError(f"{title} can't be loaded: its files hold no weights")
    return Checkpoint(folder, tensors, _notes(folder, files))


def weight_files(folder: Path, title: str = "") -> tuple[Path, ...]:
    """Return the files that make the model in a folder, in the order of their names.

    Raises:
        ValueError: no model folder, an adapter without its model, no safetensors, or parts that are missing.
    """
    title = title or folder.name
    config = raw_config(folder, title)
    names = chosen_files(
        lambda name: (folder / name).is_file(),
        lambda name: (folder / name).read_text(encoding="utf-8"),
        config.get("transformers_weights"),
        title,
    )
    if not names:
        raise ValueError(_why_none(folder, title))
    return tuple(folder / name for name in names)


def chosen_files(
    exists: Callable[[str], bool], read: Callable[[str], str], named: object, title: str
) -> tuple[str, ...]:
    """Return the names of the files that make a model, () if there are none; the rule itself, for a folder or the Hub.

    Args:
        exists: whether there is a file of that name.
        read: returns the text of a file.
        named: the file that config.json names in `transformers_weights`, if it does.
        title: what to call the model when something is wrong.

    Raises:
        ValueError: an index that is damaged or leads elsewhere, or parts that are missing.
    """
    first = named if isinstance(named, str) else WHOLE if exists(WHOLE) else INDEX
    _check_inside(first, title)
    if not exists(first):
        if isinstance(named, str):
            raise ValueError(f"{title} can't be loaded: config.json names the weights {first}, which isn't there")
        return ()
    if first.endswith(".safetensors"):
        return (first,)
    parts = _parts(first, read, title)
    missing = [part for part in parts if not exists(part)]
    if missing:
        raise ValueError(
            f"{title} isn't complete: {first} lists {len(parts)} files of weights, and {few(missing)} isn't there"
        )
    return parts


def raw_config(folder: Path, title: str) -> dict[str, Any]:
    """Return what config.json says, as it stands there.

    Raises:
        ValueError: no such file, or a damaged one.
    """
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(_adapter_alone(folder, title) or f"{title} is no model folder: it has no config.json")
    return _json_object(file.read_bytes(), f"{title} has a damaged config.json")


def settings_in(folder: Path, name: str, title: str) -> dict[str, Any] | None:
    """Return what a JSON file beside the weights says, None if there is no such file.

    Raises:
        ValueError: a damaged file.
    """
    file = folder / name
    return _json_object(file.read_bytes(), f"{title} has a damaged {name}") if file.is_file() else None


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Return name -> the name without what torch.compile, DDP, FSDP, PEFT or DeepSpeed put before it.

    >>> plain_names(["module.norm.weight", "module.layers.0._orig_mod.up.weight"])
    {'module.norm.weight': 'norm.weight', 'module.layers.0._orig_mod.up.weight': 'layers.0.up.weight'}
    """
    plain = {name: _WRAPPED.sub("", name) for name in names}
    while prefix := next((p for p in _IN_FRONT if plain and all(v.startswith(p) for v in plain.values())), None):
        plain = {name: value.removeprefix(prefix) for name, value in plain.items()}
    return plain


def read_array(stored: Stored) -> NDArray[Any]:
    """Return an array as it is stored; bfloat16, which NumPy has no type for, as float32.

    Raises:
        ValueError: a type that NumPy has no numbers for.
    """
    if stored.dtype == "BF16":
        upper = np.frombuffer(_bytes_of(stored), "<u2")  # of float32's 4 bytes
        return (upper.astype(np.uint32) << 16).view(np.float32).reshape(stored.shape)
    with safe_open(stored.file, "np") as tensors:
        try:
            return tensors.get_tensor(stored.name)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"{stored.name} is stored as {stored.dtype}, which NumPy has no type for") from error


def few(names: Collection[str], most: int = 3) -> str:
    """Return the first names in order, and how many more there are.

    >>> few(["b", "a"]), few(["d", "c", "b", "a"])
    ('a, b', 'a, b, c and 1 more')
    """
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(name[:100] for name in listed[:most]) + more


def _parts(index: str, read: Callable[[str], str], title: str) -> tuple[str, ...]:
    """Return the files that an index lists, in the order of their names."""
    try:
        content = read(index).encode()
    except ValueError:
        content = b""  # bytes that are no text
    table = _json_object(content, f"{title} has a damaged {index}").get("weight_map")
    if not isinstance(table, dict) or not table or not all(isinstance(part, str) for part in table.values()):
        raise ValueError(f"{title} has a damaged {index}: it lists no files of weights")
    parts = tuple(sorted(set(table.values())))
    for part in parts:
        _check_inside(part, title)
        if not part.endswith(".safetensors"):
            raise ValueError(f"{title} can't be loaded: {index} lists {part[:80]}, which is no safetensors file")
    return parts


def _check_inside(name: str, title: str) -> None:
    """Raise ValueError for a file name that leads out of the model's folder. Links aren't followed: the Hub's are."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise ValueError(f"{title} can't be loaded: it names weights outside of its folder, {name[:80]}")


def _json_object(content: bytes, complaint: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(complaint) from error
    if not isinstance(value, dict):
        raise ValueError(f"{complaint}: it is no JSON object")
    return value


def _stored_in(file: Path) -> list[Stored]:
    try:
        with safe_open(file, "np") as tensors:
            names = tensors.keys()
            slices = [(name, tensors.get_slice(name)) for name in names]
            return [Stored(file, name, str(one.get_dtype()), tuple(one.get_shape())) for name, one in slices]
    except Exception as error:  # SafetensorError, OSError: whatever the bytes make it say
        text = " ".join(str(error).split())[:160]
        raise ValueError(f"{file.name} is damaged or cut short: {text}") from error


def _bytes_of(stored: Stored) -> bytes:
    with open(stored.file, "rb") as stream:  # 8 bytes length of the header, the header as JSON, the numbers
        length = int.from_bytes(stream.read(8), "little")
        start, end = json.loads(stream.read(length))[stored.name]["data_offsets"]
        stream.seek(8 + length + start)
        return stream.read(end - start)


def _notes(folder: Path, files: Collection[Path]) -> tuple[str, ...]:
    """Return a sentence on an adapter that isn't applied, and one on safetensors that aren't read."""
    notes = []
    adapter = any((folder / name).is_file() for name in ADAPTER)
    if adapter:
        notes.append(f"An adapter (LoRA) for {_base(folder)} lies beside this model and isn't applied.")
    others = {file.name for file in folder.glob("*.safetensors")} - {file.name for file in files} - set(ADAPTER)
    if others:
        read = few([file.name for file in files], 1)
        notes.append(f"Weights are read from {read} alone; {few(others)} beside it: not read.")
    return tuple(notes)


def _why_none(folder: Path, title: str) -> str:
    """Return why a folder with a config.json holds no weights that can be read."""
    if alone := _adapter_alone(folder, title):
        return alone
    others = [file.name for file in folder.glob("*.safetensors")]
    if any(re.search(r"-\d+-of-\d+\.safetensors$", name) for name in others):
        return f"{title} isn't complete: {few(others)} are parts of a model, and {INDEX}, which lists them, isn't there"
    if others:
        return f"{title} has neither {WHOLE} nor {INDEX}, and nothing says that {few(others)} is its weights"
    return f"{title} has no safetensors weights; attnviz reads no pickle (.bin, .pt) files"


def _adapter_alone(folder: Path, title: str) -> str | None:
    if not any((folder / name).is_file() for name in ADAPTER):
        return None
    return f"{title} is an adapter (LoRA) for {_base(folder)}, no model by itself: merge the two first"


def _base(folder: Path) -> str:
    """Return the name of the model that an adapter changes."""
    try:
        base = json.loads((folder / ADAPTER[0]).read_bytes())["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        base = None
    return " ".join(base.split())[:80] if isinstance(base, str) and base.strip() else "a model it doesn't name"
