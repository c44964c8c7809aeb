"""From a GGUF file to safetensors in the cache: converted once, checked at each reading, made again if broken."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from attnviz.models.load.gguf_header import Header, read_header
from attnviz.models.load.gguf_settings import (
    ROPE_FACTORS,
    check_settings,
    read_factors,
    restore_settings,
    rope_scaling,
)
from attnviz.models.load.stored import cache_folder
from attnviz.models.load.weight_checks import is_table, refuse_mismatched, refuse_missing
from attnviz.models.load.weight_files import few

LIST = "converted.json"  # name -> size and hash of each file that a conversion wrote
FORMAT = 3  # goes up when the same file is converted to something else
_MAKING = re.compile(r"converting-(\d+)-")


def gguf_folder(path: Path, revision: str, say: Callable[[str], None]) -> Path:
    """Return the folder with the safetensors made from a GGUF file, converting it where there is none that is whole.

    The conversion is written beside its place and renamed, so that a broken run leaves nothing half done.

    Raises:
        ValueError: damaged, or something in it that transformers can't convert or would drop.
    """
    place = cache_folder() / "models" / f"{path.stem}-{revision}"
    _clear_leftovers(place.parent)
    broken = what_is_broken(place)
    if not broken:
        return place
    header = read_header(path)
    _check_disk(path, place)
    if place.exists():
        say(f"The converted copy of {path.name} isn't whole ({broken}); it is made again")
    say(f"Converting {path.name}: once, about 20 seconds, {5.3 * path.stat().st_size / 1e6:.0f} MB in {place.parent}")
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f"converting-{os.getpid()}-", dir=place.parent))
    try:
        _convert(path, header, made / "new")
        _write_list(made / "new")
        _put(made / "new", place, made / "old")
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place


def what_is_broken(folder: Path) -> str:
    """Return what is wrong with a converted folder, "" if all its files are as they were written."""
    try:
        told = json.loads((folder / LIST).read_bytes())
        files = {name: (int(each["size"]), str(each["sha256"])) for name, each in told["files"].items()}
        current = told["format"] == FORMAT and "config.json" in files
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "nothing says what it should hold"
    if not current:
        return "it was made by another version"
    for name, (size, digest) in files.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            return f"{name} is missing or has another size"
        if _sha256(str(file), size, file.stat().st_mtime_ns) != digest:
            return f"{name} has changed"
    return ""


@lru_cache(maxsize=256)
def _sha256(file: str, size: int, changed: int) -> str:
    """Return the hash of a file; of one that has neither another size nor another time it is known."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write_list(folder: Path) -> None:
    files = {
        file.name: {"size": file.stat().st_size, "sha256": _sha256(str(file), file.stat().st_size, 0)}
        for file in sorted(folder.iterdir())
    }
    (folder / LIST).write_text(json.dumps({"format": FORMAT, "files": files}, indent=1), encoding="utf-8")


def _put(new: Path, place: Path, old: Path) -> None:
    """Rename a new folder into its place; one that is there moves out of the way, unless another process was first."""
    if place.exists() and what_is_broken(place):
        place.rename(old)
    try:
        new.rename(place)
    except OSError:
        if what_is_broken(place):
            raise


def _clear_leftovers(folder: Path) -> None:
    """Delete what conversions of processes left that are no more."""
    for left in folder.glob("converting-*"):
        named = _MAKING.match(left.name)
        if named is None or not _is_at_work(int(named[1]), left):
            shutil.rmtree(left, ignore_errors=True)


def _is_at_work(pid: int, folder: Path) -> bool:
    """Return True if the process that made a folder still runs, and isn't another that got its number since."""
    try:
        return psutil.Process(pid).create_time() <= folder.stat().st_mtime + 1.0
    except (psutil.NoSuchProcess, OSError):
        return False
    except psutil.AccessDenied:
        return True


def _check_disk(path: Path, place: Path) -> None:
    parent = place
    while not parent.exists():
        parent = parent.parent
    free, need = shutil.disk_usage(parent).free, 8 * path.stat().st_size  # 4 bits become 32, and some room
    if free < need:
        raise ValueError(f"converting {path.name} needs {need / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free")


def _convert(path: Path, header: Header, folder: Path) -> None:
    """Write the safetensors, configuration and tokenizer of a GGUF file into a folder."""
    import torch
    import transformers

    from attnviz.models.load.building import building

    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise ValueError("the package gguf isn't installed, which reads .gguf files: pip install gguf") from error
    options = {"gguf_file": path.name, "local_files_only": True}
    try:
        with building():
            tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **options)
            model, told = transformers.AutoModelForCausalLM.from_pretrained(
                path.parent,
                quantization_config=transformers.GgufConfig(dequantize=True),
                dtype=torch.float32,
                ignore_mismatched_sizes=True,  # they are refused below, by name
                output_loading_info=True,
                **options,
            )
        unused = _unused(model, header) | told["unexpected_keys"]
    except Exception as error:  # struct.error, ValueError, KeyError ...: what a damaged file raises varies
        text = " ".join(str(error).split())[:160]
        raise ValueError(
            f"{path.name} can't be read: it is cut short, damaged or of an unknown kind ({text})"
        ) from error
    _check(path, header, model.config, told, unused)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _check(path: Path, header: Header, config: Any, told: dict[str, Any], unused: Collection[str]) -> None:
    """Refuse what transformers dropped, by name; the scaling of angles, which it drops too, goes into `config`."""
    restore_settings(header, config)
    scaling = rope_scaling(header, read_factors(path, header), config, path.name)
    check_settings(header, config, path.name)
    left = [name for name in unused if not is_table(name) and name != ROPE_FACTORS]
    if left:
        raise ValueError(f"{path.name} can't be shown as it is: transformers has no place for its weights {few(left)}")
    refuse_missing(told["missing_keys"], path.name)
    refuse_mismatched(told["mismatched_keys"], path.name)
    if scaling is not None:
        config.rope_parameters = scaling
        config.validate_rope()


def _unused(model: Any, header: Header) -> set[str]:
    """Return the arrays of a file that transformers skips without a word."""
    from transformers import modeling_gguf_pytorch_utils as reading
    from transformers.integrations.gguf.utils import is_gguf_arch_supported

    if is_gguf_arch_supported(header.architecture):
        return set()  # read by code that tells what it has no place for
    processor = reading.TENSOR_PROCESSORS.get(header.architecture, reading.TensorProcessor)
    places = reading.get_gguf_hf_weights_map(model, processor(config=model.config.to_dict()))
    known = {*places, "output.weight"}  # GPT-2's head has a rule of its own
    return {name for name in header.arrays if not {name, name.removesuffix(".weight")} & known}
