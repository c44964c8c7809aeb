"""How the next token is chosen from a model's logits: the likeliest one, or one drawn at random. NumPy only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.arguments import number, whole
from attnviz.core.attention.textbook import softmax


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; the defaults always take the likeliest one.

    Attributes:
        temperature: 0 takes the likeliest token. Else the logits are divided by it before the softmax: below 1 likely
            tokens become likelier, above 1 unlikely ones do.
        top_k: only the k likeliest tokens can be drawn; None: all of them.
        top_p: then only the fewest likeliest tokens whose probabilities (at this temperature, of what top_k left)
            reach p; None: all of them.
        seed: of the random numbers; the same seed gives the same tokens.

    Raises:
        ValueError: a temperature or a seed below 0, top_k below 1, or top_p not above 0 and at most 1.

    Source: nucleus sampling (top_p), Holtzman et al. 2020, section 3.1; top_k, Fan et al. 2018, section 5.1.

    >>> Sampling(temperature=0.8, top_k=40).greedy
    False
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        takes = "a number from 0 up (0 is greedy)"
        if number("temperature", self.temperature, takes) < 0:
            raise ValueError(f"temperature must be {takes}, got {self.temperature!r}")
        if self.top_k is not None:
            whole("top_k", self.top_k, least=1, or_none=True)
        takes = "a number above 0 and at most 1, or None"
        if self.top_p is not None and not 0 < number("top_p", self.top_p, takes) <= 1:
            raise ValueError(f"top_p must be {takes}, got {self.top_p!r}")
        whole("seed", self.seed, least=0)

    @property
    def greedy(self) -> bool:
        """True if nothing is left to chance."""
        return self.temperature == 0


@dataclass(frozen=True, eq=False)
class Choice:
    """One token chosen from the vocabulary.

    Attributes:
        id: its number in the vocabulary; `rank`: its place in `order`, 0 for the likeliest.
        order: (vocabulary,) all tokens, likeliest first; equal ones by their number.
        n_allowed: how many tokens could have been chosen: the first ones of `order`.
    """

    id: int
    rank: int
    order: NDArray[np.int64]
    n_allowed: int


def choose(logits: ArrayLike, sampling: Sampling, random: float = 0.0) -> Choice:
    """Choose the next token.

    The probabilities of the allowed tokens are laid end to end, likeliest first, scaled to a length of 1; the token
    that `random` falls on is the chosen one. All in float64, so that small differences of logits rarely matter.

    Args:
        logits: (vocabulary,) of the model.
        sampling: the rule.
        random: a number from 0, below 1; without effect at temperature 0.

    Raises:
        ValueError: a logit is NaN or +inf, or `random` is not from 0 to below 1.

    >>> logits = np.log([0.2, 0.5, 0.3])
    >>> choose(logits, Sampling()).id, choose(logits, Sampling(temperature=1), 0.6).id
    (1, 2)
    >>> choose(logits, Sampling(temperature=1, top_p=0.7), 0.9).n_allowed
    2
    """
    if not 0 <= random < 1:
        raise ValueError(f"random must be a number from 0 to below 1, got {random!r}")
    numbers = np.asarray(logits, np.float64)
    order = np.argsort(-numbers, kind="stable")  # (vocabulary,)
    if sampling.greedy:
        return Choice(int(order[0]), 0, order, 1)
    lengths = _probabilities(numbers[order[: sampling.top_k]], sampling.temperature)  # (top_k,), falling
    ends = np.cumsum(lengths)
    n_allowed = len(ends)
    if sampling.top_p is not None and sampling.top_p < 1:
        n_allowed = min(n_allowed, int(np.searchsorted(ends, sampling.top_p)) + 1)
    rank = int(np.searchsorted(ends[:n_allowed], random * ends[n_allowed - 1], side="right"))
    rank = min(rank, n_allowed - 1)  # rounding may put the number on the very end
    return Choice(int(order[rank]), rank, order, n_allowed)


def _probabilities(falling: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # far behind the first at a low temperature is -inf, and never drawn
        return np.asarray(softmax((falling - falling[0]) / temperature), np.float64)
