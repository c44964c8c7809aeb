"""The engine that runs a model from scratch in NumPy, on the same weights and with the same results as torch's."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.switches import Switches
from attnviz.core.trace import ModelInfo, Trace
from attnviz.models.blas import half_the_cores
from attnviz.models.scratch import Model, run
from attnviz.models.scratch_weights import CLASSES, build, readers_of
from attnviz.models.texts import NEVER_SCALES, check_ablate, check_text, cut
from attnviz.models.tokens import describe_tokenizer, label_of, tokenize


@dataclass(frozen=True, eq=False)
class NumpyEngine:
    """A model in NumPy, ready to trace texts. Made by `attnviz.load(name, engine="numpy")`.

    One pass runs at a time; a second caller waits (`busy` tells).

    Attributes:
        model: its weights; `tokenizer`: of transformers.
        info: what can be said about the model.
    """

    model: Model
    tokenizer: Any
    info: ModelInfo

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lock", threading.Lock())

    @property
    def busy(self) -> bool:
        """True while a pass is running."""
        return self._lock.locked()  # type: ignore[attr-defined]

    def trace(
        self,
        text: str,
        *,
        target: str | None = None,
        switches: Switches | None = None,
        max_tokens: int | None = None,
        on_layer: Callable[[int, int], None] | None = None,
    ) -> Trace:
        """Run the model over a text once and return what its attention was computed from.

        Args:
            text: at least one visible character. What exceeds the model's limit is cut; `Trace.n_cut` counts it.
            target: None; no model that this engine knows has a decoder beside an encoder.
            switches: act inside the whole pass: later layers and predictions change too.
            max_tokens: cut there, if below the model's own limit.
            on_layer: called with (finished layers, all layers); what it raises ends the pass and nothing is kept.

        Raises:
            ValueError: no visible text, or switches that can't act on this model or text.
        """
        switches = switches or Switches()
        check_text(text)
        if target is not None:
            raise ValueError(f"{self.info.title} has no decoder beside an encoder, so it takes no target text")
        if not switches.scaled and "scaled" in self.info.cannot:
            raise ValueError(self.info.cannot["scaled"])
        check_ablate(switches, self.info)
        tokens, n_cut = cut(tokenize(self.tokenizer, text), min(self.info.limit, max_tokens or self.info.limit))
        if not tokens:
            raise ValueError("this model's tokenizer makes no token of that text; type some letters")
        switches.check_forbid(self.info.layers, self.info.n_heads, len(tokens), len(tokens))
        n_layers = len(self.info.layers)
        with self._lock, half_the_cores():  # type: ignore[attr-defined]
            started = time.perf_counter()
            records, logits = run(
                self.model,
                [token.id for token in tokens],
                switches,
                None if on_layer is None else lambda done: on_layer(done, n_layers),
            )
            seconds = time.perf_counter() - started
        return Trace(
            text=text,
            model=self.info,
            records={self.info.parts[0]: dict(enumerate(records))},
            part_tokens={self.info.parts[0]: (tokens, tokens)},
            switches=switches,
            next_logits=logits,
            label_of=partial(label_of, self.tokenizer),
            n_cut=n_cut,
            seconds=seconds,
        )


def numpy_engine(
    weights: Path | Mapping[str, NDArray[Any]],
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
        weights: a folder with safetensors, or the arrays by the names they have there.
        config: the model's configuration, as transformers reads it.
        tokenizer: of transformers, a fast one.
        name: what the model was loaded by; `title`: what to call it; `revision`: of the weights.
        limit: most tokens it can take.
        notes: sentences a page should show beside the name.

    Raises:
        ValueError: another layout, a setting that isn't written out in NumPy, or weights that don't fit.
    """
    if isinstance(weights, Path):
        readers = readers_of(weights)
    else:
        readers = {key: (lambda array=array: array) for key, array in weights.items()}
    model = build(config, readers, title)
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
        notes=tuple(notes),
    )
    return NumpyEngine(model, tokenizer, info)


def _arrays(part: Any) -> dict[int, int]:
    """Return id -> size of every array in a model or in a part of one; what two parts share counts once."""
    if isinstance(part, np.ndarray):
        return {id(part): part.size}
    inner = vars(part).values() if is_dataclass(part) else part if isinstance(part, tuple) else ()
    return {key: size for each in inner for key, size in _arrays(each).items()}
