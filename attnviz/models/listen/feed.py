"""What a model of transformers is handed for a text, and how long the text may be. Uses torch."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

TAKES = {
    "input_features": "sound (spectrograms)",
    "input_values": "sound (waveforms)",
    "past_values": "time series",
    "pixel_values": "images",
    "pixel_values_videos": "videos",
    "states": "states of a game",
}


@dataclass(frozen=True)
class Feed:
    """Which arguments a model needs beside the ids of a text.

    Attributes:
        mask: an attention mask of ones; most models do without, which lets fused attention skip the mask.
        last: it can be told to compute the logits of the last token alone, and leaves nothing else out then.
        positions: in a step with a cache it must be told where the new tokens stand.
    """

    mask: bool = False
    last: bool = True
    positions: bool = False

    def inputs(self, model: torch.nn.Module, ids: torch.Tensor, target: torch.Tensor | None = None) -> dict[str, Any]:
        """Return keyword arguments for a pass over `ids`, (texts, tokens), without a cache."""
        known = inspect.signature(model.forward).parameters
        inputs: dict[str, Any] = {"input_ids": ids}
        if target is not None:
            inputs["decoder_input_ids"] = target
        if self.mask:
            inputs["attention_mask"] = torch.ones_like(ids)
        if "use_cache" in known:
            inputs["use_cache"] = False
        if self.last and "logits_to_keep" in known:
            inputs["logits_to_keep"] = 1
        return inputs

    def step(self, model: torch.nn.Module, ids: torch.Tensor, cache: Any, n_past: int) -> dict[str, Any]:
        """Return keyword arguments for a pass over the new `ids`, (1, new), with `n_past` tokens in the cache."""
        inputs = self.inputs(model, ids) | {"use_cache": True, "cache": cache}
        places = torch.arange(n_past + ids.shape[1], device=ids.device)[None]
        if self.mask:
            inputs["attention_mask"] = torch.ones_like(places)
        if self.positions:
            inputs["position_ids"] = places[:, n_past:]
        return inputs


def check_takes_text(model: torch.nn.Module, title: str) -> None:
    """Raise ValueError, which says what the model takes, if text alone is nothing to it."""
    known = list(inspect.signature(model.forward).parameters)
    if "input_ids" in known:
        return
    main = getattr(model, "main_input_name", None)
    name = main if isinstance(main, str) and main in known else next(iter(known), "nothing")
    raise ValueError(f"{title} takes {TAKES.get(name, name)}, and attnviz reads text")


def what_else_it_takes(model: torch.nn.Module) -> str:
    """Return "images" or the like, or nothing where a model knows of nothing but text."""
    known = inspect.signature(model.forward).parameters
    return " and ".join(words for name, words in TAKES.items() if name in known)


def position_limit(config: Any) -> int:
    """Return the most tokens a model can take by its configuration; 10^9 where there is no limit."""
    config = config.get_text_config()
    if getattr(config, "relative_attention_num_buckets", None) and config.model_type in {"t5", "mt5", "umt5", "longt5"}:
        return 10**9
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return 10**9


def new_positions(config: Any) -> tuple[int, ...]:
    """Return the lengths beyond which every position of a text is computed anew, the first token's too (LongRoPE)."""
    config = config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    every = [rope, *(value for value in rope.values() if isinstance(value, dict))]  # one for each kind of layer
    lengths = (
        each.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
        for each in every
        if each.get("rope_type") == "longrope"
    )
    return tuple(sorted({int(length) for length in lengths if length}))


def windows(config: Any) -> tuple[int, ...]:
    """Return the lengths beyond which some layer hides a token behind a window or a chunk."""
    config = config.get_text_config()
    names = ("sliding_window", "attention_chunk_size", "local_attention", "window_size", "attention_window_size")
    lengths = (getattr(config, name, None) for name in names)
    return tuple(sorted({length for length in lengths if isinstance(length, int) and length > 0}))


@contextmanager
def learned_positions(model: torch.nn.Module, n_tokens: int) -> Iterator[list[int]]:
    """Yield a list that passes over `n_tokens` tokens fill: how many tokens each table of positions has rows for.

    A table of learned positions is looked up with numbers that go up by one, from wherever the architecture begins:
    RoBERTa, MPNet and ESM begin behind the number of their padding token, so fewer tokens fit than there are rows.
    """
    found: list[int] = []

    def look(table: torch.nn.Embedding, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for numbers in (*args, *kwargs.values()):
            if not isinstance(numbers, torch.Tensor) or numbers.is_floating_point() or numbers.shape[:-1].numel() > 1:
                continue
            row = numbers.flatten()[:n_tokens]  # Longformer pads what follows
            if len(row) == n_tokens > 2 and bool((row.diff() == 1).all()):
                found.append(table.num_embeddings - int(row[0]))

    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    hooks = [table.register_forward_pre_hook(look, with_kwargs=True) for table in tables]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
