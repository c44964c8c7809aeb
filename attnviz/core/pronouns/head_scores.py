"""Heads scored over many pronoun sentences: how often each looks at what the pronoun stands for. NumPy only.

A head is asked one thing about an item: from the pronoun's last token, does the answer get more weight than every
distractor? A candidate's weight is the sum over its tokens. Such a score says where a head looks, not what the model
does with it. Axes: items, layers, heads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.core.pronouns.bootstrap import DRAWS, group_interval
from attnviz.core.pronouns.items import Item
from attnviz.core.pronouns.token_places import Float, first_candidate, nearest_candidate


@dataclass(frozen=True, eq=False)
class Looks:
    """What every head gave to the candidates of every item.

    Attributes:
        items: those that were measured.
        layers: their numbers, which may have gaps.
        answer: (items, layers, heads) weight on the answer; NaN where a layer has fewer heads.
        distractor: (items, layers, heads) weight on the distractor that got most.
    """

    items: tuple[Item, ...]
    layers: tuple[int, ...]
    answer: Float
    distractor: Float

    @property
    def right(self) -> NDArray[np.float64]:
        """(items, layers, heads): 1 where the answer's weight is above every distractor's, 0 elsewhere, or NaN."""
        return np.where(np.isnan(self.answer), np.nan, self.answer > self.distractor).astype(np.float64)

    @property
    def groups(self) -> list[str]:
        """The group of each item."""
        return [item.group for item in self.items]


@dataclass(frozen=True)
class Rate:
    """How often something was right, from 0 to 1, with the ends of its 95 % interval over groups."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scores:
    """The heads of a model on many items.

    Attributes:
        layers: their numbers.
        n: items; `n_groups`: groups of them.
        accuracy: (layers, heads) share of items where the head is right; `low`, `high`: its interval over groups.
        answer: (layers, heads) mean weight on the answer; `distractor`: on the distractor that got most.
        baselines: chance, nearest, first.
    """

    layers: tuple[int, ...]
    n: int
    n_groups: int
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    answer: NDArray[np.float64]
    distractor: NDArray[np.float64]
    baselines: dict[str, Rate]

    def best(self) -> tuple[int, int]:
        """Return (layer, head) of the head that is right most often; of two, the one with the wider gap in weight.

        The best of many heads is lucky: choose on some items and report on others, as `choose_heads` does.
        """
        row, head = _ranking(self)[0]
        return self.layers[row], head


@dataclass(frozen=True)
class Chosen:
    """A head that was chosen on one half of the items, and how it does on the other half.

    Attributes:
        layer, head: which.
        chosen_at: its accuracy on the half it was chosen on, of `n_chosen_on` items.
        rate: its accuracy on the other half, of `n` items in `n_groups` groups; with few groups the interval is rough.
        answer, distractor: mean weights there.
    """

    layer: int
    head: int
    chosen_at: float
    n_chosen_on: int
    rate: Rate
    n: int
    n_groups: int
    answer: float
    distractor: float


def take(looks: Looks, wanted: Callable[[Item], bool] | ArrayLike) -> Looks:
    """Return the part of the looks whose items are wanted: a function of an item, or (items,) True and False."""
    chosen = [wanted(item) for item in looks.items] if callable(wanted) else wanted
    rows = np.flatnonzero(np.asarray(chosen, bool))
    return Looks(tuple(looks.items[i] for i in rows), looks.layers, looks.answer[rows], looks.distractor[rows])


BASELINES = {
    "chance": "one over the number of candidates",
    "nearest": "always the candidate nearest to the pronoun",
    "first": "always the candidate that stands first",
}


def baselines(items: Sequence[Item], *, draws: int = DRAWS, seed: int = 0) -> dict[str, Rate]:
    """Return how often rules are right that look at nothing: chance, nearest candidate, first candidate.

    Raises:
        ValueError: no items.
    """
    right = np.array(
        [
            (1 / len(i.candidates), nearest_candidate(i.pronoun, i.candidates) == 0, first_candidate(i.candidates) == 0)
            for i in items
        ],
        np.float64,
    ).reshape(-1, len(BASELINES))  # (items, baselines); the answer is candidate 0
    low, high = group_interval(right, [item.group for item in items], draws=draws, seed=seed)
    rates = zip(right.mean(axis=0), low, high, strict=True)
    return {name: Rate(*map(float, rate)) for name, rate in zip(BASELINES, rates, strict=True)}


