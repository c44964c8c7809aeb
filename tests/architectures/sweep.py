"""Build every class of every configuration and fill in its row, in a process that may die or hang."""

import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from tests.architectures.row import Row, fill
from tests.architectures.small import CannotBuild, kinds_of, small_model
from tests.tiny import tiny_tokenizer

SECONDS = 120  # for one row, many times what the slowest takes
MEMORY = 16 << 30  # bytes of address space

Item = tuple[str, str, str]


def every(model_types: Sequence[str] = ()) -> list[Item]:
    """Return (model_type, kind, class) of all classes that are tried; no class where transformers has none."""
    names = model_types or sorted(CONFIG_MAPPING_NAMES)
    return [(name, *pair) for name in names for pair in (kinds_of(name) or {"none": ""}).items()]


def rows(items: Sequence[Item]) -> Iterator[Row]:
    """Yield a row for each, made one after the other in a process of their own, which is replaced when it dies."""
    pool = None
    for item in items:
        pool = pool or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
        try:
            yield pool.submit(row_of, item).result(timeout=SECONDS)
        except (TooLong, BrokenProcessPool) as error:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool = None
            yield Row(*item, outcome="traceback", reason=f"its process ended: {type(error).__name__}")
    if pool is not None:
        pool.shutdown()


def row_of(item: Item) -> Row:
    """Build one model in a folder named like its architecture, and look at it."""
    row = Row(*item)
    if not row.class_name:
        row.outcome, row.reason = "unbuilt", "transformers has no model class for it"
        return row
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / row.model_type
        try:
            small_model(row.model_type, row.class_name).save_pretrained(folder)
        except CannotBuild as error:
            row.outcome, row.reason = "unbuilt", str(error)
        else:
            tiny_tokenizer().save_pretrained(folder)
            fill(row, folder)
    row.seconds = time.perf_counter() - started
    return row


def _begin() -> None:
    """Bound what a row may take: memory, threads, words."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
