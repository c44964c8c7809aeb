"""Find out how a loaded model's attention can be read: by listening to it, by its own maps, or not at all."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from attnviz.core.masks import Mask, mask_from_table
from attnviz.core.switches import Switches
from attnviz.core.trace import LayerMaps, LayerRecord, ModelInfo, Token, Trace
from attnviz.models.capture import Recorder, UnknownExtra, number_modules, recording

AGREE = 1e-3  # largest difference from the model's own maps that still counts as the same computation
AGREE_HALF = 0.02  # mean difference in half precision, where the model's own scores are rounded to 3 digits
PROBE_TOKENS = 12


@dataclass(frozen=True, eq=False)
class Wiring:
    """How to read a model's attention.

    Attributes:
        numbers: attention module -> (part, layer); `by_order`: layers share modules, so the order of calls counts.
        listens: True if q, k and v can be recorded; else only finished maps, for the `reason` given.
        layers: part -> its layer numbers; `heads`: query and key/value heads of the first of them.
        causal: part -> whether its rule hides later keys.
        scaled: True if the model divides its scores by anything.
        extras: "soft-cap", "sinks", "bias": what else enters the softmax.
    """

    numbers: Mapping[torch.nn.Module, tuple[str, int]]
    by_order: bool
    listens: bool
    reason: str
    layers: Mapping[str, tuple[int, ...]]
    heads: tuple[int, int]
    causal: Mapping[str, bool]
    scaled: bool
    extras: tuple[str, ...]


def probe(model: torch.nn.Module, title: str) -> Wiring:
    """Run a few tokens through the model, listening and with its own maps, and compare the two.

    Raises:
        ValueError: the model has no attention maps, or maps that aren't tokens by tokens.
    """
    inputs = _probe_inputs(model)
    maps = own_maps(model, inputs, title)[0]
    numbers = number_modules(model, encoder_decoder=model.config.is_encoder_decoder)
    reason = "its code doesn't go through the attention interface of transformers"
    recorder = None
    for by_order in (False, True):
        attempt = Recorder(numbers, by_order=by_order)
        try:
            with recording(attempt):
                model(**inputs)
        except UnknownExtra as error:
            reason = str(error)
            break
        if not attempt.calls:
            break
        recorder = attempt
        if len(set(attempt.calls)) == len(attempt.calls):
            break
    if recorder is not None:
        records = name_parts(recorder.records)
        half = next(model.parameters()).dtype != torch.float32
        if maps is None or _same(records, maps, half):
            return _wiring_of_records(records, numbers, recorder.by_order)
        reason = "its own maps differ from what attnviz would compute"
    if maps is None:
        raise ValueError(
            f"{title} has no attention maps: this architecture doesn't use softmax attention that can be read"
        )
    return _wiring_of_maps(maps, numbers, reason)


def own_maps(
    model: torch.nn.Module, inputs: Mapping[str, Any], title: str
) -> tuple[dict[str, dict[int, LayerMaps]] | None, Any]:
    """Return the model's own `output_attentions=True` maps by part and layer (None if it has none), and its output.

    Raises:
        ValueError: the maps aren't tokens by tokens.
    """
    before = model.config._attn_implementation
    try:
        if before != "eager":
            model.set_attn_implementation("eager")
        output = model(**inputs, output_attentions=True)
    except TypeError:  # no such argument: the architecture has no attention
        return None, None
    finally:
        if before != "eager":
            model.set_attn_implementation(before)
    names = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross"}
    if not model.config.is_encoder_decoder:
        names = {"attentions": ""}
    found = {part: output.get(name) for name, part in names.items() if output.get(name)}
    if not found:
        return None, output
    return name_parts({part: _maps_of(maps, part, inputs, title) for part, maps in found.items()}), output


def _maps_of(maps: tuple[torch.Tensor | None, ...], part: str, inputs: Mapping[str, Any], title: str) -> dict[int, Any]:
    n_inputs = inputs["input_ids"].shape[1]
    n_targets = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else n_inputs
    queries = n_inputs if part in ("", "encoder") else n_targets
    keys = n_targets if part == "decoder" else n_inputs
    layers = {}
    for layer, weights in enumerate(maps):
        if weights is None:
            continue
        if weights.shape[-2:] != (queries, keys):
            shape = " x ".join(map(str, weights.shape[-2:]))
            raise ValueError(
                f"{title} isn't supported: its maps are {shape} for {n_inputs} tokens, not tokens by tokens"
            )
        array = weights[0].detach().float().cpu().numpy()
        array.flags.writeable = False
        layers[layer] = LayerMaps(array, _seen(array))
    return layers


def _seen(weights: np.ndarray) -> Mask:
    """Return the rule that finished maps show: a cell is forbidden if it is exactly 0 in every head."""
    return mask_from_table((weights > 0).any(axis=0))


def _probe_inputs(model: torch.nn.Module) -> dict[str, Any]:
    vocabulary = int(getattr(model.config.get_text_config(), "vocab_size", 32))
    limit = position_limit(model.config)
    length = max(1, min(PROBE_TOKENS, limit))
    device = next(model.parameters()).device
    ids = torch.arange(length, device=device)[None] * 7 % max(1, vocabulary - 5) + min(4, vocabulary - 1)
    return forward_inputs(model, ids, ids[:, :4] if model.config.is_encoder_decoder else None)


def forward_inputs(model: torch.nn.Module, ids: torch.Tensor, target: torch.Tensor | None = None) -> dict[str, Any]:
    """Return keyword arguments for one pass over `ids` (1, tokens): no cache, logits of the last token only."""
    known = inspect.signature(model.forward).parameters
    inputs: dict[str, Any] = {"input_ids": ids}
    if target is not None:
        inputs["decoder_input_ids"] = target
    if "use_cache" in known:
        inputs["use_cache"] = False
    if "logits_to_keep" in known:
        inputs["logits_to_keep"] = 1
    return inputs


def position_limit(config: Any) -> int:
    """Return the most tokens a model can take by its configuration; 10^9 where there is no limit."""
    config = config.get_text_config()
    if getattr(config, "relative_attention_num_buckets", None) and config.model_type in {"t5", "mt5", "umt5", "longt5"}:
        return 10**9
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            # RoBERTa and its kin number positions from pad_token_id + 1 on
            offset = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type or config.model_type in KIN else 0
            return value - offset
    return 10**9


KIN = {"camembert", "longformer", "xmod", "data2vec-text", "ibert", "luke"}


def name_parts(by_part: dict[str, dict[int, Any]]) -> dict[str, dict[int, Any]]:
    """Return the same with the one part of ordinary models called encoder or decoder, and parts in order."""
    if list(by_part) == [""]:
        ahead = any(record.mask.looks_ahead for record in by_part[""].values())
        return {"encoder" if ahead else "decoder": dict(sorted(by_part[""].items()))}
    order = ("encoder", "decoder", "cross")
    return {part: dict(sorted(by_part[part].items())) for part in order if part in by_part}


def _same(records: dict[str, dict[int, LayerRecord]], maps: dict[str, dict[int, LayerMaps]], half: bool) -> bool:
    """Return True if the weights that follow from the records are the model's own, layer by layer."""
    for part, own in maps.items():
        ours = records.get(part, {})
        # In mixed models the n-th map is the n-th layer that has one.
        if len(ours) != len(own):
            return False
        for layer, theirs in zip(sorted(ours), sorted(own), strict=True):
            weights = bare_trace({part: {layer: ours[layer]}}).layer_weights(layer)
            if weights.shape != own[theirs].weights.shape:
                return False
            apart = np.abs(weights - own[theirs].weights)
            if (apart.mean() > AGREE_HALF) if half else (apart.max() > AGREE):
                return False
    return True


