"""Compare's two maps with one range of colours, the strongest keys of one row in both, and the next tokens."""

from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.explore.compare.sides import HEIGHT, Side, Tile, isolated, numbered
from attnviz.app.explore.compare.text_pairs import Pair
from attnviz.app.shell.examples import example_of
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import TokenMap, draw_map
from attnviz.core.compare.side_by_side import rows_must_agree, same_tokens, strongest_keys, token_partners
from attnviz.core.maps.choice import Scale
from attnviz.core.text.words import word_of_tokens
from attnviz.figures.bars import percent

N_KEYS = 5  # of a row that are listed
SINK = 1e-3  # a share of weight on a learned sink that is worth a sentence
SAME = 1e-6  # rows that differ by less are the same but for rounding


def rows(visit: Visit, chosen: int | None, sides: tuple[Tile, Tile], pair: Pair | None) -> tuple[int, int]:
    """Return which row of each tile is listed: the chosen query's, the pair's, the example's, or the last word's.

    B's row is that of the same token, or the last piece of the same word, or what stands in its place in another text,
    or else B's last word.
    """
    a, b = sides
    if chosen is None and pair is not None:
        places = pair.rows(a.side.trace, b.side.trace)
        one, other = (_place(tile, query) for tile, query in zip(sides, places, strict=True))
        if one is not None and other is not None:
            return one, other
    row = _place(a, _query(visit) if chosen is None else chosen)
    row = _last_word(a) if row is None else row
    one_text = a.side.of_text and b.side.of_text and a.side.trace.text == b.side.trace.text
    if one_text and not same_tokens(a.queries, b.queries):
        partner = _same_word(a, b, row)
    else:
        partner = int(token_partners(a.queries, b.queries).place[row])
    return row, partner if partner >= 0 else _last_word(b)


def maps(sides: tuple[Tile, Tile], looking: tuple[int, int], scale: Scale, theme: str) -> None:
    """Draw both maps in the same size and the same colours."""
    highest = _highest(*sides) if scale == "without_first" else 1.0
    look = {"scale": scale, "value_range": (0.0, highest), "theme": theme}
    columns = st.columns(2, gap="medium")
    for column, tile, row, key in zip(columns, sides, looking, ("compare-a", "compare-b"), strict=True):
        with column:
            _one_map(tile, key, highlight_query=tile.queries[row].index, **look)


def _one_map(tile: Tile, key: str, **look: Any) -> None:
    shown, side = TokenMap(tile.weights, tile.allowed, tile.queries, tile.keys), tile.side
    name = f"compare {side.letter} {side.words}"
    draw_map(shown, key, name, about=side.about, title=side.title, height=HEIGHT, **look)
    left_out = _what_is_left_out(tile)
    if left_out:
        st.caption(left_out)


def strongest(a: Tile, b: Tile, looking: tuple[int, int]) -> None:
    """List the keys that one query looks at most, A's and B's beside each other."""
    found = [
        [
            (numbered(tile.keys[key]), f"{weight:.2f}")
            for key, weight in strongest_keys(tile.weights[row], tile.allowed[row], N_KEYS)
        ]
        for tile, row in zip((a, b), looking, strict=True)
    ]
    heads = [
        f"{tile.side.letter}: {numbered(tile.queries[row])} looks at" for tile, row in zip((a, b), looking, strict=True)
    ]
    lines = [f"| {plain(heads[0])} | weight | {plain(heads[1])} | weight |", "|:--|--:|:--|--:|"]
    for place in range(max(map(len, found))):
        cells = [each[place] if place < len(each) else ("", "") for each in found]
        lines.append("| " + " | ".join(f"{plain(label)} | {weight}" for label, weight in cells) + " |")
    st.markdown("\n".join(lines))
    st.caption("The framed rows. Choose a query under the large map to see another one.")


