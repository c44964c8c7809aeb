"""Find out how a loaded model's attention can be read: by listening to it, by its own maps, or not at all."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from attnviz.core.attention.masks import Mask, mask_from_table
from attnviz.core.trace.records import LayerMaps, LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.models.listen.call import UnknownExtra
from attnviz.models.listen.capture import Recorder, Wires, number_modules, recording
from attnviz.models.listen.factor import FactorRecorder, projections
from attnviz.models.listen.feed import Feed, learned_positions, position_limit, what_else_it_takes
from attnviz.models.listen.wiring import Wiring
from attnviz.models.texts import first_line

AGREE = 1e-3  # largest difference from the model's own maps that still counts as the same computation
AGREE_HALF = 0.02  # mean difference in half precision, where the model's own scores are rounded to 3 digits
ROUNDED = 0.02  # by so much a row of weights may exceed 1 in half precision
PROBE_TOKENS = 12
COST = 6e10  # weights times tokens that a try at a length may run over: about a second on two cores
MOST_TRIED = 1024  # tokens; attention grows with their square, and tables of positions are hardly ever longer
FEWER = 8  # tokens by which a limit may turn out to be too high
PROBE_TARGETS = 4  # of a decoder beside an encoder
FEEDS = (Feed(), Feed(last=False), Feed(mask=True), Feed(mask=True, last=False))

Maps = dict[str, dict[int, LayerMaps]]
Records = dict[str, dict[int, LayerRecord]]


class NoMaps(ValueError):
    """The architecture has no attention that could be shown, however it is run."""


def probe(model: torch.nn.Module, title: str) -> Wiring:
    """Run a few tokens through the model, listening and with its own maps, and compare the two.

    Raises:
        ValueError: the model reads no text, has no attention maps, or maps that aren't tokens by tokens.
    """
    feed, maps, limit = _own_maps_of_a_few(model, title)
    numbers = number_modules(model, encoder_decoder=model.config.is_encoder_decoder)
    recorder, reason = _listen(model, feed, numbers)
    if recorder is not None and not _has_all_rows(recorder, probe_ids(model).shape[1]):
        feed = replace(feed, last=False)  # Gemma 4 skips rows whose logits nobody wants, unless its maps are asked for
        recorder, reason = _listen(model, feed, numbers)
    if recorder is not None:
        records = name_parts(recorder.records)
        reason = "" if maps is None else _difference(records, maps, next(model.parameters()).dtype != torch.float32)
        if not reason:
            wires = Wires(numbers, recorder.wires.by_order, recorder.factors)
            return _wiring_of_records(records, wires, feed, limit)
    if maps is None:
        raise NoMaps(f"{title} has no attention maps: this architecture doesn't use softmax attention that can be read")
    return _wiring_of_maps(maps, feed, limit, reason)


def probe_ids(model: torch.nn.Module, n_tokens: int = PROBE_TOKENS) -> torch.Tensor:
    """Return (1, tokens) different ids, as many as asked for or as the model takes."""
    vocabulary = int(getattr(model.config.get_text_config(), "vocab_size", 32))
    length = max(1, min(n_tokens, position_limit(model.config)))
    places = torch.arange(length, device=next(model.parameters()).device)[None]
    return places * 7 % max(1, vocabulary - 5) + min(4, vocabulary - 1)


def _own_maps_of_a_few(model: torch.nn.Module, title: str) -> tuple[Feed, Maps | None, int]:
    """Return how to feed the model, the maps it gives for a few tokens, and how many its tables of positions hold."""
    first: Exception | None = None
    for feed in FEEDS:
        ids = probe_ids(model)
        target = ids[:, :PROBE_TARGETS] if model.config.is_encoder_decoder else None
        try:
            with learned_positions(model, ids.shape[1]) as held:
                maps = own_maps(model, feed.inputs(model, ids, target), title)[0]
            return feed, maps, _reach(model, feed, min([*held, position_limit(model.config)]))
        except Exception as error:  # what a model lacks shows as an error of any kind, deep inside it
            first = first or error
    if isinstance(first, ValueError) and title in str(first):
        raise first
    also = what_else_it_takes(model)
    why = f"it takes {also} beside it" if also else first_line(first)
    raise ValueError(f"{title} can't run on text alone: {why}") from first


def _reach(model: torch.nn.Module, feed: Feed, limit: int) -> int:
    """Return how many tokens the model runs over, the limit or a few less, where trying it takes about a second.

    Not every architecture looks positions up in a table that can be seen, and some begin to count elsewhere.
    """
    n_weights = sum(weight.numel() for weight in model.parameters())
    if limit > MOST_TRIED or limit * n_weights > COST or model.config.is_encoder_decoder:
        return limit
    for n_tokens in range(limit, max(0, limit - FEWER), -1):
        try:
            model(**feed.inputs(model, probe_ids(model, n_tokens)))
            return n_tokens
        except (IndexError, RuntimeError):
            continue
    return limit


def _listen(model: torch.nn.Module, feed: Feed, numbers: Any) -> tuple[FactorRecorder | None, str]:
    """Return what was recorded of a few tokens, or None and why nothing was."""
    recorder = None
    ids = probe_ids(model)
    inputs = feed.inputs(model, ids, ids[:, :PROBE_TARGETS] if model.config.is_encoder_decoder else None)
    for by_order in (False, True):
        with projections(model) as projected:
            attempt = FactorRecorder(Wires(numbers, by_order), projected)
            try:
                with recording(attempt):
                    model(**inputs)
            except UnknownExtra as error:
                return None, str(error)
            except Exception as error:  # arrays of another form than our attention knows, found out anywhere in it
                return None, f"its attention can't be recorded: {first_line(error)}"
        if not attempt.calls:
            break
        recorder = attempt
        if len(set(attempt.calls)) == len(attempt.calls):
            break
    return recorder, "its code doesn't go through the attention interface of transformers"


def _has_all_rows(recorder: Recorder, n_tokens: int) -> bool:
    every = [record for part in recorder.records.values() for record in part.values()]
    return all(record.shape[1] in (n_tokens, PROBE_TARGETS) for record in every)


def own_maps(model: torch.nn.Module, inputs: Mapping[str, Any], title: str) -> tuple[Maps | None, Any]:
    """Return the model's own `output_attentions=True` maps by part and layer (None if it has none), and its output.

    Raises:
        ValueError: the maps aren't tokens by tokens, or not finite.
    """
    before = model.config._attn_implementation
    try:
        if before != "eager":
            model.set_attn_implementation("eager")
        output = model(**inputs, output_attentions=True)
    except TypeError as error:
        if "output_attentions" not in str(error):
            raise
        return None, None  # no such argument: the architecture has no attention
    finally:
        if before != "eager":
            model.set_attn_implementation(before)
    names = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross"}
    if not model.config.is_encoder_decoder:
        names = {"attentions": ""}
    found = {part: output.get(name) for name, part in names.items() if output.get(name)}
    maps = {part: _maps_of(layers, part, inputs, title) for part, layers in found.items()}
    maps = {part: layers for part, layers in maps.items() if layers}
    return (name_parts(maps) if maps else None), output


def _maps_of(maps: tuple[torch.Tensor | None, ...], part: str, inputs: Mapping[str, Any], title: str) -> dict[int, Any]:
    n_inputs = inputs["input_ids"].shape[1]
    n_targets = inputs["decoder_input_ids"].shape[1] if "decoder_input_ids" in inputs else n_inputs
    queries = n_inputs if part in ("", "encoder") else n_targets
    keys = n_targets if part == "decoder" else n_inputs
    layers = {}
    for layer, weights in enumerate(maps):
        if weights is None:
            continue
        if not isinstance(weights, torch.Tensor):
            raise ValueError(f"{title} isn't supported: it gives its maps as {type(weights).__name__}, not as arrays")
        if weights.shape[-2:] != (queries, keys) or weights.dim() != 4:
            shape = " x ".join(map(str, weights.shape[1:]))
            raise ValueError(
                f"{title} isn't supported: its maps are {shape} for {n_inputs} tokens, not heads by tokens by tokens"
            )
        array = weights[0].detach().float().cpu().numpy()
        if not np.isfinite(array).all():
            raise ValueError(
                f"{title} can't be shown: layer {layer} gives weights that aren't finite numbers in {weights.dtype}"
            )
        if array.min() < 0 or array.sum(axis=-1).max() > 1 + ROUNDED:
            raise ValueError(
                f"{title} isn't supported: what it gives as maps are no weights, since rows sum to more than 1"
            )
        array.flags.writeable = False
        layers[layer] = LayerMaps(array, _seen(array))
    return layers


def _seen(weights: np.ndarray) -> Mask:
    """Return the rule that finished maps show: a cell is forbidden if it is exactly 0 in every head."""
    return mask_from_table(np.any(weights > 0, axis=0))


def name_parts(by_part: dict[str, dict[int, Any]]) -> dict[str, dict[int, Any]]:
    """Return the same with the one part of ordinary models called encoder or decoder, and parts in order."""
    if list(by_part) == [""]:
        ahead = any(record.mask.looks_ahead for record in by_part[""].values())
        return {"encoder" if ahead else "decoder": dict(sorted(by_part[""].items()))}
    order = ("encoder", "decoder", "cross")
    return {part: dict(sorted(by_part[part].items())) for part in order if part in by_part}


def _difference(records: Records, maps: Maps, half: bool) -> str:
    """Return how the weights that follow from the records differ from the model's own, empty if they don't."""
    for part, own in maps.items():
        ours = records.get(part, {}) if len(maps) > 1 else next(iter(records.values()))
        # In mixed models the n-th map is the n-th layer that has one.
        if len(ours) != len(own):
            return f"it gives maps of {len(own)} layers, and {len(ours)} layers could be recorded"
        for layer, theirs in zip(sorted(ours), sorted(own), strict=True):
            weights = bare_trace({"": {layer: ours[layer]}}).layer_weights(layer)
            if weights.shape != own[theirs].weights.shape:
                return f"its own maps are {own[theirs].weights.shape}, and what was recorded gives {weights.shape}"
            apart = np.abs(weights - own[theirs].weights)
            if not ((apart.mean() <= AGREE_HALF) if half else (apart.max() <= AGREE)):
                return f"its own maps differ by up to {apart.max():.2g} from what attnviz would compute"
    return ""


def bare_trace(records: Mapping[str, Mapping[int, Any]]) -> Trace:
    """Return a trace without tokens, to ask records for their weights."""
    part_tokens: dict[str, tuple[tuple[Token, ...], tuple[Token, ...]]] = dict.fromkeys(records, ((), ()))
    info = ModelInfo("", "", "", "", "", "", "", None, (), 0, (), 0, 0, 0, 0, False)
    return Trace("", info, records, part_tokens, Switches())


def _wiring_of_records(records: Records, wires: Wires, feed: Feed, limit: int) -> Wiring:
    firsts = {part: next(iter(layers.values())) for part, layers in records.items()}
    every = [record for part in records.values() for record in part.values()]
    extras = (("soft-cap", "softcap"), ("sinks", "sinks"), ("bias", "bias"))
    return Wiring(
        wires=wires,
        feed=feed,
        listens=True,
        reason="",
        layers={part: tuple(layers) for part, layers in records.items()},
        heads={part: (first.q.shape[0], first.k.shape[0]) for part, first in firsts.items()},
        causal={part: not any(r.mask.looks_ahead for r in layers.values()) for part, layers in records.items()},
        scaled=bool(wires.factors) or any(record.scale != 1.0 for record in every),
        extras=tuple(word for word, name in extras if any(getattr(r, name) is not None for r in every)),
        limit=limit,
    )


def _wiring_of_maps(maps: Maps, feed: Feed, limit: int, reason: str) -> Wiring:
    return Wiring(
        wires=Wires({}),
        feed=feed,
        listens=False,
        reason=reason,
        layers={part: tuple(layers) for part, layers in maps.items()},
        heads={part: (next(iter(layers.values())).shape[0],) * 2 for part, layers in maps.items()},
        causal={part: not any(m.mask.looks_ahead for m in layers.values()) for part, layers in maps.items()},
        scaled=False,
        extras=(),
        limit=limit,
    )
