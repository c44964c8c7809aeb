"""Pairs of texts that are worth comparing, from `pairs.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import streamlit as st

from attnviz.app.explore.compare.sides import Side
from attnviz.app.shell import controls
from attnviz.app.shell.examples import word_token
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import ask_whole_page
from attnviz.core.trace.maps import Maps

FILE = resources.files("attnviz.app.explore.compare") / "pairs.toml"


@dataclass(frozen=True)
class Pair:
    """Two texts, and what to look at in them; the file explains the fields."""

    title: str
    text: str
    b_text: str
    query: str
    b_query: str
    keys: tuple[str, ...]
    model: str
    layer: int
    head: int
    caption: str

    def rows(self, trace: Maps, b_trace: Maps) -> tuple[int, int]:
        """Return which token looks in the first text, and which in the other.

        Raises:
            ValueError: it isn't there.
        """
        return word_token(trace, self.query, -1), word_token(b_trace, self.b_query, -1)

    def says(self, a: Side, b: Side) -> str:
        """Return what the looking words give to the others in both texts, as Markdown.

        Raises:
            ValueError: a word isn't in its text.
        """
        sentences = []
        for side, word, query in zip((a, b), (self.query, self.b_query), self.rows(a.trace, b.trace), strict=True):
            row = side.head.row(query)
            looks = [f"“{key}” **{row[word_token(side.trace, key, 0)]:.2f}**" for key in self.keys]
            sentences.append(f"{side.letter}: “{word.strip()}” gives {' and '.join(looks)}.")
        own = (a.trace.model.name, a.head.layer, a.head.head) == (self.model, self.layer, self.head) and a.at_rest
        return " ".join([*sentences, self.caption] if own else sentences)


@cache
def all_pairs() -> tuple[Pair, ...]:
    """Return all pairs in the order of the file."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["pair"]
    return tuple(Pair(**{**entry, "keys": tuple(entry["keys"])}) for entry in entries)


def pair_of(text: str, b_text: str) -> Pair | None:
    """Return the pair that is on the screen, if any."""
    return next((pair for pair in all_pairs() if (pair.text, pair.b_text) == (text, b_text)), None)


def pair_buttons() -> None:
    """Show a button for each pair; a click takes both texts, and the model and head that they are about."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare-pairs"):
        st.markdown("Pairs:", width="content")
        for number, pair in enumerate(all_pairs()):
            st.button(
                plain(pair.title),
                key=f"compare-pair-{number}",
                type="tertiary",
                help=plain(pair.b_text),
                on_click=_take,
                args=(pair,),
            )


def _take(pair: Pair) -> None:
    controls.new_text(pair.text)
    controls.rest()
    chosen = st.session_state
    chosen.draft, chosen.b_text, chosen.query, chosen.key = pair.text, pair.b_text, None, None
    chosen.model, chosen.layer, chosen.head = pair.model, pair.layer, pair.head
    ask_whole_page()
