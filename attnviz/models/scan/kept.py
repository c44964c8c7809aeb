"""Results of scans on disk, in the cache folder, by what they depend on. NumPy files without pickle."""

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.core.pronouns.head_scores import Looks
from attnviz.core.pronouns.items import Item
from attnviz.core.trace.records import ModelInfo
from attnviz.models.load.stored import cache_folder

FORM = 1  # count up when scans measure something else


def place(info: ModelInfo, items: Sequence[Item], lead: str) -> Path:
    """Return where the scan of these items by this model is kept, whether it is there or not."""
    model = {key: value for key, value in asdict(info).items() if key not in ("title", "notes", "cannot")}
    asked = [[item.text, item.pronoun, item.candidates] for item in items]
    content = json.dumps([FORM, model, lead, asked], sort_keys=True, default=str)
    return cache_folder() / "scans" / f"{hashlib.sha256(content.encode()).hexdigest()[:24]}.npz"


def read(file: Path, items: Sequence[Item]) -> tuple[Looks, tuple[tuple[str, str], ...]] | None:
    """Return the looks and skipped items of an earlier scan, or None if there is none that can be read."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
            numbers, layers, both, reasons = (kept[name] for name in ("numbers", "layers", "both", "reasons"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if both.shape[:2] != (2, len(numbers)) or len(numbers) + len(reasons) != len(items):
        return None
    measured = set(numbers.tolist())
    others = [item.id for number, item in enumerate(items) if number not in measured]
    looks = Looks(tuple(items[number] for number in numbers), tuple(map(int, layers)), both[0], both[1])
    return looks, tuple(zip(others, map(str, reasons), strict=True))


def write(file: Path, numbers: Sequence[int], looks: Looks, skipped: Sequence[tuple[str, str]]) -> None:
    """Keep a scan; beside its place first, then renamed, so that a broken run leaves nothing half done.

    A disk that is full or may not be written is no reason to lose what was measured: then nothing is kept.

    Args:
        file: its place.
        numbers: which of the items were measured, in the order of `looks.items`.
        looks: what was measured.
        skipped: (id, reason) of the other items, in order.
    """
    content: dict[str, Any] = {
        "numbers": np.array(numbers, np.int64),
        "layers": np.array(looks.layers, np.int64),
        "both": np.stack([looks.answer, looks.distractor]),  # (2, items, layers, heads)
        "reasons": np.array([reason for _, reason in skipped], np.str_),
    }
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            made = Path(folder) / file.name
            np.savez(made, **content)
            made.replace(file)
