"""What a GGUF file says of its model, against the configuration that transformers made of it.

transformers takes over some settings and drops the others without a word, among them how the angles of the positions
are scaled. Each setting here is compared, translated, known to change nothing, or refused by its name.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.models.load.gguf_header import Header

ROPE_FACTORS = "rope_freqs.weight"
_FIT = 1e-5  # relative difference at which factors count as those of a formula
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3_LENGTH = 8192

# another size than the arrays' would not load, or it says nothing about numbers
_SAFE = {
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
    "expert_feed_forward_length", "expert_shared_feed_forward_length", "shortconv.l_cache", "tensor_data_layout",
    "pooling_type", "rope.dimension_sections", "rope.scaling.finetuned", "full_attention_interval",
    "nextn_predict_layers", "ssm.conv_kernel", "ssm.state_size", "ssm.inner_size", "ssm.time_step_rank",
    "ssm.group_count",
}  # fmt: skip
# setting -> where transformers keeps the same
_SAME = {
    "attention.head_count": ("num_attention_heads", "n_head", "num_heads"),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps", "norm_eps", "layer_norm_epsilon"),
    "attention.layer_norm_epsilon": ("layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps"),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "use_parallel_residual": ("use_parallel_residual",),
    "expert_count": ("num_experts", "num_local_experts"),
    "expert_used_count": ("num_experts_per_tok",),
}
_NEUTRAL = {"attention.causal": (True,), "logit_scale": (0.0, 1.0), "residual_scale": (0.0, 1.0)}
_NEUTRAL |= {"embedding_scale": (0.0, 1.0), "expert_weights_scale": (0.0, 1.0), "expert_gating_func": (0, 1)}
_WINDOWED = ("mistral", "phi3", "starcoder2")  # each layer of these has the window of its configuration
# a file doesn't say by what these divide their scores: by the root of d_head, the largest by that of d_model / heads
_LARGEST = {"gemma2": 46, "gemma3_text": 62}  # layers
_SCALING = "rope.scaling."
_TRANSLATED = {f"{_SCALING}{name}" for name in ("type", "factor", "original_context_length")} | {"rope.scale_linear"}
_OF_YARN = {f"{_SCALING}yarn_beta_fast": "beta_fast", f"{_SCALING}yarn_beta_slow": "beta_slow"}
_ONE = {f"{_SCALING}{name}" for name in ("attn_factor", "yarn_attn_factor", "yarn_ext_factor")}


def check_settings(header: Header, config: Any, name: str) -> None:
    """Raise ValueError for a setting that changes numbers and isn't in the configuration, by its name.

    Args:
        header: of the file.
        config: what transformers made of it.
        name: of the file.
    """
    begin = f"{header.architecture}."
    for key, value in header.settings.items():
        setting = key.removeprefix(begin)
        if setting == key or setting in _SAFE or setting in _TRANSLATED or setting in _OF_YARN:
            continue
        expected = _expected(setting, config, header)
        if not any(_equal(value, each) for each in expected):
            told = f", where transformers makes {expected[0]} of it" if setting in _SAME else ""
            raise ValueError(
                f"{name} can't be shown as it is: transformers doesn't take over its setting {key} = {value}{told}"
            )


def restore_settings(header: Header, config: Any) -> None:
    """Put settings into the configuration that transformers has a place for and yet drops for some architectures."""
    base, window = header.setting("rope.freq_base"), header.setting("attention.sliding_window")
    rope = getattr(config, "rope_parameters", None)
    if base is not None and isinstance(rope, dict) and rope.get("rope_type") == "default":
        rope["rope_theta"] = base
    if window and config.model_type in _WINDOWED:
        config.sliding_window = window
    d_head = header.setting("attention.key_length")
    if config.model_type in _LARGEST and d_head:
        largest = config.num_hidden_layers == _LARGEST[config.model_type]  # as llama.cpp knows it
        config.query_pre_attn_scalar = config.hidden_size // config.num_attention_heads if largest else d_head


def rope_scaling(header: Header, factors: NDArray[Any] | None, config: Any, name: str) -> dict[str, Any] | None:
    """Return transformers' parameters for the angles of a file that scales them, None if it doesn't.

    Args:
        header: of the file.
        factors: what it divides its angles by, one for each pair of dimensions, or None.
        config: what transformers made of the file.
        name: of the file.

    Raises:
        ValueError: a scaling that isn't translated.
    """
    kind = header.setting("rope.scaling.type")
    factor = float(header.setting("rope.scaling.factor") or header.setting("rope.scale_linear") or 1.0)
    if kind is None and factor != 1.0:
        kind = "linear"  # llama.cpp's default
    if "rope_factors_long.weight" in header.arrays or "rope_factors_short.weight" in header.arrays:
        kind = kind or "longrope"
    if factors is not None and np.any(np.asarray(factors) != 1.0):
        kind = "llama3" if kind in (None, "none") or factor == 1.0 else f"{kind} and {ROPE_FACTORS}"
    if kind in (None, "none") or (kind == "linear" and factor == 1.0):
        return None
    rope = config.rope_parameters if isinstance(getattr(config, "rope_parameters", None), dict) else {}
    found = None
    if rope.get("rope_type") == "default":
        found = _translated(kind, factor, header, factors, rope, config)
    if found is None:
        what = f"{ROPE_FACTORS}" if kind == "llama3" else f"rope.scaling.type {kind}"
        raise ValueError(f"{name} can't be shown as it is: it scales its positions by {what}, which isn't translated")
    return rope | found


def llama3_factors(theta: float, d_head: int, factor: float, length: int) -> NDArray[np.float64]:
    """Return (d_head / 2,) what Llama 3.1 divides its angles by: 1 for short waves, `factor` for long, between between.

    >>> llama3_factors(500000.0, 128, 8.0, 8192)[[0, -1]].tolist()
    [1.0, 8.0]
    """
    waves = 2 * math.pi * theta ** (np.arange(0, d_head, 2) / d_head)
    low, high = _LLAMA3["low_freq_factor"], _LLAMA3["high_freq_factor"]
    smooth = np.clip((length / waves - low) / (high - low), 0.0, 1.0)
    return 1.0 / ((1.0 - smooth) / factor + smooth)


def read_factors(path: Path, header: Header) -> NDArray[Any] | None:
    """Return the factors that a file divides its angles by, None if it holds none or not as float32."""
    stored = header.arrays.get(ROPE_FACTORS)
    if stored is None or stored.kind != 0:
        return None
    return np.fromfile(path, "<f4", count=math.prod(stored.shape), offset=stored.place)


def _translated(
    kind: str, factor: float, header: Header, factors: NDArray[Any] | None, rope: Mapping[str, Any], config: Any
) -> dict[str, Any] | None:
    length = int(header.setting("rope.scaling.original_context_length") or config.max_position_embeddings)
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        more = {to: header.setting(key) for key, to in _OF_YARN.items() if header.setting(key)}
        return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": length} | more
    if kind != "llama3" or factors is None:
        return None
    largest = float(np.max(factors))
    for each in dict.fromkeys((_LLAMA3_LENGTH, length)):
        fit = llama3_factors(float(rope["rope_theta"]), _d_head(config), largest, each)
        if fit.shape == factors.shape and np.allclose(fit, factors, rtol=_FIT, atol=0.0):
            return {"rope_type": "llama3", "factor": largest, "original_max_position_embeddings": each} | _LLAMA3
    return None


def _expected(setting: str, config: Any, header: Header) -> tuple[Any, ...]:
    """Return the values of a setting with which the configuration computes the same; () if there are none."""
    if setting in _SAME:
        return tuple(getattr(config, name) for name in _SAME[setting] if hasattr(config, name))[:1] or (0,)
    if setting in _NEUTRAL:
        return _NEUTRAL[setting]
    if setting in _ONE:
        return (0.0, 1.0)
    if setting == "attention.head_count_kv":
        heads = getattr(config, "num_key_value_heads", None)
        return (heads if heads is not None else getattr(config, "num_attention_heads", None),)
    if setting in ("attention.key_length", "attention.value_length"):
        return (_d_head(config),)
    if setting in ("rope.freq_base", "rope.freq_base_swa"):
        return (_rope(config, "sliding_attention" if setting.endswith("swa") else "full_attention").get("rope_theta"),)
    if setting == "rope.dimension_count":
        return (round(_d_head(config) * (_rope(config, "full_attention").get("partial_rotary_factor") or 1.0)),)
    if setting == "attention.sliding_window":
        window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
        value = header.setting(setting)
        wide = isinstance(value, int) and value >= header.setting("context_length", math.inf)
        return (value,) if wide else (window,)
    return (0, "", ())


def _equal(value: Any, expected: Any) -> bool:
    if (
        isinstance(value, tuple) and value and not isinstance(expected, tuple)
    ):  # one for each layer, 0 where it has none
        return all(_equal(each, expected) for each in value if each)
    if isinstance(value, int | float) and (expected is None or isinstance(expected, int | float)):
        return math.isclose(value, expected or 0, rel_tol=1e-6)
    return bool(value == expected)


def _rope(config: Any, layer_type: str) -> Mapping[str, Any]:
    rope = getattr(config, "rope_parameters", None) or {}
    return rope[layer_type] if isinstance(rope.get(layer_type), dict) else rope


def _d_head(config: Any) -> int:
    heads = next((getattr(config, name) for name in _SAME["attention.head_count"] if hasattr(config, name)), 1)
    return int(getattr(config, "head_dim", None) or getattr(config, "d_kv", None) or config.hidden_size // heads)