def bare_trace(records: dict[str, dict[int, Any]]) -> Trace:
    """Return a trace without tokens, to ask records for their weights."""
    part_tokens: dict[str, tuple[tuple[Token, ...], tuple[Token, ...]]] = dict.fromkeys(records, ((), ()))
    info = ModelInfo("", "", "", "", "", "", "", None, (), 0, (), 0, 0, 0, 0, False)
    return Trace("", info, records, part_tokens, Switches())


def _wiring_of_records(records: dict[str, dict[int, LayerRecord]], numbers: Any, by_order: bool) -> Wiring:
    every = [record for part in records.values() for record in part.values()]
    extras = (("soft-cap", "softcap"), ("sinks", "sinks"), ("bias", "bias"))
    return Wiring(
        numbers=numbers,
        by_order=by_order,
        listens=True,
        reason="",
        layers={part: tuple(layers) for part, layers in records.items()},
        heads=(every[0].q.shape[0], every[0].k.shape[0]),
        causal={part: not any(r.mask.looks_ahead for r in layers.values()) for part, layers in records.items()},
        scaled=any(record.scale != 1.0 for record in every),
        extras=tuple(word for word, name in extras if any(getattr(r, name) is not None for r in every)),
    )


def _wiring_of_maps(maps: dict[str, dict[int, LayerMaps]], numbers: Any, reason: str) -> Wiring:
    heads = next(iter(next(iter(maps.values())).values())).shape[0]
    return Wiring(
        numbers=numbers,
        by_order=False,
        listens=False,
        reason=reason,
        layers={part: tuple(layers) for part, layers in maps.items()},
        heads=(heads, heads),
        causal={part: not any(m.mask.looks_ahead for m in layers.values()) for part, layers in maps.items()},
        scaled=False,
        extras=(),
    )
