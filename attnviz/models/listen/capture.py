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
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from attnviz.core.attention.masks import Mask, causal_rule, full_mask, mask_from_table
from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches, allowed_cells
from attnviz.models.listen.store import Kept, Store

NAME = "attnviz"
QUERY_BLOCK = 256  # rows at a time in our own attention: bounds its memory

_recorder: ContextVar["Recorder | None"] = ContextVar("attnviz_recorder", default=None)

# Extras that attention functions are handed and that change nothing about the weights.
HARMLESS = {
    "cache_position", "cu_seq_lens_k", "cu_seq_lens_q", "deterministic", "dropout", "is_causal", "labels",
    "logits_to_keep", "max_length_k", "max_length_q", "num_items_in_batch", "output_attentions",
    "output_hidden_states", "output_router_logits", "past_key_values", "position_ids", "return_dict",
    "sliding_window", "token_type_ids", "use_cache",
}  # fmt: skip
UNDERSTOOD = {"softcap", "s_aux", "position_bias"}


class UnknownExtra(Exception):
    """A model handed its attention something that this module doesn't know how to honour."""


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

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float | None,
        extras: Mapping[str, Any],
    ) -> tuple[torch.Tensor, None]:
        """Record one layer and return its output, (1, queries, heads, d_head)."""
        check_extras(extras)
        part, layer = self._place(module)
        factor = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        own = self.wires.factors.get(module, factor)
        mask, bias = self._rule(module, query, key, attention_mask, extras)
        asked = query if own == factor else query / (own / factor)
        kept = _Layer(
            arrays=tuple(self._store.keep(tensor[0]) for tensor in (asked, key, value)),
            rest={
                "scale": own,
                "mask": mask,
                "softcap": extras.get("softcap"),
                "sinks": None if extras.get("s_aux") is None else _array(extras["s_aux"]),
                "bias": bias,
            },
        )
        self._kept.setdefault(part, {})[layer] = kept
        self.calls.append((part, layer))
        record = kept.record()
        output = self._output(module, query, key, value, attention_mask, factor, record, extras, (part, layer))
        if self.on_layer is not None:
            self.on_layer(len(self.calls))
        return output, None

    def _place(self, module: torch.nn.Module) -> tuple[str, int]:
        if module not in self.wires.numbers:
            raise UnknownExtra(f"attention came from {type(module).__name__}, which has no layer number")
        part, layer = self.wires.numbers[module]
        if self.wires.by_order:
            layer = sum(1 for name, _ in self.calls if name == part)
        return part, layer

    def _rule(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        attention_mask: torch.Tensor | None,
        extras: Mapping[str, Any],
    ) -> tuple[Mask, np.ndarray | None]:
        """Return the model's own mask of this call and what is added to its scores, each read once a pass."""
        n_queries, n_keys = query.shape[2], key.shape[2]
        bias = extras.get("position_bias")
        if bias is None and attention_mask is not None and attention_mask.dtype != torch.bool:
            bias = _bias_inside(attention_mask)
        if attention_mask is None:
            causal = n_queries > 1 and is_causal(module, extras)
            mask_key, build = id(Mask) + causal, lambda: (causal_rule if causal else full_mask)(n_queries, n_keys)
        else:
            mask_key, build = id(attention_mask), lambda: _read_mask(attention_mask, n_queries, n_keys)
        held, mask = self._masks.get(mask_key, (None, None))
        if mask is None or (mask.n_queries, mask.n_keys) != (n_queries, n_keys):
            mask = build()
            self._masks[mask_key] = (attention_mask, mask)  # keeps the tensor alive, so that its id stays its own
        if bias is None:
            return mask, None
        if id(bias) not in self._biases:
            self._biases[id(bias)] = (bias, _array(bias.expand(1, -1, n_queries, n_keys)[0]))
        return mask, self._biases[id(bias)][1]

    def _output(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        factor: float,
        record: LayerRecord,
        extras: Mapping[str, Any],
        place: tuple[str, int],
    ) -> torch.Tensor:
        part, layer = place
        switches = self.switches
        if part == "cross" and switches.causal is not None:
            switches = Switches(None, switches.scaled, switches.temperature, switches.ablate, switches.forbid)
        if not switches.scaled:
            factor /= record.scale  # also takes out what the model already put into q
        if record.softcap is None and record.sinks is None and record.bias is None:
            output = sdpa_attention_forward(
                module,
                query,
                key,
                value,
                _switched_mask(attention_mask, record, switches, layer, query.device),
                scaling=factor / switches.temperature,
                is_causal=is_causal(module, extras) and switches.causal is not False,
            )[0]
        else:
            output = _plain_attention(query, key, value, record, switches, layer, factor)
        off = [head for number, head in switches.ablate if number == layer]
        if off:
            output[:, :, off] = 0.0
        return output


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
    return recorder.attend(module, query, key, value, attention_mask, scaling, extras)


