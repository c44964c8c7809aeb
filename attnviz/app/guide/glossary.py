"""The words of the app, one click away: a sentence, a formula with its shapes, a place to see it. Needs streamlit."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from urllib.parse import urlencode

import streamlit as st

FILE = resources.files("attnviz.app.guide") / "glossary.toml"
LETTERS = "$T$ tokens, $d$ numbers in a key, $d_{\\text{model}}$ in a model's vectors, $h$ heads, $V$ tokens known."


@dataclass(frozen=True)
class Term:
    """A word: what it means, its formula in LaTeX, and where in the app to see it.

    Attributes:
        name: as people look it up; `text`: one sentence or two; `formula`: LaTeX with the shapes.
        at: what the place to see it is called; `see`: its page, and the choices of the link to it.
    """

    name: str
    text: str
    formula: str
    at: str
    see: dict[str, str]

    @property
    def link(self) -> str:
        """The address of the place, relative to any page of the app."""
        page = self.see["page"].removeprefix("explore")
        choices = {name: text for name, text in self.see.items() if name != "page"}
        return f"{page or './'}?{urlencode(choices)}"


@cache
def terms() -> tuple[Term, ...]:
    """Return all terms in the order of the file."""
    return tuple(Term(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["term"])


def find_terms(words: str) -> tuple[Term, ...]:
    """Return the terms that hold all of these words, those that hold them in their name first.

    >>> [term.name for term in find_terms("causal mask")][0]
    'Causal mask'
    """
    wanted = words.casefold().split()

    def holds(text: str) -> bool:
        return all(word in text.casefold() for word in wanted)

    found = [term for term in terms() if holds(f"{term.name} {term.text}")]
    return tuple(sorted(found, key=lambda term: not holds(term.name)))


def glossary_button() -> None:
    """Show the button, and the glossary once it is pressed."""
    if st.button("Glossary", key="glossary", icon=":material/menu_book:", help="What the words mean, with formulas."):
        _glossary()


@st.dialog("Glossary", width="medium", position="right")
def _glossary() -> None:
    words = st.text_input(
        "Search", key="glossary-search", type="search", live=True, placeholder="a word, such as mask or cache"
    )
    found = find_terms(words or "")
    st.caption(f"{len(found)} of {len(terms())} words. Links open beside your own work. {LETTERS}")
    entries = "\n\n".join(_entry(term) for term in found)
    with st.container(key="glossary-entries"):
        st.markdown(entries or "No entry holds these words.", anchors=False)


def _entry(term: Term) -> str:
    return f"### {term.name}\n\n{term.text}\n\n$$\n{term.formula}\n$$\n\n[See it: {term.at}]({term.link})"
