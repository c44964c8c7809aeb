"""What a transformer costs: multiply-adds of its matrix products and bytes of what it keeps. Standard library only.

A multiply-add is one multiplication and the addition that follows; floating-point operations (FLOPs) are twice as many.
Counted are the products with the weights (query, key, value and output projection, MLP, unembedding) and the two of
attention (queries with keys, weights with values). Softmax, norms, biases, rotary embedding and activations grow more
slowly than all of these and are left out; looking up an embedding multiplies nothing.
"""

import math
from dataclasses import dataclass

FLOPS_PER_MULTIPLY_ADD = 2


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder that decide what it costs.

    Attributes:
        d_model: numbers a token in the residual stream.
        n_heads: query heads a layer.
        n_kv_heads: key/value heads a layer: `n_heads` in multi-head, fewer in grouped-query, 1 in multi-query.
        d_head: numbers in a query, a key and a value of one head.
        d_ff: the inner width of the MLP.
        n_layers: layers.
        gated: True if the MLP has three matrices (gate, up, down), False if it has two (up, down).
        vocabulary: tokens to choose from; 0 leaves the unembedding out.

    Raises:
        ValueError: a size below 1, or key/value heads that don't share the query heads evenly.
    """

    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    n_layers: int
    gated: bool
    vocabulary: int = 0

    def __post_init__(self) -> None:
        for name in ("d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "n_layers"):
            _at_least(getattr(self, name), 1, name)
        _at_least(self.vocabulary, 0, "vocabulary")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"expected n_heads to be a multiple of n_kv_heads, got {self.n_heads} query heads and "
                f"{self.n_kv_heads} key/value heads"
            )


@dataclass(frozen=True)
class LayerCost:
    """Multiply-adds of one layer.

    Attributes:
        projections: making queries, keys and values, and bringing the heads' outputs together.
        attention: queries with keys, and weights with values.
        mlp: the two or three matrices of the MLP.
    """

    projections: int
    attention: int
    mlp: int

    @property
    def total(self) -> int:
        """All three together."""
        return self.projections + self.attention + self.mlp


@dataclass(frozen=True)
class StepCost:
    """Multiply-adds of all layers for one new token.

    Attributes:
        projections, attention, mlp: as in `LayerCost`, over all layers.
        unembedding: from the last position's state to a logit for each token of the vocabulary.
    """

    projections: int
    attention: int
    mlp: int
    unembedding: int

    @property
    def total(self) -> int:
        """All four together."""
        return self.projections + self.attention + self.mlp + self.unembedding


def projection_weights(shape: Shape) -> int:
    """Return the numbers in a layer's query, key, value and output matrices: 2 d h d_head + 2 d h_kv d_head.

    That is 4 d^2 with as many key/value heads as query heads and h d_head = d.

    >>> projection_weights(Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False))
    16
    """
    return 2 * shape.d_model * (shape.n_heads + shape.n_kv_heads) * shape.d_head


def mlp_weights(shape: Shape) -> int:
    """Return the numbers in a layer's MLP: 2 d d_ff, gated 3 d d_ff. The classic width of 4 d makes that 8 d^2.

    >>> mlp_weights(Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False))
    32
    """
    return (3 if shape.gated else 2) * shape.d_model * shape.d_ff


def layer_cost(shape: Shape, s: int, *, causal_skipped: bool = False) -> LayerCost:
    """Return what one layer costs for a sequence of s tokens: weights times s, and attention's 2 s^2 h d_head.

    Each of the s^2 pairs of a query and a key needs d_head multiply-adds for its score and d_head more for its share of
    the output, in each of h query heads. A causal mask alone saves nothing: the forbidden half is computed and thrown
    away. Skipping blocks that are wholly forbidden saves up to half: blocks of b tokens leave s (s + b) / 2 pairs.
    `causal_skipped` counts s^2 / 2 of them, what is left when blocks are much smaller than the sequence.

    Args:
        shape: the model's sizes.
        s: tokens in the sequence.
        causal_skipped: count half of the pairs.

    Returns:
        LayerCost, in multiply-adds.

    Raises:
        ValueError: s below 1.

    >>> small = Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False)
    >>> layer_cost(small, 4)  # 4 s d^2, 2 s^2 d, 8 s d^2: with s = 2 d attention equals the projections
    LayerCost(projections=64, attention=64, mlp=128)
    >>> layer_cost(small, 4, causal_skipped=True).attention
    32
    """
    _at_least(s, 1, "s")
    return LayerCost(
        projections=s * projection_weights(shape),
        attention=_attention(shape, s, s) // (2 if causal_skipped else 1),
        mlp=s * mlp_weights(shape),
    )


def meeting_point(shape: Shape, *, with_mlp: bool = True, causal_skipped: bool = False) -> float:
    """Return the sequence length from which on attention costs more than the rest of its layer.

    The rest grows as s, attention as s^2: they meet where s = weights / (2 h d_head), twice as far if causal blocks are
    skipped. Plain multi-head attention: 2 d without the MLP, 6 d with a classic one.

    Args:
        shape: the model's sizes.
        with_mlp: compare with projections and MLP, else with the projections alone.
        causal_skipped: as in `layer_cost`.

    Returns:
        Tokens, not rounded.

    >>> small = Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False)
    >>> meeting_point(small, with_mlp=False), meeting_point(small), meeting_point(small, causal_skipped=True)
    (4.0, 12.0, 24.0)
    """
    weights = projection_weights(shape) + (mlp_weights(shape) if with_mlp else 0)
    return weights / _attention(shape, 1, 1) * (2 if causal_skipped else 1)


def step_cost(shape: Shape, t: int, *, cache: bool) -> StepCost:
    """Return what it costs to choose the next token after t tokens, with a KV cache or without.

    With the cache only the newest token passes through the model: every weight is used once, and one query meets t
    keys: P + 2 L t h d_head. Without it all t tokens pass again: t times the layers' weights, and all t^2 pairs:
    P' t + 2 L t^2 h d_head. P' counts the matrices of the layers. P counts those and the unembedding, which is needed
    at the last position only, with the cache or without. The embedding is looked up, not multiplied: a model that uses
    one matrix for both counts it once, as P does.

    Args:
        shape: the model's sizes.
        t: tokens that the new one can look at: the prompt, what was generated, and the token that was put in last.
        cache: True if the keys and values of the first t - 1 tokens are kept.

    Returns:
        StepCost over all layers, in multiply-adds; without cache in full, no causal blocks skipped.

    Raises:
        ValueError: t below 1.

    >>> small = Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False, vocabulary=5)
    >>> step_cost(small, 3, cache=True)
    StepCost(projections=16, attention=12, mlp=32, unembedding=10)
    >>> step_cost(small, 3, cache=False)
    StepCost(projections=48, attention=36, mlp=96, unembedding=10)
    """
    _at_least(t, 1, "t")
    passing = 1 if cache else t  # tokens that pass through the layers
    return StepCost(
        projections=shape.n_layers * passing * projection_weights(shape),
        attention=shape.n_layers * _attention(shape, passing, t),
        mlp=shape.n_layers * passing * mlp_weights(shape),
        unembedding=shape.d_model * shape.vocabulary,
    )


def step_meeting_point(shape: Shape, *, cache: bool) -> float:
    """Return the number of tokens t at which attention costs as much as the rest of a step of generation.

    With the cache P = 2 L t h d_head. Without it P' t + unembedding = 2 L t^2 h d_head, a quadratic equation.

    Args:
        shape: the model's sizes.
        cache: as in `step_cost`.

    Returns:
        Tokens, not rounded.

    >>> small = Shape(d_model=2, n_heads=1, n_kv_heads=1, d_head=2, d_ff=8, n_layers=1, gated=False, vocabulary=26)
    >>> step_meeting_point(small, cache=True)  # 4 t = 48 + 52
    25.0
    >>> step_meeting_point(small, cache=False)  # 4 t^2 = 48 t + 52
    13.0
    """
    one = step_cost(shape, 1, cache=True)
    layers, pair = one.projections + one.mlp, one.attention
    if cache:
        return (layers + one.unembedding) / pair
    half = layers / pair / 2
    return half + math.sqrt(half**2 + one.unembedding / pair)


def cache_bytes(shape: Shape, t: int, bytes_per_number: float) -> int:
    """Return the size of the KV cache after t tokens: layers x key/value heads x t x d_head x 2 (K and V) x bytes.

    Queries are not in it: a query is used in its own step and never again.

    Args:
        shape: the model's sizes.
        t: tokens whose keys and values are kept.
        bytes_per_number: 4 in float32, 2 in float16 and bfloat16, 1 and 0.5 for 8 and 4 bits.

    Returns:
        Bytes of one sequence, rounded up.

    Raises:
        ValueError: t below 0, or bytes not above 0.

    >>> small = Shape(d_model=8, n_heads=4, n_kv_heads=2, d_head=2, d_ff=8, n_layers=3, gated=False)
    >>> cache_bytes(small, 10, 4)  # 3 x 2 x 10 x 2 x 2 x 4
    960
    """
    _at_least(t, 0, "t")
    return _bytes(shape.n_layers * shape.n_kv_heads * t * shape.d_head * 2, bytes_per_number)


def score_bytes(s: int, heads: int, layers: int, bytes_per_number: float) -> int:
    """Return the size of the score matrices if they are all kept: s^2 numbers for each head of each layer.

    One layer at a time is what a model needs to run; training without FlashAttention or recomputing keeps all layers.

    Args:
        s: tokens in the sequence.
        heads: query heads a layer.
        layers: layers whose matrices are held at once.
        bytes_per_number: as in `cache_bytes`.

    Returns:
        Bytes of one sequence, rounded up.

    Raises:
        ValueError: a count below 1, or bytes not above 0.

    >>> score_bytes(3, 2, 1, 4)
    72
    """
    return _bytes(_at_least(s, 1, "s") * row_sum_bytes(s, heads, layers, 1), bytes_per_number)


def row_sum_bytes(s: int, heads: int, layers: int, bytes_per_number: float) -> int:
    """Return what FlashAttention keeps in place of the scores: one number for each query, head and layer.

    The number is the logarithm of the row's sum of exponentials, from which the weights can be computed again.

    Args:
        s: tokens in the sequence.
        heads: query heads a layer.
        layers: layers whose numbers are held at once.
        bytes_per_number: 4, since it is kept in float32.

    Returns:
        Bytes of one sequence, rounded up.

    Raises:
        ValueError: a count below 1, or bytes not above 0.

    Source: Dao 2023 (FlashAttention-2), section 3.1.1.

    >>> row_sum_bytes(3, 2, 1, 4)
    24
    """
    numbers = _at_least(s, 1, "s") * _at_least(heads, 1, "heads") * _at_least(layers, 1, "layers")
    return _bytes(numbers, bytes_per_number)


def _attention(shape: Shape, queries: int, keys: int) -> int:
    """Return the multiply-adds of one layer's attention: d_head for the score and d_head for the value of each pair."""
    return 2 * queries * keys * shape.n_heads * shape.d_head


def _bytes(numbers: int, bytes_per_number: float) -> int:
    """Return the bytes of so many numbers, rounded up, or raise ValueError."""
    if not 0 < bytes_per_number < math.inf:
        raise ValueError(f"expected bytes_per_number above 0, such as 4 for float32, got {bytes_per_number}")
    return math.ceil(numbers * bytes_per_number)


def _at_least(value: int, lowest: int, name: str) -> int:
    """Return the value, or raise ValueError if it is below the lowest that makes sense."""
    if value < lowest:
        raise ValueError(f"expected {name} of at least {lowest}, got {value}")
    return value
