"""Where weights lie: the cache folder, the Hub's cache, hashes, and what fits into memory."""

import hashlib
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import platformdirs
import psutil

from attnviz.models.load.weight_files import ADAPTER, Checkpoint, chosen_files, raw_config, weight_files

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
HUB_SECONDS = 5.0
SMALL = {".json", ".txt", ".model", ".jinja"}  # of files beside the weights: settings and words


def cache_folder() -> Path:
    """Return the user's cache folder for converted models; ATTNVIZ_CACHE overrides it."""
    return Path(os.environ.get("ATTNVIZ_CACHE") or platformdirs.user_cache_dir("attnviz"))


def weights_revision(path: Path) -> str:
    """Return 12 hex digits of the SHA-256 of a GGUF file, or of the files of a folder's model in name order."""
    files = (path,) if path.is_file() else weight_files(path)
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


def check_memory(checkpoint: Checkpoint, dtype: str) -> int:
    """Return the bytes that the weights of a model need in that precision.

    Raises:
        ValueError: more than is free.
    """
    need, free = checkpoint.n_weights * DTYPE_BYTES[dtype], psutil.virtual_memory().available
    if need > free:
        raise ValueError(f"these weights need {need / 1e9:.1f} GB in {dtype}, and {free / 1e9:.1f} GB are free")
    return need


def hub_folder(name: str, revision: str | None, say: Callable[[str], None]) -> tuple[Path, str]:
    """Return the local folder of a Hub model and its revision; files on this machine come first, then the network.

    Raises:
        ValueError: not a valid id, neither here nor reachable, or a repository without safetensors.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    revision = _whole_revision(name, revision)
    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
        weight_files(folder, name)
        return folder, folder.name[:12]
    except (LocalEntryNotFoundError, OSError, ValueError):
        say(f"{name} isn't on this machine, or not all of it; asking the Hub")
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
    there = {sibling.rfilename for sibling in info.siblings or ()}
    return _download(name, str(info.sha), there, say), str(info.sha)[:12]


def _download(name: str, revision: str, there: set[str], say: Callable[[str], None]) -> Path:
    """Download what makes a model of the files `there` on the Hub: settings and words first, then its weights."""
    from huggingface_hub import snapshot_download

    if "config.json" not in there:
        alone = " by itself: it is an adapter (LoRA), merge it with its model first" if ADAPTER[0] in there else ""
        raise ValueError(f"{name} is no model{alone or ': it has no config.json'}")
    small = [file for file in there if "/" not in file and Path(file).suffix in SMALL]
    say(f"Downloading {name}")
    folder = Path(snapshot_download(name, revision=revision, allow_patterns=small))
    weights = chosen_files(
        there.__contains__,
        lambda file: (folder / file).read_text(encoding="utf-8"),
        raw_config(folder, name).get("transformers_weights"),
        name,
    )
    if not weights:
        raise ValueError(
            f"{name} has no safetensors weights that make a model; attnviz reads no pickle (.bin, .pt) files"
        )
    return Path(snapshot_download(name, revision=revision, allow_patterns=[*small, *weights]))


def _whole_revision(name: str, revision: str | None) -> str | None:
    """Return the revision on this machine that begins with these digits, as pages and files name it, else the same."""
    from huggingface_hub.constants import HF_HUB_CACHE

    if revision is None or not re.fullmatch(r"[0-9a-f]{7,39}", revision):
        return revision
    folders = Path(HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "snapshots").glob(f"{revision}*")
    found = [folder.name for folder in folders]
    return found[0] if len(found) == 1 else revision
