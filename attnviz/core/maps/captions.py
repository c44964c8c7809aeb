"""Sentences about a map: what a cell is, what was left out and how much went with it. NumPy only."""

from collections.abc import Iterable

import numpy as np

from attnviz.core.maps.choice import MapChoice
from attnviz.core.maps.cut import SHOWN, Cut
from attnviz.core.text.words import word_spans
from attnviz.core.trace.head import Head
from attnviz.core.values.first_column import first_column_share

SINK = 0.2  # from this share of the weight on, the first token is called a sink
GONE = 0.1  # below this share a sink is gone


def heading(head: Head, shows: str) -> str:
    """Return what stands over the map."""
    if shows == "rollout":
        return f"All heads, layers {_layers(head)}: what comes from where"
    return f"{head.name}: " + ("how much it writes of each token" if shows == "written" else "who looks at whom")


def caption(cut: Cut, choice: MapChoice, head: Head, after: Head) -> str:
    """Return the sentences below the map, as plain text.

    Args:
        cut: the map.
        choice: what it shows.
        head: whose numbers they are, its tile the rows of the map; `after`: the same head under the switches.
        after: see `head`.
    """
    sentences = [choice.reason, *_what(choice, after), *_left_out(cut, choice.shows)]
    if not cut.difference:
        sentences += _learned_sink(cut, choice.shows) + _first_token(cut, choice, head)
    elif not np.abs(cut.values).max() > 0:
        sentences.append(_why_no_difference(choice.shows, after))
    return " ".join(sentences).strip()


def _what(choice: MapChoice, after: Head) -> list[str]:
    """Say what a cell is where it isn't simply a head's weight."""
    text = after.trace.text
    if choice.shows == "words":
        signs = word_spans(text, characters=True) != word_spans(text)
        word = "what stands between white space" + (", or one Chinese or Japanese character" if signs else "")
        return [f"A column sums over the tokens of a word, a row is the mean over them; a word is {word}."]
    if choice.shows == "written":
        return ["A cell is the weight times the length of what the head writes for that token, |a · v W_O|."]
    if choice.shows == "rollout":
        off = " Heads that are off still count." if after.trace.switches.ablate else ""
        return [
            f"All heads, layers {_layers(after)}, whichever head is selected: each layer's mean over heads, half of it "
            f"the token itself, multiplied from the first layer to the last.{off}"
        ]
    return []


def _left_out(cut: Cut, shows: str) -> list[str]:
    """Say what the rows give to columns that aren't there."""
    of = {"written": "size", "rollout": "share"}.get(shows, "weight")
    columns, sentences = cut.columns, []
    if "special" in columns.groups:
        names = _named(item.label for item, gone in zip(columns.items, columns.are("special"), strict=True) if gone)
        sentences.append(f"{names} hidden: {cut.share('special'):.0%} of these rows' {of} goes there.")
    if "space" in columns.groups:
        sentences.append(f"Tokens of white space belong to no word: {cut.share('space'):.0%} of the {of} goes there.")
    if "outside" in columns.groups:
        sentences.append(f"{cut.share('outside'):.0%} of these rows' {of} lies on tokens outside this part.")
    return sentences


def _learned_sink(cut: Cut, shows: str) -> list[str]:
    lost = 1 - float(cut.shares.sum(axis=1).mean())
    if shows in ("tokens", "words") and lost > 1e-3:
        return [f"Rows sum to less than 1: {lost:.0%} goes to this head's learned sink, which has no column."]
    return []


def _first_token(cut: Cut, choice: MapChoice, head: Head) -> list[str]:
    """Say what goes to the first token."""
    share, aside = _first(cut.shares, cut)
    if cut.columns.groups[0] != SHOWN or not np.isfinite(share):
        return []
    if choice.shows == "written":
        return [_lowered(cut, head, share)]
    if choice.scale == "without_first":
        return []
    noun, of = "word" if choice.shows == "words" else "token", "row" if choice.shows == "rollout" else "weight"
    return [f"The first {noun} gets {share:.0%} of the {of} on average{aside}."]


def _first(shares: np.ndarray, cut: Cut) -> tuple[float, str]:
    """Return the mean share of the first column, and what to add if a row that can look nowhere else is left out."""
    allowed = cut.allowed[cut.rows.shown]
    return first_column_share(shares, allowed), ", row 0 aside" if (allowed.sum(axis=1) == 1).any() else ""


def _lowered(cut: Cut, head: Head, size: float) -> str:
    """Say by how much the first token's share falls when the size of what is written counts."""
    weight, aside = _first(head.weights[cut.rows.shown], cut)
    numbers = f"the first token has {weight:.0%} of the weight and {size:.0%} of the size on average{aside}"
    if weight < SINK or size >= weight:
        return f"{numbers[0].upper()}{numbers[1:]}."
    return f"This {'lowers the sink, it doesn’t cure it' if size >= GONE else 'takes the sink away'}: {numbers}."


def _why_no_difference(shows: str, after: Head) -> str:
    if shows == "rollout":
        return "Nothing changes in any layer's map."
    if (after.layer, after.head) in after.trace.switches.ablate:
        return "A head that is off keeps its own map: only what it writes is gone. Look at later layers."
    return "Nothing changes in this head."


def _layers(head: Head) -> str:
    layers = head.trace.layers_of(head.part)
    return f"{layers[0]} to {layers[-1]}"


def _named(labels: Iterable[str]) -> str:
    names = list(dict.fromkeys(labels))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
