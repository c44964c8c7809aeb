"""The engine that runs a model from scratch in NumPy, on the same weights and with the same results as torch's."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.threads import half_the_cores
from attnviz.core.trace.records import LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches
from attnviz.models.engine import Engine, OnLayer, Records
from attnviz.models.generate import Pass, end_ids, up_to
from attnviz.models.listen.growing import GrowingRecords
from attnviz.models.load.weight_files import Checkpoint, settings_in
from attnviz.models.scratch.decoder import Model, run
from attnviz.models.scratch.weights import CLASSES, build_and_note, readers_of
from attnviz.models.scratch.with_cache import Cache, run_new
from attnviz.models.texts import NEVER_SCALES
from attnviz.models.tokens import describe_tokenizer


@dataclass(frozen=True, eq=False)
class NumpyEngine(Engine):
    """A model in NumPy. Made by `attnviz.load(name, engine="numpy")`.

    Attributes:
        model: its weights; `tokenizer`: of transformers.
        info: what can be said about the model.
        ends: ids of the tokens after which a text is over.
    """

    model: Model
    tokenizer: Any
    info: ModelInfo
    ends: frozenset[int] = frozenset()

    def _run(
        self, tokens: tuple[Token, ...], targets: tuple[Token, ...], switches: Switches, on_layer: OnLayer | None
    ) -> tuple[Records, np.ndarray | None]:
        n_layers = len(self.info.layers)
        each = None if on_layer is None else lambda done: on_layer(done, n_layers)
        with half_the_cores():
            records, logits = run(self.model, [token.id for token in tokens], switches, each)
        return {self.info.parts[0]: dict(enumerate(records))}, logits

    def _runner(self, switches: Switches, *, cache: bool) -> "NumpyRun":
        return NumpyRun(self.model, self._lock, switches, cache=cache)

    def _ends(self) -> frozenset[int]:
        return self.ends


class NumpyRun:
    """A `generate.Run` of one text.

    Args:
        model: its weights.
        lock: held while the model runs, and only then.
        switches: act inside every run.
        cache: True runs over the new tokens alone.
    """

    def __init__(self, model: Model, lock: threading.Lock, switches: Switches, *, cache: bool) -> None:
        self._model, self._lock, self._switches = model, lock, switches
        self._cache = Cache(model) if cache else None
        self._rows, self._n_read = GrowingRecords(), 0

    def __call__(self, ids: Sequence[int]) -> Pass:
        """Run over the ids that the cache doesn't know, or over all of them."""
        n_new = len(ids) - self._n_read
        switches = up_to(self._switches, len(ids))
        with self._lock, half_the_cores():
            started = time.perf_counter()
            if self._cache is None:
                records, logits = run(self._model, list(ids), switches)
            else:
                records, logits = run_new(self._model, list(ids[-n_new:]), self._cache, switches)
            seconds = time.perf_counter() - started
        self._n_read = len(ids)
        n_bytes = 0 if self._cache is None else self._cache.nbytes
        return Pass(logits, seconds, n_bytes, self._keep(records, n_new))

    def _keep(self, records: list[LayerRecord], n_new: int) -> Callable[[], Mapping[int, LayerRecord]]:
        """Put the new rows below the old ones; where tokens see later ones all rows change, and a run keeps its own."""
        if self._switches.causal is False:
            return partial(dict, enumerate(records))
        for layer, record in enumerate(records):
            self._rows.append(layer, record, n_new)
        return partial(self._rows.first, self._n_read)


def numpy_engine(
    weights: Checkpoint | Mapping[str, NDArray[Any]],
    *,
    config: Any,
    tokenizer: Any,
    name: str,
    title: str,
    revision: str,
    limit: int,
    notes: tuple[str, ...] = (),
) -> NumpyEngine:
    """Return the engine that runs a model of the layouts llama, bert and gpt2 in NumPy, in float32.

    Args:
        weights: the files of a model, or the arrays by the names they have there.
        config: the model's configuration, as transformers reads it.
        tokenizer: of transformers, a fast one.
        name: what the model was loaded by.
        title: what to call it.
        revision: of the weights.
        limit: most tokens it can take.
        notes: sentences a page should show beside the name.

    Raises:
        ValueError: another layout, a setting that isn't written out in NumPy, or weights that don't fit.
    """
    if isinstance(weights, Checkpoint):
        readers = readers_of(weights)
    else:
        readers = {key: partial(np.asarray, array) for key, array in weights.items()}
    model, unused = build_and_note(config, readers, title)
    causal = model.layout != "bert"
    info = ModelInfo(
        name=name,
        title=title,
        revision=revision,
        dtype="float32",
        engine="numpy",
        architecture=CLASSES[model.layout][model.head is not None],
        tokenizer=describe_tokenizer(tokenizer),
        causal=causal,
        parts=("decoder" if causal else "encoder",),
        n_layers=len(model.layers),
        layers=tuple(range(len(model.layers))),
        n_heads=model.n_heads,
        n_kv_heads=model.n_kv_heads,
        limit=limit,
        n_parameters=sum(_arrays(model).values()),
        predicts=model.head is not None,
        cannot={} if any(layer.scale != 1.0 for layer in model.layers) else {"scaled": NEVER_SCALES},
        notes=(*notes, *unused),
    )
    return NumpyEngine(model, tokenizer, info, _ends(config, weights, title))


def _ends(config: Any, weights: Any, title: str) -> frozenset[int]:
    """Return the ids that end a text, where transformers looks for them too."""
    said = settings_in(weights.folder, "generation_config.json", title) if isinstance(weights, Checkpoint) else None
    return end_ids(getattr(config, "eos_token_id", None) if said is None else said.get("eos_token_id"))


def _arrays(part: Any) -> dict[int, int]:
    """Return id -> size of every array in a model or in a part of one; what two parts share counts once."""
    if isinstance(part, np.ndarray):
        return {id(part): part.size}
    inner = vars(part).values() if is_dataclass(part) else part if isinstance(part, tuple) else ()
    return {key: size for each in inner for key, size in _arrays(each).items()}