def register() -> None:
    """Make the attention implementation "attnviz" known to transformers, with the mask rule of its fused attention.

    Without a mask function of the same name transformers drops the causal mask and windows silently.
    """
    AttentionInterface.register(NAME, recorded_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def check_extras(extras: Mapping[str, Any]) -> None:
    """Raise UnknownExtra if a model hands over something that may change its weights and isn't understood here."""
    unknown = sorted(k for k, v in extras.items() if v is not None and k not in HARMLESS | UNDERSTOOD)
    if unknown:
        raise UnknownExtra(f"the model's attention takes {', '.join(unknown)}, which attnviz doesn't know")


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


def is_causal(module: torch.nn.Module, extras: Mapping[str, Any]) -> bool:
    """Return True if a pass without a mask hides later keys, as transformers' own attention reads it."""
    told = extras.get("is_causal")
    return bool(told if told is not None else getattr(module, "is_causal", True))


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


def _switched_mask(
    attention_mask: torch.Tensor | None, record: LayerRecord, switches: Switches, layer: int, device: torch.device
) -> torch.Tensor | None:
    """Return the mask to compute with: the model's own object unless a switch changes it."""
    forbids = any(number in (None, layer) for number, *_ in switches.forbid)
    if switches.causal is None and not forbids:
        return attention_mask
    return torch.from_numpy(_allowed_table(record, switches, layer)).to(device)[None]  # (1, 1 or heads, q, k)


def _allowed_table(record: LayerRecord, switches: Switches, layer: int) -> np.ndarray:
    heads, n_queries, n_keys = record.shape
    rows, columns = np.arange(n_queries), np.arange(n_keys)
    per_head = any(number in (None, layer) and head is not None for number, head, *_ in switches.forbid)
    return np.stack(
        [allowed_cells(record.mask, switches, layer, h, rows, columns) for h in range(heads if per_head else 1)]
    )


def _plain_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    record: LayerRecord,
    switches: Switches,
    layer: int,
    factor: float,
) -> torch.Tensor:
    """Return attention with soft-cap, sinks or a bias: (1, queries, heads, d_head).

    It is computed in float32 and by blocks of queries, as the model's own eager attention does. A sink is one more
    logit a row: it takes its share of the weight and writes nothing.
    """
    groups = query.shape[1] // key.shape[1]
    k, v = repeat_kv(key, groups).float(), repeat_kv(value, groups).float()
    table = torch.from_numpy(_allowed_table(record, switches, layer)).to(query.device)  # (1 or heads, q, k)
    outputs = []
    for start in range(0, query.shape[2], QUERY_BLOCK):
        block = slice(start, start + QUERY_BLOCK)
        scores = query[:, :, block].float() @ k.transpose(-1, -2) * factor  # (1, heads, block, keys)
        if record.softcap is not None:
            scores = record.softcap * torch.tanh(scores / record.softcap)
        if record.bias is not None:
            scores = scores + torch.from_numpy(np.array(record.bias[:, block])).to(scores.device)
        scores = scores.masked_fill(~table[:, block], float("-inf"))
        if record.sinks is not None:
            sinks = torch.from_numpy(np.array(record.sinks)).to(scores.device).view(1, -1, 1, 1)
            scores = torch.cat([scores, sinks.expand(1, -1, scores.shape[2], 1)], dim=-1)
        weights = torch.softmax(scores / switches.temperature, dim=-1)[..., : k.shape[2]]
        outputs.append(weights @ v)
    return torch.cat(outputs, dim=2).transpose(1, 2).contiguous().to(query.dtype)
