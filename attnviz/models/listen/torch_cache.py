"""Run a transformers model again and again over a text that grows, with or without its key/value cache, and listen."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
)

from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches
from attnviz.models.generate import Pass, up_to
from attnviz.models.listen.call import Call
from attnviz.models.listen.capture import Recorder, Wires, recording
from attnviz.models.listen.feed import new_positions, windows
from attnviz.models.listen.growing import GrowingRecords
from attnviz.models.listen.wiring import Wiring
from attnviz.models.load.building import passing

CLOSE_LOGITS = 1e-3  # of the largest logit: by so much rounding may move one


class TorchRun:
    """A `generate.Run` of one text. Nothing but the text's own keys and values stays between two calls.

    Where the text grows past a length from which on all positions are computed differently, the cache is stale and
    everything runs once again. The same is done past a window or a chunk that was too long to try when the model was
    loaded: if that gives other numbers than the cache, no cache is used from there on.

    Args:
        model: of transformers.
        wiring: how its attention is read.
        lock: held while the model runs, and only then.
        switches: act inside every run.
        cache: True runs over the new tokens alone, with keys and values of the others from transformers' own cache.
    """

    def __init__(self, model: Any, wiring: Wiring, lock: threading.Lock, switches: Switches, *, cache: bool) -> None:
        self._model, self._wiring, self._lock, self._switches = model, wiring, lock, switches
        self._cache = full_cache(model.config) if cache else None
        self._rows, self._n_read = GrowingRecords(), 0
        self._stale = new_positions(model.config)
        self._untried = tuple(length for length in windows(model.config) if length > wiring.checked)

    def __call__(self, ids: Sequence[int]) -> Pass:
        """Run over the ids that the cache doesn't know, or over all of them."""
        if self._cache is None or not self._n_read:
            return self._run(ids)
        if self._grows_past(self._untried, len(ids)):
            with_cache, whole = self._run(ids), self._start_over(ids)
            largest = np.abs(whole.logits).max()
            if not np.abs(with_cache.logits - whole.logits).max() <= CLOSE_LOGITS * largest:
                self._cache = None
            return whole
        return self._start_over(ids) if self._grows_past(self._stale, len(ids)) else self._run(ids)

    def _grows_past(self, lengths: Sequence[int], n_tokens: int) -> bool:
        return any(self._n_read <= length < n_tokens for length in lengths)

    def _start_over(self, ids: Sequence[int]) -> Pass:
        self._cache = full_cache(self._model.config)
        self._rows, self._n_read = GrowingRecords(), 0
        return self._run(ids)

    def _run(self, ids: Sequence[int]) -> Pass:
        n_new = len(ids) - self._n_read
        recorder = self._recorder(len(ids))
        device = next(self._model.parameters()).device
        feed = self._wiring.feed
        if self._cache is None:
            inputs = feed.inputs(self._model, torch.tensor([list(ids)], device=device))
        else:
            new = torch.tensor([list(ids[self._n_read :])], device=device)
            inputs = feed.step(self._model, new, self._cache, self._n_read)
        with self._lock, passing(), torch.inference_mode(), recording(recorder):
            started = time.perf_counter()
            logits = self._model(**inputs).logits[0, -1].float().cpu().numpy()
            seconds = time.perf_counter() - started
        logits.flags.writeable = False
        self._n_read = len(ids)
        return Pass(logits, seconds, cache_bytes(self._cache), self._keep(recorder, n_new))

    def _recorder(self, n_tokens: int) -> Recorder:
        switches = up_to(self._switches, n_tokens)
        if self._cache is None:
            return Recorder(self._wiring.wires, switches=switches)
        return NewRows(self._wiring.wires, self._n_read, switches=switches)

    def _keep(self, recorder: Recorder, n_new: int) -> Any:
        """Put the new rows below the old ones, and return what gives the records of all of them.

        Where tokens see later ones, each new token changes all rows, and a run without cache keeps its own. So it is
        with a bias, a rule that isn't one run of keys a query, and where a longer text has other positions.
        """
        records = recorder.new if isinstance(recorder, NewRows) else next(iter(recorder.records.values()))
        apart = any(record.bias is not None or record.mask.table is not None for record in records.values())
        if self._cache is None and (apart or self._stale or self._switches.causal is False):
            return partial(dict, sorted(records.items()))
        for layer, record in records.items():
            self._rows.append(layer, record, n_new)
        return partial(self._rows.first, self._n_read)


class NewRows(Recorder):
    """The q, k and v of new tokens, in a pass in which the keys and values of earlier ones come from a cache.

    Args:
        wires: how modules are told apart.
        n_past: tokens in the cache.
        switches: act inside the pass; forbidden looks count from the first token of the text.
    """

    def __init__(self, wires: Wires, n_past: int, *, switches: Switches) -> None:
        super().__init__(wires, switches=from_token(switches, n_past))
        self.n_past = n_past
        self.new: dict[int, LayerRecord] = {}

    def _keep(self, call: Call, part: str, layer: int) -> LayerRecord:
        n_new, n_keys = call.size
        if n_keys != self.n_past + n_new:
            raise ValueError("this model's cache doesn't keep the keys of all tokens; use cache=False")
        q, k, v = map(_copied, (self._asked(call), call.key[:, :, -n_new:], call.value[:, :, -n_new:]))
        self.new[layer] = LayerRecord(q, k, v, **self._rest(call))
        all_keys = np.broadcast_to(np.float32(0), call.key.shape[1:])  # only their number is asked for
        return replace(self.new[layer], k=all_keys)


def full_cache(config: Any) -> DynamicCache:
    """Return transformers' own cache, empty, such that it keeps the keys of all tokens.

    Layers with a window would drop what has left the window, and no row of a map would be complete.
    """
    cache = DynamicCache(config=config)
    whole = {
        DynamicSlidingWindowLayer: DynamicLayer,
        LinearAttentionAndSlidingWindowAttentionLayer: LinearAttentionAndFullAttentionLayer,
    }
    cache.layers = [whole[type(layer)]() if type(layer) in whole else layer for layer in cache.layers]
    return cache


def cache_bytes(cache: DynamicCache | None) -> int:
    """Return the bytes that keys and values take in memory, padding included if there were any."""
    layers = [] if cache is None else cache.layers
    tensors = [getattr(layer, name, None) for layer in layers for name in ("keys", "values")]
    storages = [tensor.untyped_storage() for tensor in tensors if tensor is not None]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def from_token(switches: Switches, n_past: int) -> Switches:
    """Return the switches for a pass over the tokens from `n_past` on, whose queries are counted from there.

    The last tokens of a text have none after them that could be forbidden, so `causal` is as good as None.

    >>> sorted(from_token(Switches(forbid={(0, 0, 5, 2), (0, 0, 1, 0)}), 4).forbid)
    [(0, 0, 1, 2)]
    """
    forbid = {(layer, head, query - n_past, key) for layer, head, query, key in switches.forbid if query >= n_past}
    return replace(switches, causal=switches.causal if n_past == 0 else None, forbid=frozenset(forbid))


def _copied(tensor: torch.Tensor) -> np.ndarray:
    """Return a batch of one without its first axis, as float32."""
    return np.array(tensor[0].detach().to("cpu", torch.float32).numpy())
