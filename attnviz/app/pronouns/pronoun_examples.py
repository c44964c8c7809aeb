"""The example sentences of the page Pronouns, from `examples.toml`."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import streamlit as st

from attnviz.app.pronouns.best_heads import board_of, looks_of
from attnviz.app.pronouns.question import Question
from attnviz.app.shell import controls
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.core.text.words import split_words

FILE = resources.files("attnviz.app.pronouns") / "examples.toml"


@dataclass(frozen=True)
class Example:
    """A sentence, what to ask about it, and what to look at; the file explains the fields."""

    name: str
    language: str
    title: str
    text: str
    pronoun: str
    candidates: tuple[str, ...]
    answer: str
    model: str
    layer: int
    head: int
    caption: str
    pair: str = ""
    lead: str = "on"
    topic: str = "look"
    word: str = ""
    rival: str = ""

    def place(self, word: str, occurrence: int = 0) -> int:
        """Return which word of the text that is.

        Raises:
            ValueError: it isn't there.
        """
        words = [self.text[start:end] for start, end in split_words(self.text)]
        places = [place for place, found in enumerate(words) if found == word]
        if not places:
            raise ValueError(f"“{word}” is no word of “{self.text}”")
        return places[occurrence]

    def question(self) -> tuple[int, list[int], int]:
        """Return the pronoun, the candidates and the answer as words of the text."""
        return self.place(self.pronoun, -1), [self.place(word) for word in self.candidates], self.place(self.answer)


@cache
def all_examples() -> tuple[Example, ...]:
    """Return all examples in the order of the file."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["example"]
    return tuple(Example(**{**entry, "candidates": tuple(entry["candidates"])}) for entry in entries)


def example_named(name: str) -> Example:
    """Return the example of that name."""
    return next(example for example in all_examples() if example.name == name)


def examples_row() -> None:
    """Show the examples of all languages as buttons."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        for language in dict.fromkeys(example.language for example in all_examples()):
            st.markdown(f":gray[{language}]", width="content")
            for example in (example for example in all_examples() if example.language == language):
                st.button(
                    example.title,
                    key=f"pronouns-{example.name}",
                    type="tertiary",
                    help=plain(example.text),
                    on_click=take,
                    args=(example,),
                )


def take(example: Example) -> None:
    """Put an example into the session."""
    chosen = st.session_state
    controls.new_text(example.text)
    controls.rest()
    chosen.draft, chosen.model, chosen.layer, chosen.head = example.text, example.model, example.layer, example.head
    chosen.pronoun, chosen.candidates, chosen.answer = example.question()
    chosen.sentences = {"Deutsch": "de", "Svenska": "sv"}.get(example.language, "en")
    for name in ("pair", "lead", "topic", "word", "rival"):
        chosen[name] = getattr(example, name)


def example_caption(visit: Visit, question: Question) -> None:
    """Show the example's caption, its numbers worked out from this very picture."""
    shown = (visit.text, visit.choice.name, visit.layer, visit.head)
    example = next((e for e in all_examples() if (e.text, e.model, e.layer, e.head) == shown), None)
    if example is None or not question.candidates or example.place(example.pronoun, -1) != question.pronoun:
        return
    row = question.trace.layers_of(question.part).index(visit.layer)
    weights = looks_of(visit, question)[row, visit.head]
    given = ", ".join(f"{plain(name)} **{w:.2f}**" for name, w in zip(question.names, weights, strict=True))
    st.markdown(re.sub(" +", " ", example.caption.format(weights=given, score=_score(visit, question))))


def _score(visit: Visit, question: Question) -> str:
    """Say how often the shown head is right on the sentences of the kind that it knows best, with its interval."""
    kind = "things" if question.spoken == "it" else "names"
    board = board_of(visit.info, question.lang, kind)
    if board is None:
        return ""
    known = next((c for c in board.chosen if (c.layer, c.head) == (visit.layer, visit.head)), None)
    if known is not None:
        right, low, high = (f"{100 * share:.0f} %" for share in (known.rate.value, known.rate.low, known.rate.high))
        half = f"Chosen on one half of the sentences about {kind}"
        return f"{half}, it is right in {right} [{low}, {high}] of the other {known.n}."
    row, head, scores = board.scores.layers.index(visit.layer), visit.head, board.scores
    right, low, high = (f"{100 * values[row, head]:.0f} %" for values in (scores.accuracy, scores.low, scores.high))
    return f"It is right in {right} [{low}, {high}] of {scores.n} sentences about {kind}."
