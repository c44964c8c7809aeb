"""Scores and weights of the heads of one layer, from what the pass left of it. NumPy only."""

import numpy as np
from numpy.typing import NDArray

from attnviz.core.attention.textbook import softmax
from attnviz.core.threads import one_thread
from attnviz.core.trace.records import Float, LayerMaps, LayerRecord
from attnviz.core.trace.switches import Switches, allowed_table


def layer_scores(record: LayerRecord, switches: Switches, layer: int, heads: slice, queries: slice) -> Float:
    """Return (heads, queries, keys) what enters the softmax, -inf where the rule or a forbidden look hides a key.

    Args:
        record: of the layer; `layer`: its number, by which forbidden looks name it.
        switches: what acts on it.
        layer: see `record`.
        heads: which of its heads; `queries`: which rows. The keys are always all of them.
        queries: see `heads`.
    """
    numbers = np.arange(record.shape[0])[heads]
    rows, columns = np.arange(record.shape[1])[queries], np.arange(record.shape[2])
    with one_thread():
        scores = _products(record, switches, numbers, queries)
    if record.softcap is not None:
        scores = np.float32(record.softcap) * np.tanh(scores / np.float32(record.softcap))
    if record.bias is not None:
        own = record.bias if record.bias.shape[0] == 1 else record.bias[heads]
        scores += own[:, rows]
    if switches.temperature != 1.0:
        scores /= np.float32(switches.temperature)
    allowed = allowed_table(record.mask, switches, layer, range(record.shape[0])[heads], rows, columns)
    np.copyto(scores, -np.inf, where=~allowed)
    return scores


def layer_weights(
    record: LayerRecord | LayerMaps, switches: Switches, layer: int, heads: slice, queries: slice
) -> Float:
    """Return (heads, queries, keys) attention weights; see `layer_scores` for the arguments."""
    if isinstance(record, LayerMaps):
        return record.weights[heads, queries]
    sinks = None
    if record.sinks is not None:
        sinks = (record.sinks[heads] / switches.temperature)[:, None]  # (heads, 1): one for every query of a head
    return softmax(layer_scores(record, switches, layer, heads, queries), sinks=sinks)


def _products(record: LayerRecord, switches: Switches, heads: NDArray[np.int64], queries: slice) -> Float:
    """Return (heads, queries, keys) q k^T times the factor, or without it where scaling is off."""
    factor = np.float32(record.scale if switches.scaled else 1.0)
    rows = record.q[:, queries]  # (all heads, queries, d_head)
    products = np.empty((len(heads), rows.shape[1], record.shape[2]), np.float32)
    for i, head in enumerate(heads):
        kv = head // (record.shape[0] // record.k.shape[0])
        np.matmul(rows[head] * factor, record.k[kv].T, out=products[i])
    return products
