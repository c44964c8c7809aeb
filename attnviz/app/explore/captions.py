"""Sentences about the large map: what a cell is, what was left out and how much went with it."""

import numpy as np
import streamlit as st

from attnviz.app.explore.cut import Cut
from attnviz.app.explore.sources import source_map
from attnviz.app.shell.visit import Visit
from attnviz.core.text.words import word_spans
from attnviz.figures import first_column_share

SINK = 0.2  # from this share of the weight on, the first token is called a sink
GONE = 0.1  # below this share a sink is gone


def heading(visit: Visit, shows: str) -> str:
    """Return what stands over the map."""
    if shows == "rollout":
        return f"All heads, layers {_layers(visit)}: what comes from where"
    return f"{visit.name}: " + ("how much it writes of each token" if shows == "written" else "who looks at whom")


def caption(visit: Visit, cut: Cut) -> str:
    """Return the sentences below the map, as plain text."""
    if cut.view == "difference" and not np.abs(cut.values).max() > 0:
        return " ".join([*_what(visit, cut), *_left_out(cut), _why_no_difference(visit, cut)])
    return " ".join([*_what(visit, cut), *_left_out(cut), *_sink(visit, cut)])


def _what(visit: Visit, cut: Cut) -> list[str]:
    """Say what a cell is where it isn't simply a head's weight."""
    if cut.shows == "words":
        signs = word_spans(visit.text, characters=True) != word_spans(visit.text)
        word = "what stands between white space" + (", or one Chinese or Japanese character" if signs else "")
        return [f"A column sums over the tokens of a word, a row is the mean over them; a word is {word}."]
    if cut.shows == "written":
        return ["A cell is the weight times the length of what the head writes for that token, |a · v W_O|."]
    if cut.shows == "rollout":
        off = " Heads that are off still count." if visit.switches.ablate else ""
        return [
            f"All heads, layers {_layers(visit)}, whichever head is selected: each layer's mean over heads, half of it "
            f"the token itself, multiplied from the first layer to the last.{off}"
        ]
    return []


def _left_out(cut: Cut) -> list[str]:
    """Say what the rows give to columns that aren't there."""
    of = {"written": "size", "rollout": "share"}.get(cut.shows, "weight")
    sentences = []
    if "special" in cut.column_groups:
        names = _named(
            item.label for item, group in zip(cut.columns, cut.column_groups, strict=True) if group == "special"
        )
        sentences.append(f"{names} hidden: {cut.share('special'):.0%} of these rows' {of} goes there.")
    if "space" in cut.column_groups:
        sentences.append(f"Tokens of white space belong to no word: {cut.share('space'):.0%} of the {of} goes there.")
    if "outside" in cut.column_groups:
        sentences.append(f"{cut.share('outside'):.0%} of these rows' {of} lies on tokens outside this part.")
    return sentences


def _sink(visit: Visit, cut: Cut) -> list[str]:
    """Say what goes to the first token, and to a learned sink."""
    if cut.view == "difference":
        return []
    sentences = []
    lost = 1 - float(cut.shares.sum(axis=1).mean())
    if cut.shows in ("tokens", "words") and lost > 1e-3:
        sentences.append(f"Rows sum to less than 1: {lost:.0%} goes to this head's learned sink, which has no column.")
    if cut.column_groups[0] != "shown":
        return sentences
    share, aside = _first(cut.shares, cut)
    noun = "word" if cut.shows == "words" else "token"
    if not np.isfinite(share):
        return sentences
    if cut.shows == "written":
        sentences.append(_lowered(visit, cut, share))
    elif st.session_state.colours != "without_first":
        of = "weight" if cut.shows != "rollout" else "row"
        sentences.append(f"The first {noun} gets {share:.0%} of the {of} on average{aside}.")
    return sentences


def _first(shares: np.ndarray, cut: Cut) -> tuple[float, str]:
    """Return the mean share of the first column, and what to add if a row that can look nowhere else is left out."""
    allowed = cut.allowed[cut.shown_rows]
    return first_column_share(shares, allowed), ", row 0 aside" if (allowed.sum(axis=1) == 1).any() else ""


def _lowered(visit: Visit, cut: Cut, size: float) -> str:
    """Say by how much the first token's share falls when the size of what is written counts."""
    queries = slice(cut.rows[0].tokens[0], cut.rows[-1].tokens[0] + 1)
    weights, _ = source_map(visit, "tokens", cut.view, queries)
    weight, aside = _first(weights[cut.shown_rows], cut)
    numbers = f"the first token has {weight:.0%} of the weight and {size:.0%} of the size on average{aside}"
    if weight < SINK or size >= weight:
        return f"{numbers[0].upper()}{numbers[1:]}."
    return f"This {'lowers the sink, it doesn’t cure it' if size >= GONE else 'takes the sink away'}: {numbers}."


def _why_no_difference(visit: Visit, cut: Cut) -> str:
    if cut.shows == "rollout":
        return "Nothing changes in any layer's map."
    if (visit.layer, visit.head) in visit.switches.ablate:
        return "A head that is off keeps its own map: only what it writes is gone. Look at later layers."
    return "Nothing changes in this head."


def _layers(visit: Visit) -> str:
    layers = visit.rest.layers_of(visit.part)
    return f"{layers[0]} to {layers[-1]}"


def _named(labels) -> str:
    names = list(dict.fromkeys(labels))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
