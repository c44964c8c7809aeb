"""Any model of transformers at small size, with random weights: its configuration, shrunk by the names of its settings.

`small.toml` holds the small numbers, and what single architectures need beyond them.
"""

import copy
import dataclasses
import importlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SETTINGS = tomllib.loads(Path(__file__).with_name("small.toml").read_text(encoding="utf-8"))
SIZES = {name: int(size) for size, names in SETTINGS["sizes"].items() for name in names.split()}
IDS = SETTINGS["ids"]
MOST_PARAMETERS = 20_000_000
MOST_LAYERS = 8
SHARP = 12.0  # as in tests.tiny: random weights give nearly flat maps
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
DERIVED = {"architectures", "dtype", "id2label", "label2id", "model_type", "num_labels", "rope_scaling"}
DERIVED |= {"transformers_version"}

# kind -> the table of transformers that says which class a configuration has for it
TABLES = {
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "seq2seq": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "image-text": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    "multimodal": modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    "speech": modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    "ctc": modeling_auto.MODEL_FOR_CTC_MAPPING_NAMES,
    "image": modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    "audio": modeling_auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
    "detection": modeling_auto.MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES,
    "base": modeling_auto.MODEL_MAPPING_NAMES,
}

_QUERY_OR_KEY = re.compile(
    r"(^|[._])(q|k|wq|wk|query|key|q_lin|k_lin|qkv|Wqkv|c_attn|query_key_value|in_proj_qkv|(q|k|qkv|query|key|att)_proj"
    r"|(q|kv)_[ab]_proj|kv_a_proj_with_mqa|(query|key)_global|linear_[qk]|to_[qk]|W_pack|qkv_linear|in_proj)\.weight$"
    r"|rel_attn\.[qk]$"
)
_NORM = re.compile(r"(^|[._])(q|k|query|key)_?(layer)?_?norm\.weight$")


class CannotBuild(Exception):
    """There is no small model of that kind here; the message says why."""


def kinds_of(model_type: str) -> dict[str, str]:
    """Return kind -> class name: every head of a configuration that `TABLES` name, or else its bare model."""
    found: dict[str, str] = {}
    for kind, table in TABLES.items():
        name = table.get(model_type)
        name = name[0] if isinstance(name, tuple | list) else name
        if name and name not in found.values() and not (found and kind in ("multimodal", "base")):
            found[kind] = name
    if not found and (part := _part(model_type)):
        found["part"] = part
    return found


def _part(model_type: str) -> str | None:
    """Return a class of a configuration without a place in `TABLES`, as parts of other models have, if there is one."""
    config = CONFIG_MAPPING[model_type]
    try:
        module = importlib.import_module(config.__module__.replace("configuration_", "modeling_"))
    except ImportError:
        return None
    own = [name for name, kind in vars(module).items() if getattr(kind, "config_class", None) is config]
    known = [name for name in own if hasattr(transformers, name) and not name.endswith("PreTrainedModel")]
    return known[0] if known else None


def small_model(model_type: str, class_name: str, *, seed: int = 0) -> Any:
    """Return a small model of that configuration and class, in eval mode, the same for the same seed.

    Raises:
        CannotBuild: the reason in a line.
    """
    config = small_config(model_type, class_name)
    try:
        kind = getattr(transformers, class_name)
        text = config.get_text_config(decoder=True)
        if kind.config_class is not type(config) and isinstance(text, kind.config_class):
            config = text  # as the auto classes do
        n_parameters = _count(kind, config)
        if n_parameters > MOST_PARAMETERS:
            raise CannotBuild(f"{n_parameters / 1e6:.0f} million parameters are left at small size")
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = kind(config)
            _clear(model, SETTINGS["sharpness"].get(model_type, SHARP))
    except Exception as error:  # transformers raises all sorts of errors
        raise error if isinstance(error, CannotBuild) else CannotBuild(_line(error)) from error
    return model.eval()


def small_config(model_type: str, class_name: str = "") -> Any:
    """Return a small configuration of that type, as a model of that class needs it."""
    try:
        config = shrunk(CONFIG_MAPPING[model_type](**SETTINGS["from"].get(model_type, {})))
    except Exception as error:
        raise CannotBuild(_line(error)) from error
    encoder = model_type in TABLES["masked"] and class_name == TABLES["causal"].get(model_type)
    if encoder and not config.is_encoder_decoder:
        config.is_decoder = True  # else it would be an encoder with the head of a decoder
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = IDS["decoder_start_token_id"]
    return config


