"""A tiny GGUF file with random weights, as llama.cpp writes one. Built in a moment, no download."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HEADS, KV_HEADS, D_HEAD, WIDTH, D_FF, LAYERS, CONTEXT = 4, 2, 16, 64, 96, 2, 128
THETA = 50.0  # low, so that a change of the angles shows within a few tokens


def words() -> list[str]:
    """Return the 256 bytes as GPT-2 spells them, one pair of letters, and what ends a text."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*sorted(ByteLevel.alphabet()), "th", "<end>"]


def weights(seed: int = 0, *, sharpen: float = 8.0) -> dict[str, np.ndarray]:
    """Return the arrays of a tiny llama, named as llama.cpp names them."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.1) -> np.ndarray:
        return random.normal(scale=scale, size=shape).astype(np.float32)

    found = {"token_embd.weight": normal(len(words()), WIDTH), "output.weight": normal(len(words()), WIDTH)}
    found["output_norm.weight"] = np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        block = {
            "attn_norm": np.ones(WIDTH, np.float32),
            "attn_q": normal(HEADS * D_HEAD, WIDTH, scale=0.1 * sharpen),
            "attn_k": normal(KV_HEADS * D_HEAD, WIDTH, scale=0.1 * sharpen),
            "attn_v": normal(KV_HEADS * D_HEAD, WIDTH),
            "attn_output": normal(WIDTH, HEADS * D_HEAD),
            "ffn_norm": np.ones(WIDTH, np.float32),
            "ffn_gate": normal(D_FF, WIDTH),
            "ffn_up": normal(D_FF, WIDTH),
            "ffn_down": normal(WIDTH, D_FF),
        }
        found |= {f"blk.{layer}.{name}.weight": array for name, array in block.items()}
    return found


def settings(architecture: str = "llama") -> dict[str, Any]:
    """Return the settings of that model, without `general.architecture`, which the writer adds."""
    return {
        f"{architecture}.context_length": CONTEXT,
        f"{architecture}.embedding_length": WIDTH,
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.feed_forward_length": D_FF,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.dimension_count": D_HEAD,
        f"{architecture}.rope.freq_base": THETA,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": words(),
        "tokenizer.ggml.token_type": [1] * (len(words()) - 1) + [3],
        "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.eos_token_id": len(words()) - 1,
        "tokenizer.ggml.bos_token_id": len(words()) - 1,
    }


def write(
    path: Path,
    *,
    changed: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray | None] | None = None,
    architecture: str = "llama",
) -> Path:
    """Write a tiny llama into a GGUF file.

    Args:
        path: of the file.
        changed: settings that differ or come on top; None takes one out.
        arrays: the same for arrays.
        architecture: what the file calls itself.
    """
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    for name, value in (settings(architecture) | dict(changed or {})).items():
        _add(writer, name, value)
    for name, array in (weights() | dict(arrays or {})).items():
        if array is not None:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: Any, name: str, value: Any) -> None:
    if isinstance(value, list | tuple):
        writer.add_array(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    elif isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif value is not None:
        writer.add_float32(name, value)
