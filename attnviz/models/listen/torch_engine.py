"""The engine that runs a transformers model and hands back what core needs: NumPy arrays, never tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from attnviz.core.trace.records import ModelInfo, Token
from attnviz.core.trace.switches import Switches
from attnviz.models.engine import Engine, OnLayer, Records
from attnviz.models.generate import end_ids
from attnviz.models.listen.capture import Recorder, recording
from attnviz.models.listen.probe import own_maps
from attnviz.models.listen.store import Store
from attnviz.models.listen.torch_cache import TorchRun
from attnviz.models.listen.wiring import Wiring
from attnviz.models.load.building import passing
from attnviz.models.texts import first_line
from attnviz.models.tokens import label_of, tokenize

MAPS_LIMIT = 512  # tokens, for models that can only give all their finished maps at once


@dataclass(frozen=True, eq=False)
class TorchEngine(Engine):
    """A model of transformers, in eval mode.

    Attributes:
        model, tokenizer: of transformers.
        wiring: how its attention is read.
        info: what can be said about the model.
    """

    model: Any
    tokenizer: Any
    wiring: Wiring
    info: ModelInfo

    _spare: list[np.ndarray] = field(default_factory=list, init=False)  # memory of passes that are forgotten

    def run_batch(self, ids: Sequence[Sequence[int]], recorder: Recorder) -> None:
        """Run the model once over texts of as many tokens each; the recorder sees their attention.

        Args:
            ids: (texts, tokens) numbers in the vocabulary.
            recorder: must know what to do with several texts; what it raises ends the pass.
        """
        device = next(self.model.parameters()).device
        inputs = self.wiring.feed.inputs(self.model, torch.tensor(ids, device=device))
        with self._lock, passing(), torch.inference_mode(), recording(recorder):
            self.model(**inputs)

    def _run(
        self, tokens: tuple[Token, ...], targets: tuple[Token, ...], switches: Switches, on_layer: OnLayer | None
    ) -> tuple[Records, np.ndarray | None]:
        raised: list[Exception] = []

        def tell(done: int, n_layers: int) -> None:
            try:
                if on_layer is not None:
                    on_layer(done, n_layers)
            except Exception as error:  # the caller's own way to end a pass, which goes on to the caller as it is
                raised.append(error)
                raise

        try:
            with passing(), torch.inference_mode():
                return self._forward(tokens, targets, switches, None if on_layer is None else tell)
        except (IndexError, RuntimeError) as error:  # of torch: a table that is too short, memory that isn't there
            if error in raised:
                raise
            what = f"{self.info.title} can't run over these {len(tokens)} tokens"
            raise ValueError(f"{what}: {first_line(error)}") from error

    def _runner(self, switches: Switches, *, cache: bool) -> TorchRun:
        if cache and self.wiring.uncached:
            raise ValueError(f"{self.info.title} can't use a cache, use cache=False: {self.wiring.uncached}")
        return TorchRun(self.model, self.wiring, self._lock, switches, cache=cache)

    def _ends(self) -> frozenset[int]:
        return end_ids(self.model.generation_config.eos_token_id)

    def _forward(
        self, tokens: tuple[Token, ...], targets: tuple[Token, ...], switches: Switches, on_layer: OnLayer | None
    ) -> tuple[Records, np.ndarray | None]:
        device = next(self.model.parameters()).device
        ids = torch.tensor([[token.id for token in tokens]], device=device)
        target = torch.tensor([[token.id for token in targets]], device=device) if targets else None
        inputs = self.wiring.feed.inputs(self.model, ids, target)
        if not self.wiring.listens:
            maps, output = own_maps(self.model, inputs, self.info.title)
            if maps is None:
                raise ValueError(f"{self.info.title} gave no attention maps for this text")
            return {part: dict(layers) for part, layers in maps.items()}, self._logits(output)
        n_layers = sum(len(layers) for layers in self.wiring.layers.values())
        recorder = Recorder(
            self.wiring.wires,
            switches=switches,
            on_layer=None if on_layer is None else lambda done: on_layer(done, n_layers),
            store=Store(self._spare),
        )
        with recording(recorder):
            output = self.model(**inputs)
        found = recorder.records
        records = {part: found.get(part) or found.get("", {}) for part in self.wiring.layers}
        return {part: dict(sorted(layers.items())) for part, layers in records.items()}, self._logits(output)

    def _logits(self, output: Any) -> np.ndarray | None:
        if not self.info.predicts:
            return None
        logits = output.logits[0, -1].float().cpu().numpy()
        logits.flags.writeable = False
        return logits

    def _target_tokens(self, target: str | None, limit: int) -> tuple[Token, ...]:
        if not self.model.config.is_encoder_decoder:
            return super()._target_tokens(target, limit)
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        config = self.model.config
        configs = (getattr(self.model, "generation_config", None), config, config.get_text_config())
        found = (getattr(each, name, None) for name in names for each in configs)
        start = next((id for id in found if id is not None), None)
        if start is None:
            raise ValueError(
                f"{self.info.title} doesn't say by which token its decoder starts (decoder_start_token_id)"
            )
        first = Token(0, int(start), label_of(self.tokenizer, int(start)), "", 0, 0, True)
        rest = tokenize(self.tokenizer, target, add_special_tokens=False) if target else ()
        return tuple(replace(token, index=i) for i, token in enumerate((first, *rest)))[:limit]

    def _check_switches(self, switches: Switches) -> None:
        if switches.at_rest:
            return
        if not self.wiring.listens:
            raise ValueError(self.info.cannot["scores"])
        if self.model.config.is_encoder_decoder and (switches.ablate or switches.forbid):
            raise ValueError(self.info.cannot["ablate"])
        super()._check_switches(switches)
