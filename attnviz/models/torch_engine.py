"""The engine that runs a transformers model and hands back what core needs: NumPy arrays, never tensors."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from attnviz.core.switches import Switches
from attnviz.core.trace import LayerMaps, LayerRecord, ModelInfo, Token, Trace
from attnviz.models.capture import Recorder, recording
from attnviz.models.probe import Wiring, forward_inputs, own_maps
from attnviz.models.texts import check_ablate, check_text, cut
from attnviz.models.tokens import label_of, tokenize

MAPS_LIMIT = 512  # tokens, for models that can only give all their finished maps at once


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """A loaded model, ready to trace texts. Made by `attnviz.load`.

    One pass runs at a time; a second caller waits (`busy` tells).

    Attributes:
        model, tokenizer: of transformers, in eval mode.
        wiring: how its attention is read.
        info: what can be said about the model.
    """

    model: Any
    tokenizer: Any
    wiring: Wiring
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
            target: decoder text of an encoder-decoder model; None gives its decoder the start token alone.
            switches: act inside the whole pass: later layers and predictions change too.
            max_tokens: cut there, if below the model's own limit.
            on_layer: called with (finished layers, all layers); what it raises ends the pass and nothing is kept.

        Raises:
            ValueError: no visible text, or switches that can't act on this model or text.
        """
        switches = switches or Switches()
        check_text(text)
        self._check_switches(switches, target)
        limit = min(self.info.limit, max_tokens or self.info.limit)
        tokens, n_cut = cut(tokenize(self.tokenizer, text), limit)
        if not tokens:
            raise ValueError("this model's tokenizer makes no token of that text; type some letters")
        targets = self._target_tokens(target, limit)
        self._check_places(switches, len(tokens))
        with self._lock, torch.inference_mode():  # type: ignore[attr-defined]
            started = time.perf_counter()
            records, logits = self._run(tokens, targets, switches, on_layer)
            seconds = time.perf_counter() - started
        sides = {"encoder": (tokens, tokens), "decoder": (targets, targets), "cross": (targets, tokens)}
        return Trace(
            text=text,
            model=self.info,
            records=records,
            part_tokens={part: sides[part] if targets else (tokens, tokens) for part in records},
            switches=switches,
            next_logits=logits,
            label_of=partial(label_of, self.tokenizer),  # of the tokenizer alone: a trace must not keep its model
            n_cut=n_cut,
            seconds=seconds,
        )

    def run_batch(self, ids: Sequence[Sequence[int]], recorder: Recorder) -> None:
        """Run the model once over texts of as many tokens each; the recorder sees their attention.

        Args:
            ids: (texts, tokens) numbers in the vocabulary.
            recorder: must know what to do with several texts; what it raises ends the pass.
        """
        device = next(self.model.parameters()).device
        inputs = forward_inputs(self.model, torch.tensor(ids, device=device))
        with self._lock, torch.inference_mode(), recording(recorder):  # type: ignore[attr-defined]
            self.model(**inputs)

    def _run(
        self,
        tokens: tuple[Token, ...],
        targets: tuple[Token, ...],
        switches: Switches,
        on_layer: Callable[[int, int], None] | None,
    ) -> tuple[dict[str, dict[int, LayerRecord | LayerMaps]], np.ndarray | None]:
        device = next(self.model.parameters()).device
        ids = torch.tensor([[token.id for token in tokens]], device=device)
        target = torch.tensor([[token.id for token in targets]], device=device) if targets else None
        inputs = forward_inputs(self.model, ids, target)
        if not self.wiring.listens:
            maps, output = own_maps(self.model, inputs, self.info.title)
            if maps is None:
                raise ValueError(f"{self.info.title} gave no attention maps for this text")
            return {part: dict(layers) for part, layers in maps.items()}, self._logits(output)
        n_layers = sum(len(layers) for layers in self.wiring.layers.values())
        recorder = Recorder(
            self.wiring.numbers,
            by_order=self.wiring.by_order,
            switches=switches,
            on_layer=None if on_layer is None else lambda done: on_layer(done, n_layers),
        )
        with recording(recorder):
            output = self.model(**inputs)
        records = {part: recorder.records.get(part) or recorder.records.get("", {}) for part in self.wiring.layers}
        return {part: dict(sorted(layers.items())) for part, layers in records.items()}, self._logits(output)

    def _logits(self, output: Any) -> np.ndarray | None:
        if not self.info.predicts:
            return None
        logits = output.logits[0, -1].float().cpu().numpy()
        logits.flags.writeable = False
        return logits

    def _target_tokens(self, target: str | None, limit: int) -> tuple[Token, ...]:
        if not self.model.config.is_encoder_decoder:
            if target is not None:
                raise ValueError(f"{self.info.title} has no decoder beside an encoder, so it takes no target text")
            return ()
        start = self.model.config.decoder_start_token_id
        first = Token(0, int(start), label_of(self.tokenizer, int(start)), "", 0, 0, True)
        rest = tokenize(self.tokenizer, target, add_special_tokens=False) if target else ()
        return tuple(replace(token, index=i) for i, token in enumerate((first, *rest)))[:limit]

    def _check_switches(self, switches: Switches, target: str | None) -> None:
        if switches.at_rest:
            return
        if not self.wiring.listens:
            raise ValueError(self.info.cannot["scores"])
        if not switches.scaled and "scaled" in self.info.cannot:
            raise ValueError(self.info.cannot["scaled"])
        if self.model.config.is_encoder_decoder and (switches.ablate or switches.forbid):
            raise ValueError(self.info.cannot["ablate"])
        check_ablate(switches, self.info)

    def _check_places(self, switches: Switches, n_tokens: int) -> None:
        switches.check_forbid(self.info.layers, self.info.n_heads, n_tokens, n_tokens)
