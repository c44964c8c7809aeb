"""Compare's map of B minus A: token by token where the tokens agree, word by word where only the text does."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.compare.sides import HEIGHT, Side, Tile, isolated, numbered
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import TokenMap, draw
from attnviz.app.show.heads_map import signed
from attnviz.core.compare.side_by_side import (
    Difference,
    Partners,
    largest_change,
    map_difference,
    same_tokens,
    token_partners,
    word_map,
)
from attnviz.core.text.words import word_of_tokens, word_spans
from attnviz.core.trace.records import Token

MOST_NAMED = 4  # tokens without a partner that are named
LITTLE = 0.005  # a share of weight that isn't worth a sentence
CUT = "the two models cut the text into different tokens"
WORDS = f"{CUT.capitalize()}, so words are compared: sums over a word's keys, means over its queries."


@dataclass(frozen=True, eq=False)
class Compared:
    """B minus A in A's rows and columns, its `unit` "token" or "word", and what there is to say about it.

    Attributes:
        change: the largest difference in words.
        left_out: what the map doesn't show, "" if it shows all.
    """

    found: Difference
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    unit: str
    change: str
    left_out: str


def subtract(a: Tile, b: Tile) -> Compared:
    """Return B minus A.

    Raises:
        ValueError: nothing agrees that could be subtracted.
    """
    if min(len(a.keys), len(b.keys)) < 2:
        raise ValueError("a text of one token leaves no choice of where to look, so there is no map of differences")
    unit, left_out = "token", ""
    if a.side.trace.text == b.side.trace.text and not (
        same_tokens(a.queries, b.queries) and same_tokens(a.keys, b.keys)
    ):
        a, b = _as_words(a, b)
        unit = "word"
        left_out = f"{WORDS} {_to_no_word(a, b)}"
    rows, columns = token_partners(a.queries, b.queries), token_partners(a.keys, b.keys)
    if rows.same.sum() < min(2, len(a.queries)) or columns.same.sum() < 2:
        raise ValueError("the two texts share too few tokens for a map of differences")
    found = map_difference(a.weights, b.weights, a.allowed, b.allowed, rows, columns)
    left_out = left_out or _left_out(a, b, rows, columns)
    return Compared(found, a.queries, a.keys, unit, _name_change(a, b, found, rows, columns), left_out)


def draw_difference(visit: Visit, compared: Compared, a: Side, b: Side) -> None:
    """Draw the map of B minus A."""
    found, queries, keys = compared.found, compared.queries, compared.keys
    figure = TokenMap(found.values, found.seen | found.unpaired, queries, keys).figure(
        kind="difference",
        unpaired=found.unpaired if found.unpaired.any() else None,
        title=f"B − A, {compared.unit} by {compared.unit}",
        theme=visit.theme,
        height=HEIGHT,
    )
    table = TokenMap(found.values, found.seen, queries, keys).table
    name = f"compare {a.words} with {b.words.removeprefix(f'{a.trace.model.title} ')}"
    draw(figure, "compare-difference", name, table, about=_facts(a, b))


def say_difference(compared: Compared) -> None:
    """Name the largest difference, and what is left out."""
    st.markdown(plain(compared.change))
    if compared.left_out:
        st.caption(plain(compared.left_out))


def _facts(a: Side, b: Side) -> dict[str, Any]:
    """Return what is true of the difference: what both sides are, and the text and switches that they share."""
    sides = {"a": a.about, "b": b.about}
    shared = {name: sides["a"][name] for name in ("text", "switches") if sides["a"][name] == sides["b"][name]}
    return shared | sides


def _left_out(a: Tile, b: Tile, rows: Partners, columns: Partners) -> str:
    """Say which tokens only one side has, and how much weight the compared rows give them."""
    if columns.same.all() and len(a.keys) == len(b.keys):
        return ""
    there = np.ones(len(b.keys), bool)
    there[columns.place[columns.same]] = False
    sides = (
        (a, ~columns.same, np.flatnonzero(rows.same)),
        (b, there, rows.place[rows.same]),
    )
    parts = []
    for tile, alone, kept in sides:
        names = [isolated(tile.keys[i].label) for i in np.flatnonzero(alone)]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            share = float(tile.weights[kept][:, alone].sum(axis=1).mean())
            given = f"{share:.0%} of the other rows' weight"
            parts.append(f"{tile.side.letter}'s {', '.join(names[:MOST_NAMED])}{more} ({given})")
    return f"Left out, since only one side has them: {'; '.join(parts)}." if parts else ""


def _as_words(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    """Return both tiles as maps of the words that both show."""
    if any(not tile.side.of_text for tile in (a, b)):
        raise ValueError(f"{CUT}, and this part looks at another text: there is no map of differences")
    text = a.side.trace.text
    words = [word_of_tokens(tile.keys, text) for tile in (a, b)]
    both = sorted(set(words[0]) & set(words[1]) - {-1})
    if len(both) < 2:
        raise ValueError(f"{CUT}, and they show fewer than two words in common: there is no map of differences")
    first, n_words = int(both[0]), int(both[-1] - both[0]) + 1
    spans = word_spans(text)[first : first + n_words]
    names = tuple(Token(first + i, 0, text[a:b], text[a:b], a, b, False) for i, (a, b) in enumerate(spans))
    return _word_tile(a, names, words[0] - first), _word_tile(b, names, words[1] - first)


def _word_tile(tile: Tile, names: tuple[Token, ...], word: NDArray[np.int64]) -> Tile:
    """Return a tile as a map of words, `word` the one of each token."""
    sink = [tile.sink[word == place].mean() if place in word else 0 for place in range(len(names))]
    maps = word_map(tile.weights, tile.allowed, word, len(names))
    return Tile(tile.side, names, names, *maps, np.array(sink))


def _to_no_word(a: Tile, b: Tile) -> str:
    lost = [f"{tile.outside:.0%} in {tile.side.letter}" for tile in (a, b) if tile.outside > LITTLE]
    return f"Weight on tokens that belong to none of them is left out: {', '.join(lost)}." if lost else ""


def _name_change(a: Tile, b: Tile, found: Difference, rows: Partners, columns: Partners) -> str:
    """Name the largest difference of the rows that have a choice in both maps."""
    choice = (a.allowed.sum(axis=1) > 1) & (b.allowed.sum(axis=1) > 1)[rows.place]
    cell = largest_change(replace(found, seen=found.seen & choice[:, None]))
    if cell is None:
        if (a.side.head.layer, a.side.head.head) in a.side.trace.switches.ablate:
            return "A head that is off keeps its own map: only what it writes is gone."
        return "Both maps are equal wherever they can be compared."
    query, key = cell
    one, other = float(a.weights[query, key]), float(b.weights[rows.place[query], columns.place[key]])
    look = f"{numbered(a.queries[query])} → {numbered(a.keys[key])}"
    only = "" if choice[rows.same].all() else ", rows with a single key aside"
    return f"Largest difference{only}: {look}, {one:.2f} in A and {other:.2f} in B ({signed(other - one)})."
