"""A scan of pronoun sentences against one eager forward pass an item, on all-MiniLM-L6-v2."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnviz.core.pronouns.items import SHIPPED, Item, read_items
from tests.benchmarks.timing import in_turn, median, ratio

WINOGENDER = Path(__file__).resolve().parents[3] / "shared" / "pronouns" / "winogender.jsonl"
N_ITEMS = 3000
N_DISTINCT = 240


def eager(engine: Any, items: Sequence[Item]) -> np.ndarray:
    """Return (items, 2, layers, heads): weight on the answer and on the best distractor, a forward pass an item."""
    model = engine.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            return np.stack([_one(engine, item) for item in items])
    finally:
        model.set_attn_implementation(before)


def _one(engine: Any, item: Item) -> np.ndarray:
    encoding = engine.tokenizer(item.text, return_offsets_mapping=True, return_tensors="pt")
    offsets = encoding["offset_mapping"][0].tolist()
    maps = engine.model(input_ids=encoding["input_ids"], output_attentions=True).attentions
    rows = torch.stack([layer[0] for layer in maps])[:, :, _tokens(offsets, item.pronoun)[-1]]  # (layers, heads, keys)
    sums = torch.stack([rows[..., _tokens(offsets, span)].sum(-1) for span in item.candidates])
    return torch.stack([sums[0], sums[1:].amax(0)]).numpy()


def _tokens(offsets: Sequence[Sequence[int]], span: tuple[int, int]) -> list[int]:
    return [i for i, (start, end) in enumerate(offsets) if start < span[1] and span[0] < end]


def batched(engine: Any, items: Sequence[Item]) -> np.ndarray:
    """Return the same from a scan."""
    from attnviz.models.scan.sentences import scan

    looks = scan(engine, items, lead=None, cache=False).looks
    return np.stack([looks.answer, looks.distractor], axis=1)


def measure() -> dict[str, Any]:
    """Return seconds and their ratio, for items that repeat and for distinct ones, and how far results are apart."""
    import attnviz

    engine = attnviz.load("minilm")
    file = WINOGENDER if WINOGENDER.is_file() else SHIPPED / "en.jsonl"
    distinct, _ = read_items(file)
    repeated = list(islice(cycle(distinct), N_ITEMS))
    found: dict[str, Any] = {"model": engine.info.title, "revision": engine.info.revision, "items": file.name}
    some = distinct[:N_DISTINCT]
    seconds = in_turn(2, scan=partial(batched, engine, some), eager=partial(eager, engine, some))
    found[f"{len(some)} distinct items"] = _row(seconds["scan"], seconds["eager"])
    scan_seconds, ours = _timed(partial(batched, engine, repeated))
    eager_seconds, theirs = _timed(partial(eager, engine, repeated))
    found[f"{len(repeated)} items, {len(distinct)} of them distinct"] = _row([scan_seconds], [eager_seconds])
    found["largest_difference"] = float(np.abs(ours - theirs).max())
    return found


def _timed(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


def _row(scan_seconds: list[float], eager_seconds: list[float]) -> dict[str, float]:
    return {
        "scan_seconds": median(scan_seconds),
        "eager_seconds": median(eager_seconds),
        "eager_over_scan": ratio(eager_seconds, scan_seconds),
    }
