"""A model in NumPy that remembers: with the keys and values of what it has read, only what is new has to be run."""

import numpy as np

from attnviz.core.attention.masks import causal_rule
from attnviz.core.trace.records import LayerRecord
from attnviz.core.trace.switches import Switches
from attnviz.models.scratch.activations import Float
from attnviz.models.scratch.decoder import LAYOUTS, Attention, Model, forget


class Cache:
    """The keys and values of the tokens that a model has read: two arrays a layer, (kv_heads, tokens, d_head) each.

    Queries aren't kept: a query is asked once, when its token is read, and no later token has a use for it.
    """

    def __init__(self, model: Model) -> None:
        empty = np.zeros((model.n_kv_heads, 0, model.d_head), np.float32)
        self.k: list[Float] = [empty] * len(model.layers)
        self.v: list[Float] = [empty] * len(model.layers)

    @property
    def n_tokens(self) -> int:
        """Tokens read so far."""
        return self.k[-1].shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values."""
        return sum(array.nbytes for array in (*self.k, *self.v))

    def add(self, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        """Put new keys and values below those of a layer and return them all, (kv_heads, past + new, d_head)."""
        self.k[layer] = np.concatenate([self.k[layer], k], axis=1)
        self.v[layer] = np.concatenate([self.v[layer], v], axis=1)
        return self.k[layer], self.v[layer]


def run_new(
    model: Model, ids: list[int], cache: Cache, switches: Switches | None = None
) -> tuple[list[LayerRecord], Float]:
    """Run a model over new tokens alone; they see the earlier ones through the cache, which grows.

    The same as the last rows of `scratch.run` over all tokens: no earlier token sees a later one, so its keys and
    values stay as they were. The textbook's version of one layer is `core.attention.attention_step`.

    Args:
        model: its weights, of the layouts llama or gpt2.
        ids: (new,) numbers in its vocabulary: the whole text into an empty cache, then one at a time.
        cache: of the tokens before.
        switches: what is changed about its attention.

    Returns:
        What each layer's attention was computed from (q of the new tokens, k and v of all), and (vocabulary,) the
        logits of the token after the last one.
    """
    past = cache.n_tokens
    n_tokens = past + len(ids)
    attention = Attention(causal_rule(n_tokens, n_tokens), switches or Switches())

    def attend(q: Float, k: Float, v: Float, scale: float) -> Float:
        return attention.attend(q, *cache.add(len(attention.records), k, v), scale)

    x = LAYOUTS[model.layout](model, ids, attend, forget, past)  # (new, d_model)
    logits = model.head @ x[-1]  # (vocabulary, d_model) @ (d_model,) -> (vocabulary,)
    logits.flags.writeable = False
    return attention.records, logits
