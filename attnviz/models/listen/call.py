"""What a model hands its attention in one layer, and what of it is understood here. Uses torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

# Extras that attention functions are handed and that change nothing about the weights.
HARMLESS = {
    "cache_position", "cu_seq_lens_k", "cu_seq_lens_q", "deterministic", "dropout", "is_causal", "labels",
    "logits_to_keep", "max_length_k", "max_length_q", "num_items_in_batch", "output_attentions",
    "output_hidden_states", "output_router_logits", "past_key_values", "position_ids", "return_dict",
    "sliding_window", "token_type_ids", "use_cache",
}  # fmt: skip
UNDERSTOOD = {"softcap", "s_aux", "position_bias"}


class UnknownExtra(Exception):
    """A model handed its attention something that this package doesn't know how to honour."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a model's attention.

    Attributes:
        module: whose attention it is.
        query: (texts, heads, queries, d_head); `key`, `value`: (texts, kv_heads, keys, d_head).
        mask: boolean, True = allowed, or what is added to the scores; None: see `causal`.
        scaling: the factor in front of q k^T; None: 1 / sqrt(d_head).
        extras: what else is handed over, see `UNDERSTOOD`.

    Raises:
        UnknownExtra: an extra may change the weights and isn't understood here.
    """

    module: torch.nn.Module
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    scaling: float | None
    extras: Mapping[str, Any]

    def __post_init__(self) -> None:
        unknown = sorted(k for k, v in self.extras.items() if v is not None and k not in HARMLESS | UNDERSTOOD)
        if unknown:
            raise UnknownExtra(f"the model's attention takes {', '.join(unknown)}, which attnviz doesn't know")

    @property
    def factor(self) -> float:
        """What q k^T is multiplied by."""
        return float(self.query.shape[-1] ** -0.5 if self.scaling is None else self.scaling)

    @property
    def causal(self) -> bool:
        """True if a pass without a mask hides later keys, as transformers' own attention reads it."""
        told = self.extras.get("is_causal")
        return bool(told if told is not None else getattr(self.module, "is_causal", True))

    @property
    def size(self) -> tuple[int, int]:
        """(queries, keys)."""
        return self.query.shape[2], self.key.shape[2]