def next_tokens(a: Side, b: Side) -> None:
    """Say what both passes take for the likeliest next token, if they are two and predict one."""
    if a.trace is b.trace or a.trace.next_logits is None and b.trace.next_logits is None:
        return
    guesses = []
    for side in (a, b):
        if side.trace.next_logits is None:
            guesses.append(f"{side.letter} predicts none")
            continue
        ((label, share),) = side.trace.next_tokens(1)
        guesses.append(f"{side.letter} “{isolated(label)}”, {percent(share)}")
    st.markdown(plain(f"Likeliest next token: {'; '.join(guesses)}."))


def causal_rows(a: Tile, b: Tile) -> None:
    """Say that rows before the first difference of two texts are equal where no token sees a later one."""
    if a.side.trace.text == b.side.trace.text or np.triu(a.allowed, 1).any() or np.triu(b.allowed, 1).any():
        return
    partners = token_partners(a.queries, b.queries)
    alike = partners.same & (partners.place == np.arange(len(a.queries)))
    n = len(alike) if alike.all() else int(alike.argmin())
    if n == 0 or a.queries[0].index != b.queries[0].index or a.queries[0].index > 0:
        return
    if not rows_must_agree(a.side.trace, b.side.trace, n, shown=(a.side.head.switches, b.side.head.switches)):
        return
    gap = float(np.abs(a.weights[:n, :n] - b.weights[:n, :n]).max())
    if gap >= SAME and a.side.trace.model.dtype != "float32":
        return  # so few digits may round differently in texts of different length
    last = numbered(a.queries[n - 1])
    equal = "to the last bit" if gap == 0 else "but for rounding"
    st.markdown(
        plain(
            f"Up to {last} both texts are the same, and no token sees a later one here, so their rows must be equal, "
            + (f"and are, {equal}." if gap < SAME else f"but differ by up to {gap:.1e}.")
        )
    )


def _query(visit: Visit) -> int | None:
    """Return the token that the example on the page is about."""
    example = example_of(visit.text, visit.choice.name, visit.layer, visit.head)
    return example.cell(visit.rest)[0] if example else None


def _place(tile: Tile, query: int | None) -> int | None:
    """Return the tile's row of a token of the text, None if it isn't in the tile."""
    return next((row for row, token in enumerate(tile.queries) if token.index == query), None)


def _last_word(tile: Tile) -> int:
    return max((row for row, token in enumerate(tile.queries) if not token.special), default=0)


def _same_word(a: Tile, b: Tile, row: int) -> int:
    """Return B's token that reads the same in the same word, else the word's last one, -1 if there is none."""
    words, words_there = (word_of_tokens(tile.queries, tile.side.trace.text) for tile in (a, b))
    partners = token_partners(a.queries, b.queries)
    if partners.same[row] and words[row] == words_there[partners.place[row]]:
        return int(partners.place[row])
    following = words[row:][words[row:] >= 0][:1] if not a.queries[row].special else words[:0]  # a space has no word
    found = np.flatnonzero(np.isin(words_there, following))
    return int(found[-1]) if found.size else -1


def _highest(a: Tile, b: Tile) -> float:
    """Return the upper end of the colours that both maps share, the first token aside."""
    firsts = [1 if tile.keys[0].index == 0 and len(tile.keys) > 1 else 0 for tile in (a, b)]
    largest = max(
        float(np.where(tile.allowed, tile.weights, 0)[:, first:].max())
        for tile, first in zip((a, b), firsts, strict=True)
    )
    return largest or 1.0


def _what_is_left_out(tile: Tile) -> str:
    """Say what is outside a part of a long text, and what goes to a learned sink."""
    first, last, n_keys = tile.keys[0].index, tile.keys[-1].index, len(tile.side.head.tokens[1])
    sentences = []
    if len(tile.keys) < n_keys:
        part = f"Tokens {first} to {last} of {n_keys:,}"
        sentences.append(f"{part}; {tile.outside:.0%} of these rows' weight lies outside.")
    sink = float(tile.sink.mean())
    if sink > SINK:
        sentences.append(f"Rows sum to less than 1: {sink:.0%} goes to this head's learned sink, which has no column.")
    return " ".join(sentences)
