"""Sentences and attention weights that no model made, for the pages of the browser tests."""

import numpy as np

THUMB = 32
ANIMAL = [
    "The",
    "·animal",
    "·didn",
    "'t",
    "·cross",
    "·the",
    "·street",
    "·because",
    "·it",
    "·was",
    "·too",
    "·tired",
    ".",
]
SENTENCES = {
    "animal": ANIMAL,
    "arabic": ["القطة", "·جلست", "·على", "·السجادة", "."],
    "odd": ["[CLS]", "<b>", "&amp;", "🙂", "·", "👩‍👩‍👧", "⏎", "`", "[SEP]"],
}


def made_up_attention(n_tokens: int, *, causal: bool) -> np.ndarray:
    """Return (queries, keys) weights with a strong first token and "it" (token 8) looking at token 1."""
    rng = np.random.default_rng(n_tokens)
    scores = rng.normal(0.0, 1.5, (n_tokens, n_tokens))
    scores[:, 0] += 2.0
    if n_tokens > 8:
        scores[8, 1] = scores[8].max() + 2.0
    if causal:
        scores[~np.tri(n_tokens, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def made_up_weights(n_heads: int, n_tokens: int, *, causal: bool, seed: int = 0) -> np.ndarray:
    """Return (heads, queries, keys) attention of heads that look near, at the first token, or everywhere."""
    rng = np.random.default_rng(seed)
    place = np.arange(n_tokens)
    distance = place[:, None] - place[None, :]
    focus = rng.uniform(0.0, 3.0, (n_heads, 1, 1))
    shift = rng.integers(0, 4, (n_heads, 1, 1))
    scores = -focus * np.abs(distance - shift) + rng.normal(0.0, 1.0, (n_heads, n_tokens, n_tokens))
    scores[:, :, 0] += rng.uniform(0.0, 5.0, (n_heads, 1))
    scores = np.where((distance < 0) & causal, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def mosaic_of(weights: np.ndarray, rows: int, columns: int, *, causal: bool) -> np.ndarray:
    """Return (rows * THUMB, columns * THUMB) uint8 with masked cells as 255."""
    shades = np.round(np.sqrt(weights) * 254).astype(np.uint8)
    if causal:
        shades[:, ~np.tri(THUMB, dtype=bool)] = 255
    return shades.reshape(rows, columns, THUMB, THUMB).swapaxes(1, 2).reshape(rows * THUMB, columns * THUMB)
