"""Listen to a batch of texts of equal length and keep, of every head, what one query gives to a few candidates.

No q, k or v is kept, so that thousands of sentences need no more memory than one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from attnviz.core.pronouns.token_places import Places
from attnviz.models.listen.call import Call
from attnviz.models.listen.capture import Recorder, Wires


class Finished(Exception):
    """The last layer has been seen: the rest of the pass changes no weight, so it needn't run."""


@dataclass(frozen=True)
class Wanted:
    """The rows of a batch that are wanted.

    Attributes:
        texts: (items,) which text of the batch each item is in; `places`: where in it.
    """

    texts: Sequence[int]
    places: Sequence[Places]


class RowRecorder(Recorder):
    """The weight on the answer and on the best distractor, from the pronoun's last token, in every head of a batch.

    `rows` holds, layer by layer, two arrays (items, heads). Only for models without soft-cap, sinks and bias.

    Args:
        wires: how modules are told apart.
        wanted: the items of the batch.
        n_layers: after so many the pass is ended with `Finished`.
    """

    def __init__(self, wires: Wires, wanted: Wanted, n_layers: int) -> None:
        super().__init__(wires)
        self.rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.n_layers = n_layers
        self.texts = torch.tensor(wanted.texts)
        self.queries = torch.tensor([places.query for places in wanted.places])
        self._places = wanted.places
        self._belongs: torch.Tensor | None = None

    def attend(self, call: Call) -> torch.Tensor:
        """Keep the wanted rows of one layer and return its output, (texts, queries, heads, d_head)."""
        place = self._place(call.module)
        self.calls.append(place)
        scores = self._scores(call.query, call.key) * call.factor  # (items, heads, keys)
        if call.mask is not None or call.causal:
            scores = scores.masked_fill(~self._allowed(call.mask, scores)[:, None], float("-inf"))
        self.rows[place[1]] = self._candidates(torch.softmax(scores, dim=-1))
        if len(self.calls) == self.n_layers:
            raise Finished
        seen = call.module, call.query, call.key, call.value, call.mask
        return sdpa_attention_forward(*seen, scaling=call.factor, is_causal=call.causal)[0]

    def _scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """Return q k^T of the wanted rows, in float32: (items, heads, keys)."""
        texts = self.texts.to(query.device)
        q = query[texts, :, self.queries.to(query.device)].float()  # (items, heads, d_head)
        k = key[texts].float()  # (items, kv_heads, keys, d_head)
        n_items, n_heads, d_head = q.shape
        q = q.view(n_items, k.shape[1], n_heads // k.shape[1], d_head)  # heads of a key/value head stand together
        return (q @ k.transpose(-1, -2)).flatten(1, 2)

    def _allowed(self, mask: torch.Tensor | None, scores: torch.Tensor) -> torch.Tensor:
        """Return (items, keys), True where the model's rule lets the wanted query see that key."""
        if mask is None:
            keys = torch.arange(scores.shape[-1], device=scores.device)
            return keys <= self.queries.to(scores.device)[:, None]
        texts = self.texts if mask.shape[0] > 1 else torch.zeros_like(self.texts)
        queries = self.queries if mask.shape[2] > 1 else torch.zeros_like(self.queries)  # one row may hold for all
        rows = mask[texts.to(mask.device), 0, queries.to(mask.device)]
        return rows if rows.dtype == torch.bool else rows > torch.finfo(rows.dtype).min / 2

    def _candidates(self, weights: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight on the answer and on the best distractor, (items, heads) each."""
        if self._belongs is None:
            self._belongs = _belongs(self._places, weights.shape[-1]).to(weights.device)
        sums = weights @ self._belongs  # (items, heads, candidates), NaN where an item has fewer candidates
        best = torch.nan_to_num(sums[..., 1:], nan=-1.0).amax(dim=-1)
        return sums[..., 0].cpu().numpy(), best.cpu().numpy()


def _belongs(places: Sequence[Places], n_keys: int) -> torch.Tensor:
    """Return (items, keys, candidates): 1 where a key is a token of that candidate, NaN for candidates there aren't."""
    most = max(len(of_item.candidates) for of_item in places)
    belongs = torch.zeros(len(places), n_keys, most)
    for i, of_item in enumerate(places):
        belongs[i, :, len(of_item.candidates) :] = float("nan")
        for j, tokens in enumerate(of_item.candidates):
            belongs[i, list(tokens), j] = 1.0
    return belongs