def score(looks: Looks, *, draws: int = DRAWS, seed: int = 0) -> Scores:
    """Score every head: how often the answer's weight is above every distractor's, and the mean weights.

    With w(c) the weight of a candidate, the sum over its tokens, an item counts 1 if w(answer) > max w(distractor) and
    0 otherwise, equal weights included; accuracy is the mean over items.

    Args:
        looks: of at least one item.
        draws: how often the bootstrap draws groups for the intervals.
        seed: of the draws.

    Raises:
        ValueError: no items.

    Source: Clark et al. 2019, What does BERT look at?, section 4.3 (heads as pickers of antecedents).
    """
    if not looks.items:
        raise ValueError("there is no item to score")
    right, groups = looks.right, looks.groups
    low, high = group_interval(right, groups, draws=draws, seed=seed)
    return Scores(
        layers=looks.layers,
        n=len(right),
        n_groups=len(set(groups)),
        accuracy=right.mean(axis=0),
        low=low,
        high=high,
        answer=looks.answer.mean(axis=0, dtype=np.float64),
        distractor=looks.distractor.mean(axis=0, dtype=np.float64),
        baselines=baselines(looks.items, draws=draws, seed=seed),
    )


def halves(items: Sequence[Item], *, seed: int = 0) -> NDArray[np.bool_]:
    """Split items in two halves that share no group: True for the half to choose on, False for the one to report on.

    Within each kind groups are taken in random order, each into the half that has fewer items of that kind so far.

    Returns:
        (items,) bool.

    Raises:
        ValueError: there are fewer than two groups.
    """
    members: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        members.setdefault(item.group, []).append(i)
    if len(members) < 2:
        raise ValueError("choosing on one half and reporting on the other needs at least two groups of items")
    names = list(members)
    order = np.random.default_rng(seed).permutation(len(names))
    n_items: dict[tuple[str, bool], int] = {}
    chooses = np.zeros(len(items), bool)
    for name in (names[i] for i in order):
        kind, size = items[members[name][0]].kind, len(members[name])
        has = {half: (n_items.get((kind, half), 0), n_items.get(("", half), 0)) for half in (True, False)}
        half = has[True] <= has[False]
        chooses[members[name]] = half
        for key in {(kind, half), ("", half)}:  # "" counts all kinds
            n_items[key] = n_items.get(key, 0) + size
    return chooses


def choose_heads(looks: Looks, n: int = 5) -> list[Chosen]:
    """Choose the n best heads on one half of the items and say how they do on the other, best on the first half first.

    Args:
        looks: items of at least two groups.
        n: how many heads.

    Raises:
        ValueError: fewer than two groups.
    """
    chooses = halves(looks.items)
    on, off = score(take(looks, chooses), draws=1), score(take(looks, ~chooses))
    return [
        Chosen(
            layer=looks.layers[row],
            head=head,
            chosen_at=float(on.accuracy[row, head]),
            n_chosen_on=on.n,
            rate=Rate(*(float(rates[row, head]) for rates in (off.accuracy, off.low, off.high))),
            n=off.n,
            n_groups=off.n_groups,
            answer=float(off.answer[row, head]),
            distractor=float(off.distractor[row, head]),
        )
        for row, head in _ranking(on)[:n]
    ]


def _ranking(scores: Scores) -> list[tuple[int, int]]:
    """Return (row, head) of all heads, best first."""
    accuracy = np.nan_to_num(scores.accuracy, nan=-1.0)
    gap = np.nan_to_num(scores.answer - scores.distractor, nan=-2.0)
    order = np.lexsort((-gap.ravel(), -accuracy.ravel()))
    rows, heads = np.unravel_index(order, accuracy.shape)
    real = ~np.isnan(scores.accuracy[rows, heads])
    return list(zip(rows[real].tolist(), heads[real].tolist(), strict=True))
