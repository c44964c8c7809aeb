"""Where weights lie: the cache folder for converted GGUF files, the Hub's cache, hashes, and what fits into memory."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import platformdirs
import psutil

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
HUB_SECONDS = 5.0
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")


def cache_folder() -> Path:
    """Return the user's cache folder for converted models; ATTNVIZ_CACHE overrides it."""
    return Path(os.environ.get("ATTNVIZ_CACHE") or platformdirs.user_cache_dir("attnviz"))


def weights_revision(path: Path) -> str:
    """Return the first 12 hex digits of the SHA-256 of a GGUF file, or of a folder's safetensors in name order."""
    files = [path] if path.is_file() else sorted(path.glob("*.safetensors"))
    stats = tuple((str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return _hash_files(stats)


@lru_cache(maxsize=64)
def _hash_files(stats: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in stats:
        with open(name, "rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def check_memory(folder: Path, dtype: str) -> int:
    """Return the bytes that the weights in a folder need in that precision.

    Raises:
        ValueError: more than is free.
    """
    need, free = memory_needed(folder, dtype), psutil.virtual_memory().available
    if need > free:
        raise ValueError(f"these weights need {need / 1e9:.1f} GB in {dtype}, and {free / 1e9:.1f} GB are free")
    return need


def memory_needed(folder: Path, dtype: str) -> int:
    """Return bytes of the safetensors in a folder once loaded: their numbers times the bytes of `dtype`."""
    from safetensors import safe_open

    n_weights = 0
    for file in folder.glob("*.safetensors"):
        try:
            with safe_open(file, "np") as tensors:
                for key in tensors.keys():  # noqa: SIM118 - not a dict
                    size = 1
                    for length in tensors.get_slice(key).get_shape():
                        size *= length
                    n_weights += size
        except Exception as error:
            raise ValueError(f"{file.name} is damaged or cut short: {error}") from error
    return n_weights * DTYPE_BYTES[dtype]


def gguf_folder(path: Path, revision: str, say: Callable[[str], None]) -> Path:
    """Return the folder with the safetensors made from a GGUF file, converting it the first time.

    The conversion is written beside its place and renamed, so that a broken run leaves nothing half done.

    Raises:
        ValueError: not a GGUF file, cut short, or an architecture that transformers can't convert.
    """
    place = cache_folder() / "models" / f"{path.stem}-{revision}"
    if (place / "config.json").is_file():
        return place
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path.name} isn't a GGUF file")
    free = shutil.disk_usage(_existing_parent(place)).free
    need = 8 * path.stat().st_size  # 4 bits become 32, and some room
    if free < need:
        raise ValueError(f"converting {path.name} needs {need / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free")
    say(f"Converting {path.name}: once, about 20 seconds, {5.3 * path.stat().st_size / 1e6:.0f} MB in {place.parent}")
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="converting-", dir=place.parent))
    try:
        _convert(path, made)
        try:
            made.rename(place)
        except OSError:
            if not (place / "config.json").is_file():  # else another process was first
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place


def _convert(path: Path, folder: Path) -> None:
    import torch
    import transformers

    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise ValueError("the package gguf isn't installed, which reads .gguf files: pip install gguf") from error
    options = {"gguf_file": path.name, "local_files_only": True}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent,
            quantization_config=transformers.GgufConfig(dequantize=True),
            dtype=torch.float32,
            **options,
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except Exception as error:  # struct.error, ValueError, KeyError ...: what a damaged file raises varies
        text = " ".join(str(error).split())[:160]
        raise ValueError(
            f"{path.name} can't be read: it is cut short, damaged or of an unknown kind ({text})"
        ) from error


def hub_folder(name: str, revision: str | None, say: Callable[[str], None]) -> tuple[Path, str]:
    """Return the local folder of a Hub model and its revision; files on this machine come first, then the network.

    Raises:
        ValueError: not a valid id, neither here nor reachable, or a repository without safetensors.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    revision = _whole_revision(name, revision)
    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True, allow_patterns=list(PATTERNS)))
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return folder, folder.name[:12]
    except (LocalEntryNotFoundError, OSError, ValueError):
        say(f"{name} isn't on this machine; asking the Hub")
    try:
        info = HfApi().model_info(name, revision=revision, timeout=HUB_SECONDS)
    except GatedRepoError as error:
        raise ValueError(f"{name} is gated: accept its terms on the Hub and log in with a token first") from error
    except RepositoryNotFoundError as error:
        raise ValueError(f"there is no model {name} on the Hub, or it is private") from error
    except HfHubHTTPError as error:
        raise ValueError(f"the Hub refused {name}: {str(error).splitlines()[0][:120]}") from error
    except Exception as error:
        raise ValueError(f"{name} isn't on this machine, and the model hub can't be reached") from error
    files = [sibling.rfilename for sibling in info.siblings or ()]
    if not any(re.fullmatch(r"[^/]*\.safetensors", file) for file in files):
        raise ValueError(f"{name} has no safetensors weights; attnviz reads no pickle (.bin, .pt) files")
    say(f"Downloading {name}")
    folder = Path(snapshot_download(name, revision=info.sha, allow_patterns=list(PATTERNS)))
    return folder, (info.sha or folder.name)[:12]


def _whole_revision(name: str, revision: str | None) -> str | None:
    """Return the revision on this machine that begins with these digits, as pages and files name it, else the same."""
    from huggingface_hub.constants import HF_HUB_CACHE

    if revision is None or not re.fullmatch(r"[0-9a-f]{7,39}", revision):
        return revision
    folders = Path(HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "snapshots").glob(f"{revision}*")
    found = [folder.name for folder in folders]
    return found[0] if len(found) == 1 else revision


def _existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
