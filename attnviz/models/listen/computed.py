"""The output of one call of attention under switches: fused where it can be, else in float32. Uses torch."""

from dataclasses import replace

import numpy as np
import torch
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches, allowed_table
from attnviz.models.listen.call import Call

QUERY_BLOCK = 256  # rows at a time in our own attention: bounds its memory


def output_of(call: Call, record: LayerRecord, switches: Switches, place: tuple[str, int]) -> torch.Tensor:
    """Return (1, queries, heads, d_head), what attention gives under switches.

    Args:
        call: of the model.
        record: what was read off it: the model's own factor, its rule, soft-cap, sinks and bias.
        switches: act inside the pass.
        place: part and number of the layer.
    """
    part, layer = place
    if part == "cross" and switches.causal is not None:
        switches = replace(switches, causal=None)
    factor = call.factor if switches.scaled else call.factor / record.scale  # takes out what is in q already, too
    if record.softcap is None and record.sinks is None and record.bias is None:
        output = _fused(call, record, switches, layer, factor)
    else:
        output = _plain(call, record, switches, layer, factor)
    off = [head for number, head in switches.ablate if number == layer]
    if off:
        output[:, :, off] = 0.0
    return output


def _fused(call: Call, record: LayerRecord, switches: Switches, layer: int, factor: float) -> torch.Tensor:
    """Return fused attention, with the model's own mask unless a switch changes it."""
    mask = call.mask
    if switches.causal is not None or any(number in (None, layer) for number, *_ in switches.forbid):
        mask = _table(record, switches, layer).to(call.query.device)[None]  # (1, 1 or heads, queries, keys)
    scaling = factor / switches.temperature
    causal = call.causal and switches.causal is not False
    return sdpa_attention_forward(
        call.module, call.query, call.key, call.value, mask, scaling=scaling, is_causal=causal
    )[0]


def _plain(call: Call, record: LayerRecord, switches: Switches, layer: int, factor: float) -> torch.Tensor:
    """Return attention with soft-cap, sinks or a bias.

    It is computed in float32 and by blocks of queries, as the model's own eager attention does. A sink is one more
    logit a row: it takes its share of the weight and writes nothing.
    """
    query = call.query
    groups = query.shape[1] // call.key.shape[1]
    k, v = (repeat_kv(tensor, groups).float() for tensor in (call.key, call.value))
    table = _table(record, switches, layer).to(query.device)  # (1 or heads, queries, keys)
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


def _table(record: LayerRecord, switches: Switches, layer: int) -> torch.Tensor:
    n_heads, n_queries, n_keys = record.shape
    cells = allowed_table(record.mask, switches, layer, range(n_heads), np.arange(n_queries), np.arange(n_keys))
    return torch.from_numpy(cells)
