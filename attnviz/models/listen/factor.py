"""Measure a model's own factor in front of q k^T where it hides in q or k, as in OPT and ESM. Uses torch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from attnviz.models.listen.call import Call
from attnviz.models.listen.capture import Recorder, Wires

QUERIES = (
    "q_proj",
    "query",
    "q_lin",
    "q",
    "query_proj",
    "linear_q",
    "q_net",
)  # what architectures call the projections
KEYS = ("k_proj", "key", "k_lin", "k", "key_proj", "linear_k", "k_net")
CONSTANT = 5e-3  # by so much, relative, ratios of two lengths may differ and count as equal, also in half precision


class FactorRecorder(Recorder):
    """A recorder that also measures factors: `factors` holds module -> own factor where it isn't the one passed.

    Such models call attention with a factor of 1. Rotary embedding turns q and k and leaves their lengths alone, so
    what they were multiplied with shows in their lengths before and after.

    Args:
        wires: how modules are told apart.
        projected: module -> the projected (queries, keys) of its latest run; see `projections`.
    """

    def __init__(self, wires: Wires, projected: Mapping[torch.nn.Module, dict[int, torch.Tensor]]) -> None:
        super().__init__(wires)
        self.factors: dict[torch.nn.Module, float] = {}
        self._projected = projected

    def attend(self, call: Call) -> torch.Tensor:
        """Measure and record one layer and return its output, (1, queries, heads, d_head)."""
        if call.scaling == 1.0:
            before = self._projected.get(call.module, {})
            found = [_ratio(x, before[i]) for i, x in enumerate((call.query, call.key)) if i in before]
            ratios = [ratio for ratio in found if ratio is not None]
            kept = getattr(call.module, "scaling", None)  # OPT and Whisper keep theirs there
            told = float(kept) if isinstance(kept, int | float) and kept > 0 else 1.0  # for projections in one matrix
            own = ratios[0] * ratios[1] if len(ratios) == 2 else told
            exact = [x for x in (1.0, told, call.query.shape[-1] ** -0.5) if abs(own - x) < CONSTANT * x]
            if 1.0 not in exact:
                self.factors[call.module] = exact[0] if exact else own
        return super().attend(call)


@contextmanager
def projections(model: torch.nn.Module) -> Iterator[dict[torch.nn.Module, dict[int, torch.Tensor]]]:
    """Yield a table that passes inside the block fill: module -> {0: its projected queries, 1: its projected keys}."""
    found: dict[torch.nn.Module, dict[int, torch.Tensor]] = {}
    hooks = []

    def keep(parent: torch.nn.Module, which: int, child: torch.nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            found.setdefault(parent, {})[which] = output

    for parent in model.modules():
        for name, child in parent.named_children():
            which = 0 if name in QUERIES else 1 if name in KEYS else None
            if which is not None:
                hooks.append(child.register_forward_hook(partial(keep, parent, which)))
    try:
        yield found
    finally:
        for each in hooks:
            each.remove()


def _ratio(after: torch.Tensor, before: torch.Tensor) -> float | None:
    """Return by how much longer (1, heads, tokens, d_head) is than (1, tokens, ...); None if that varies."""
    lengths = [x.detach().float().flatten(2).norm(dim=-1)[0] for x in (after.transpose(1, 2), before)]
    if lengths[0].shape != lengths[1].shape or bool((lengths[1] == 0).any()):
        return None
    ratios = lengths[0] / lengths[1]  # (tokens,)
    mean = float(ratios.mean())
    return mean if float((ratios - mean).abs().max()) < CONSTANT * mean else None
