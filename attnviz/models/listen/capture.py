"""Listen to a model's attention: a registered attention function that keeps q, k, v and acts on switches.

transformers calls a registered function in place of its own attention. Ours computes the same output with fused
attention and leaves what it saw with the `Recorder` of the running pass, which a ContextVar holds, so that two passes
in two threads never meet. Outside a pass it is plain fused attention.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from attnviz.core.attention.masks import Mask, causal_rule, full_mask, mask_from_table
from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches
from attnviz.models.listen.call import Call, UnknownExtra
from attnviz.models.listen.computed import output_of
from attnviz.models.listen.store import Kept, Store

NAME = "attnviz"

_recorder: ContextVar["Recorder | None"] = ContextVar("attnviz_recorder", default=None)


@dataclass(frozen=True, eq=False)
class Wires:
    """How the attention modules of a model are told apart.

    Attributes:
        numbers: module -> (part, layer).
        by_order: layers share modules, so that the n-th call of a part is layer n.
        factors: module -> the model's own factor in front of q k^T, where q or k carry it when they come in.
    """

    numbers: Mapping[torch.nn.Module, tuple[str, int]]
    by_order: bool = False
    factors: Mapping[torch.nn.Module, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Layer:
    """A `LayerRecord` to be: q, k and v in the store, and the rest."""

    arrays: tuple[Kept, ...]
    rest: Mapping[str, Any]

    def record(self) -> LayerRecord:
        """Return it, without a copy."""
        q, k, v = (kept.array() for kept in self.arrays)
        return LayerRecord(q, k, v, **self.rest)


class Recorder:
    """What one forward pass leaves behind: a `LayerRecord` for each (part, layer), under `switches`.

    Args:
        wires: how modules are told apart.
        switches: act inside the pass.
        on_layer: called with the number of finished layers; what it raises ends the pass.
        store: where arrays are kept; None: in one of its own.
    """

    def __init__(
        self,
        wires: Wires,
        *,
        switches: Switches | None = None,
        on_layer: Callable[[int], None] | None = None,
        store: Store | None = None,
    ) -> None:
        self.wires = wires
        self.switches = switches or Switches()
        self.on_layer = on_layer
        self.calls: list[tuple[str, int]] = []
        self._kept: dict[str, dict[int, _Layer]] = {}
        self._store = store or Store()
        self._masks: dict[int, tuple[Any, Mask]] = {}
        self._biases: dict[int, tuple[Any, np.ndarray]] = {}

    @property
    def records(self) -> dict[str, dict[int, LayerRecord]]:
        """Part -> layer -> what the pass left behind."""
        return {part: {layer: kept.record() for layer, kept in layers.items()} for part, layers in self._kept.items()}

    def attend(self, call: Call) -> torch.Tensor:
        """Record one layer and return its output, (1, queries, heads, d_head)."""
        place = self._place(call.module)
        record = self._keep(call, *place)
        self.calls.append(place)
        output = output_of(call, record, self.switches, place)
        if self.on_layer is not None:
            self.on_layer(len(self.calls))
        return output

    def _keep(self, call: Call, part: str, layer: int) -> LayerRecord:
        """Keep what a layer's attention is computed from, and return it."""
        arrays = tuple(self._store.keep(tensor[0]) for tensor in (self._asked(call), call.key, call.value))
        kept = _Layer(arrays, self._rest(call))
        self._kept.setdefault(part, {})[layer] = kept
        return kept.record()

    def _asked(self, call: Call) -> torch.Tensor:
        """Return the queries without the part of the model's own factor that they carry when they come in."""
        own = self._own_factor(call)
        return call.query if own == call.factor else call.query / (own / call.factor)

    def _own_factor(self, call: Call) -> float:
        return self.wires.factors.get(call.module, call.factor)

    def _rest(self, call: Call) -> dict[str, Any]:
        """Return what a `LayerRecord` holds beside q, k and v."""
        mask, bias = self._rule(call)
        sinks = call.extras.get("s_aux")
        return {
            "scale": self._own_factor(call),
            "mask": mask,
            "softcap": call.extras.get("softcap"),
            "sinks": None if sinks is None else _array(sinks),
            "bias": bias,
        }

    def _place(self, module: torch.nn.Module) -> tuple[str, int]:
        if module not in self.wires.numbers:
            raise UnknownExtra(f"attention came from {type(module).__name__}, which has no layer number")
        part, layer = self.wires.numbers[module]
        if self.wires.by_order:
            layer = sum(1 for name, _ in self.calls if name == part)
        return part, layer

    def _rule(self, call: Call) -> tuple[Mask, np.ndarray | None]:
        """Return the model's own mask of this call and what is added to its scores, each read once a pass."""
        tensor, bias = call.mask, call.extras.get("position_bias")
        if bias is None and tensor is not None and tensor.dtype != torch.bool:
            bias = _bias_inside(tensor)
        causal = call.size[0] > 1 and call.causal
        mask_key = id(Mask) + causal if tensor is None else id(tensor)
        mask = self._masks.get(mask_key, (None, None))[1]
        if mask is None or (mask.n_queries, mask.n_keys) != call.size:
            mask = (
                (causal_rule if causal else full_mask)(*call.size) if tensor is None else _read_mask(tensor, *call.size)
            )
            self._masks[mask_key] = (tensor, mask)  # keeps the tensor alive, so that its id stays its own
        if bias is None:
            return mask, None
        if id(bias) not in self._biases:
            self._biases[id(bias)] = (bias, _array(bias.expand(1, -1, *call.size)[0]))
        return mask, self._biases[id(bias)][1]


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Let `recorder` see the attention of every forward pass of this thread inside the block."""
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def recorded_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **extras: Any,
) -> tuple[torch.Tensor, None]:
    """Be the attention of a transformers model: record if a pass is being recorded, else compute alone."""
    recorder = _recorder.get()
    if recorder is None:
        recorder = Recorder(Wires({module: ("", 0)}))
    return recorder.attend(Call(module, query, key, value, attention_mask, scaling, extras)), None


def register() -> None:
    """Make the attention implementation "attnviz" known to transformers, with the mask rule of its fused attention.

    Without a mask function of the same name transformers drops the causal mask and windows silently.
    """
    AttentionInterface.register(NAME, recorded_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def number_modules(model: torch.nn.Module, *, encoder_decoder: bool) -> dict[torch.nn.Module, tuple[str, int]]:
    """Return module -> (part, layer) for everything that could be an attention module.

    The layer is the first number in the module's path (`model.layers.3.self_attn`), the part what the path says.
    """
    numbers = {}
    for path, module in model.named_modules():
        found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", path)
        if found:
            numbers[module] = (_part_of(path) if encoder_decoder else "", int(found[1]))
    return numbers


def _part_of(path: str) -> str:
    """Return the part of an encoder-decoder model that a module belongs to.

    >>> [_part_of(path) for path in ("encoder.0.self", "decoder.bert.encoder.0.self", "decoder.0.crossattention.self")]
    ['encoder', 'decoder', 'cross']
    """
    names = path.lower().split(".")
    if any("cross" in name or "encdec" in name or name == "encoder_attn" for name in names):
        return "cross"
    return next((name for name in names if name in ("encoder", "decoder")), "decoder")


def _array(tensor: torch.Tensor) -> np.ndarray:
    array = tensor.detach().to("cpu", torch.float32).numpy().view()
    array.flags.writeable = False
    return array


def _read_mask(mask: torch.Tensor, n_queries: int, n_keys: int) -> Mask:
    """Return the rule in a mask of (1, 1 or heads, queries or 1, keys or 1), which is the same for all heads."""
    table = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    if table.dim() != 4 or table.shape[0] != 1:
        raise UnknownExtra(f"the model's mask has the shape {tuple(mask.shape)}, not (1, 1 or heads, queries, keys)")
    if bool((table != table[:, :1]).any()):
        raise UnknownExtra("the model's mask differs from head to head")
    return mask_from_table(table[0, 0].expand(n_queries, n_keys).cpu().numpy())


def _bias_inside(mask: torch.Tensor) -> torch.Tensor | None:
    """Return what a float mask adds to allowed scores, or None if it only allows and forbids."""
    added = torch.where(mask > torch.finfo(mask.dtype).min / 2, mask, torch.zeros_like(mask))
    return added if bool((added != 0).any()) else None
