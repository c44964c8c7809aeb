"""Find out, when a model is loaded, whether its passes with a cache equal those without."""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import torch

from attnviz.core.trace.switches import Switches
from attnviz.models.generate import Pass
from attnviz.models.listen.feed import windows
from attnviz.models.listen.probe import COST, MOST_TRIED, PROBE_TOKENS, bare_trace, probe_ids
from attnviz.models.listen.torch_cache import CLOSE_LOGITS, TorchRun
from attnviz.models.listen.wiring import Wiring
from attnviz.models.texts import first_line

CLOSE, CLOSE_HALF = 1e-5, 1e-3  # by so much a weight may differ in float32, and in half precision
STEPS = 3
FAILS = "a step with a cache fails"


def check_cache(model: Any, wiring: Wiring) -> Wiring:
    """Return the wiring with what three steps with a cache showed: how to feed them, or why there can be none.

    The steps follow on a few tokens, and on as many as reach each window or chunk that isn't too long for the model's
    size; `Wiring.checked` says how far that went.
    """
    if list(wiring.causal.values()) != [True] or not wiring.listens or model.get_output_embeddings() is None:
        return wiring  # it doesn't continue texts
    if "bias" in wiring.extras:
        return replace(wiring, uncached="it adds a bias by position to its scores")
    n_weights = sum(weight.numel() for weight in model.parameters())
    short = [length for length in windows(model.config) if length <= MOST_TRIED and length * n_weights <= COST]
    lengths = [PROBE_TOKENS, *short]
    feeds = [wiring.feed]
    if "position_ids" in inspect.signature(model.forward).parameters:
        feeds.insert(0, replace(wiring.feed, positions=True))
    first = ""
    for feed in feeds:
        tried = replace(wiring, feed=feed, checked=max(lengths))
        reason = next(filter(None, (_difference(model, tried, length) for length in lengths)), "")
        if not reason:
            return tried
        first = first or reason
    return replace(wiring, uncached=first)


def _difference(model: Any, wiring: Wiring, length: int) -> str:
    """Return how steps around that length differ from a pass over the whole text, empty if they don't.

    Rounding is no difference, and sharp maps make it large: half precision is looked at in float32, and what is found
    there once more in float64, as far as memory allows.
    """
    own = next(model.parameters()).dtype
    free = psutil.virtual_memory().available / sum(each.numel() for each in model.parameters())  # bytes a weight
    higher = [each for each in (torch.float32, torch.float64) if own.itemsize < each.itemsize < free]
    tries = [(each, CLOSE) for each in higher]
    if own.itemsize == 4 or not higher:
        tries.insert(0, (own, CLOSE if own.itemsize == 4 else CLOSE_HALF))
    first = ""
    for precision, close in tries:
        with _in_precision(model, precision):
            said = _compare(model, wiring, length, close)
        first = first or said
        if not said or said.startswith(FAILS):
            break
    return said and first


@contextmanager
def _in_precision(model: Any, precision: torch.dtype) -> Iterator[None]:
    """Run a model in a higher precision inside the block; every number is what it was afterwards."""
    before = [(each, each.dtype) for each in model.parameters()]
    buffers = [(module, dict(module._buffers)) for module in model.modules()]
    model.to(precision)
    try:
        yield
    finally:
        for weight, dtype in before:
            weight.data = weight.data.to(dtype)
        for module, kept in buffers:
            module._buffers.update(kept)


def _compare(model: Any, wiring: Wiring, length: int, close: float) -> str:
    ids = probe_ids(model, length + STEPS - 1)[0].tolist()
    again = TorchRun(model, wiring, threading.Lock(), Switches(), cache=False)
    try:
        run = TorchRun(model, wiring, threading.Lock(), Switches(), cache=True)
        for end in range(max(1, len(ids) - STEPS), len(ids) + 1):
            step = run(ids[:end])
    except Exception as error:  # a cache of another kind than ours makes an architecture raise anything
        return f"{FAILS} ({first_line(error)})"
    whole = again(ids)
    apart = _apart(step, whole)
    if not apart <= close:
        return f"steps with a cache give weights that differ by up to {apart:.2g}"
    far, largest = (float(np.abs(logits).max()) for logits in (step.logits - whole.logits, whole.logits))
    if not far <= largest * max(close, CLOSE_LOGITS):
        return f"steps with a cache give logits that differ by up to {far:.2g}"
    return ""


def _apart(one: Pass, other: Pass) -> float:
    """Return the largest difference of a weight in the rows that both passes have."""
    ours, theirs = one.records(), other.records()
    if ours.keys() != theirs.keys():
        return float("inf")
    traces = [bare_trace({"decoder": dict(records)}) for records in (ours, theirs)]
    worst = 0.0
    for layer in ours:
        first, second = (trace.layer_weights(layer) for trace in traces)
        n = min(first.shape[1], second.shape[1])
        worst = max(worst, float(np.abs(first[:, :n, :n] - second[:, :n, :n]).max()))
    return worst