def shrunk(config: Any, extra: Mapping[str, Any] | None = None) -> Any:
    """Return a configuration of the same class with small numbers; `extra` settings win, by sub-configuration."""
    extra = copy.deepcopy(SETTINGS["architectures"].get(config.model_type, {}) | (extra or {}))
    fields = {f.name: f.default for f in dataclasses.fields(config)}
    now = {name: value for name, value in vars(config).items() if name in fields or name in IDS}
    now = {name: value for name, value in now.items() if not name.startswith("_") and name not in DERIVED}
    own = config.to_diff_dict()
    filled = _filled_in(config, fields)
    settings = {}
    for name, value in now.items():
        if isinstance(value, transformers.PreTrainedConfig):
            settings[name] = shrunk(value, extra.pop(name, None))
        else:
            small = small_value(name, value, now)
            if (small is not value or name in own) and name not in filled:
                settings[name] = small
    settings |= _by_layer(now, fields, extra)
    settings = {name: value for name, value in (settings | extra).items() if value != "derived"}
    return type(config)(**settings)


def small_value(name: str, value: Any, among: Mapping[str, Any]) -> Any:
    """Return a small number for a setting, or the value itself if it may stay."""
    if isinstance(value, bool):
        return value
    if value is None:
        return SETTINGS["filled"].get(name)
    if name in IDS:
        return IDS[name]
    if name.endswith(("_token_id", "_token_index")) and isinstance(value, int):
        others = sorted(k for k in among if k.endswith(("_token_id", "_token_index")) and k not in IDS)
        return 91 + others.index(name) % 6  # no words have these ids
    if name == "rope_parameters" and isinstance(value, dict):
        return _small_rope(value)
    if name in SETTINGS["lists"] and isinstance(value, list | tuple) and all(isinstance(each, int) for each in value):
        return type(value)(min(each, SETTINGS["lists"][name]) for each in value)
    if name == "num_key_value_heads" and value == among.get("num_attention_heads"):
        name = "num_attention_heads"  # some architectures share no keys
    if name in SIZES and isinstance(value, int) and value > SIZES[name]:
        return SIZES[name]
    return value


def _filled_in(config: Any, fields: Mapping[str, Any]) -> set[str]:
    """Return the names of settings that were left out and follow from others, as small ones will from small ones."""
    try:
        fresh = vars(type(config)())
    except Exception:  # some configurations can't be made from nothing
        return set()
    names = {name for name, default in fields.items() if default is None and name not in IDS and name in fresh}
    names -= {
        name
        for name in names
        if isinstance(fresh[name], dict | transformers.PreTrainedConfig) or name in SETTINGS["lists"]
    }
    return {n for n in names if fresh[n] is not None and fresh[n] == vars(config)[n]}


def _by_layer(now: Mapping[str, Any], fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of layers, enough to have one of each type, and what is listed by layer cut to it."""
    depth = next((name for name in DEPTHS if isinstance(now.get(name), int)), None)
    if depth is None:
        return {}
    lists = {k: v for k, v in now.items() if isinstance(v, list | tuple) and len(v) == now[depth]}
    layers = min(now[depth], extra.get(depth) or _depth(lists))
    lists = {k: type(v)(v[:layers]) if fields.get(k) is not None else "derived" for k, v in lists.items()}
    return lists | {depth: layers}


def _depth(lists: Mapping[str, Any]) -> int:
    types = [v for k, v in lists.items() if k.endswith(("layer_types", "block_type"))]
    return min(MOST_LAYERS, max([2, *(v.index(each) + 1 for v in types for each in v)]))


def _small_rope(rope: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _small_rope(v) if isinstance(v, dict) else SETTINGS["rope"].get(k, v) for k, v in rope.items()}


def _count(kind: Any, config: Any) -> int:
    """Return the number of parameters, found without memory for them; 0 where that can't be done."""
    try:
        with torch.device("meta"):
            return sum(p.numel() for p in kind(copy.deepcopy(config)).parameters())
    except Exception:
        return 0


@torch.no_grad()
def _clear(model: Any, factor: float) -> None:
    """Make maps clear, and nothing constant: biases of 0 and norms of 1 would hide that they were forgotten."""
    for name, weight in model.named_parameters():
        if _QUERY_OR_KEY.search(name) and weight.dim() > 1:
            weight.mul_(factor)
        elif _NORM.search(name):
            weight.fill_(min(2.0, factor))
        elif weight.is_floating_point() and weight.numel() > 1 and (weight == weight.flatten()[0]).all():
            weight.add_(torch.randn_like(weight) * 0.1 * (weight.flatten()[0].abs() or 1.0))


def _line(error: BaseException) -> str:
    missing = re.search(r"requires the (\w+) library", str(error)) or re.search(r"No module named '(\w+)'", str(error))
    if missing:
        return f"it needs {missing[1]}, which isn't installed"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    line = lines[1] if "validation error" in lines[0] and len(lines) > 1 else f"{type(error).__name__}: {lines[0]}"
    return line[:160]
