"""Does a head matter for the next word? One sentence from what it looks at, what it adds, and what changes without it.

A head can look at a word and push the model away from it, and can push without any consequence. NumPy only.
"""

import numpy as np
from numpy.typing import ArrayLike

from attnviz.core.heads.in_words import percent

CHANCE = 0.5  # a logit difference below this is as good as none: the likelier of two words has at most 62 % of both
RARE = 0.001  # the model expects something else altogether where both words are below this
SMALL = 0.05  # as a share of the logit difference
LOOK = 0.1  # a word that gets less of the head's weight isn't looked at
HALF, TWICE = 0.5, 2.0  # an effect from half to twice of what the head adds by itself is just that


def verdict(
    *,
    words: tuple[str, str],
    probabilities: tuple[float, float],
    difference: float,
    head: str,
    looks: tuple[float | None, float | None],
    direct: float,
    effect: float,
    others: ArrayLike,
) -> str:
    """Say in one sentence whether a head matters for which of two words comes next, and how.

    In this order: the model itself can't tell the words apart; nothing changes without the head, where nothing means
    less than 5 % of the difference and no more than some other head of its layer changes; else what the head looks at,
    which word it votes for by itself, and whether the difference without it changes as that vote says.

    Args:
        words: two candidates for the next word, as they are to be called (not escaped).
        probabilities: of each as the next word.
        difference: logit of the first word minus logit of the second.
        head: its name, such as "L24 H4".
        looks: its weight on each word, seen from the last token; None for a word that isn't in the text.
        direct: what it adds by itself to the difference.
        effect: the difference without the head minus the difference with it.
        others: (heads - 1,) effects of the other heads of its layer, the spread that an effect is held against.

    Raises:
        ValueError: a number that isn't finite.

    >>> verdict(words=("Mary", "John"), probabilities=(0.92, 0.002), difference=6.12, head="L24 H4",
    ...         looks=(0.81, 0.08), direct=-1.07, effect=0.72, others=[0.3, 0.5])
    'L24 H4 looks at “Mary” (0.81) but votes against “Mary” (−1.07), and without it the lead of “Mary” over “John” grows from 6.12 to 6.84 logits.'
    """  # noqa: E501 - the sentence is what is shown
    spread = np.abs(np.asarray(others, np.float64))
    _check([*probabilities, difference, direct, effect, *spread, *(look for look in looks if look is not None)])
    chances = ", ".join(f"“{word}” {percent(p)}" for word, p in zip(words, probabilities, strict=True))
    if max(probabilities) < RARE:
        return f"The model expects neither word here ({chances}), so nothing can be concluded."
    if abs(difference) < CHANCE:
        gap = f"logit difference {_signed(difference)}"
        return f"The model is at chance here ({chances}, {gap}), so nothing can be concluded."
    change = _change(words, difference, effect)
    votes = abs(direct) >= SMALL * abs(difference)
    deed = _deed(words, looks, direct, votes)
    if abs(effect) < SMALL * abs(difference) and (spread.size == 0 or abs(effect) <= spread.max()):
        link, reason = ("yet", ": the rest of the model makes up for its vote") if votes else ("and", "")
        return f"No effect: {head} {deed}, {link} without it {change}{reason}."
    link, reason = _outcome(direct, effect, votes)
    return f"{head} {deed}, {link} without it {change}{reason}."


def _deed(words: tuple[str, str], looks: tuple[float | None, float | None], direct: float, votes: bool) -> str:
    """Say what a head looks at and which word it votes for.

    >>> _deed(("are", "is"), (None, None), 3.22, True)
    'votes for “are” (+3.22)'
    """
    known = {word: look for word, look in zip(words, looks, strict=True) if look is not None}
    seen = max(known, key=lambda word: known[word], default=None)
    favoured = words[0] if direct > 0 else words[1]
    if seen is None:
        return f"votes for “{favoured}” ({_signed(abs(direct))})" if votes else _hardly_votes(favoured, direct)
    if known[seen] < LOOK:
        look = "looks at neither word" if len(known) == 2 else f"hardly looks at “{seen}” ({known[seen]:.2f})"
        vote, link = f"votes for “{favoured}” ({_signed(abs(direct))})", "but"
    else:
        look = f"looks at “{seen}” ({known[seen]:.2f})"
        link, side, sign = ("and", "for", 1) if seen == favoured else ("but", "against", -1)
        vote = f"votes {side} “{seen}” ({_signed(sign * abs(direct))})"
    if votes:
        return f"{look} {link} {vote}"
    return f"{look} {'and' if known[seen] < LOOK else 'but'} {_hardly_votes(favoured, direct)}"


def _hardly_votes(favoured: str, direct: float) -> str:
    return f"hardly votes by itself ({_signed(abs(direct))} for “{favoured}”)"


def _outcome(direct: float, effect: float, votes: bool) -> tuple[str, str]:
    """Return how an effect goes with a vote: a joining word, and the reason where the two disagree.

    >>> _outcome(2.0, -1.9, True), _outcome(2.0, 0.5, True)[0]
    (('and', ''), 'yet')
    """
    if not votes:
        return "yet", ": it acts through the rest of the model"
    share = -effect / direct  # of the vote that goes missing with the head
    if share < 0:
        return "yet", ": the rest of the model more than makes up for its vote"
    if share < HALF:
        return "yet", ": the rest of the model makes up for most of its vote"
    return "and", ": the rest of the model builds on it" if share > TWICE else ""


def _change(words: tuple[str, str], difference: float, effect: float) -> str:
    """Say what becomes of the lead that one word has over the other.

    >>> _change(("a", "b"), -2.0, 3.0)
    'the lead of “b” over “a” turns from 2.00 to −1.00 logits'
    """
    leader, other = words if difference > 0 else words[::-1]
    lead, after = abs(difference), abs(difference) + (effect if difference > 0 else -effect)
    subject = f"the lead of “{leader}” over “{other}”"
    if f"{lead:.2f}" == f"{after:.2f}":
        return f"{subject} stays at {lead:.2f} logits"
    verb = "turns" if after < 0 else "falls" if after < lead else "grows"
    return f"{subject} {verb} from {lead:.2f} to {_signed(after).removeprefix('+')} logits"


def _signed(value: float) -> str:
    """Return a number with its sign, two digits behind the point and a true minus.

    >>> _signed(-1.071), _signed(-0.001)
    ('−1.07', '0.00')
    """
    text = f"{value:+.2f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def _check(numbers: list[float]) -> None:
    if not np.isfinite(numbers).all():
        raise ValueError(f"expected finite numbers, got {[float(number) for number in numbers]}")
