"""What the visitor asks of the heads: which word looks, which words it could mean, and which of them is right."""

from dataclasses import dataclass

import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.visit import Visit
from attnviz.core.pronouns.items import Span
from attnviz.core.pronouns.mentions import find_pronouns, guess_answer, language_of, runs, suggest_candidates
from attnviz.core.pronouns.one_sentence import word_tokens
from attnviz.core.text.words import split_words
from attnviz.core.trace.records import Float
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

MOST_WORDS = 80  # that are drawn; of a longer text those around the pronoun and the candidates


@dataclass(frozen=True, eq=False)
class Question:
    """A text as words, and what is asked about it.

    Attributes:
        text: as typed; `lang`: its language; `lead`: what stands in front of it for the model.
        trace: of lead and text; `part`: of the model that is looked at.
        words: (start, end) of each word in the text; `tokens`: the positions of each word's tokens in the trace.
        pronoun: the word that looks; `query`: its last token.
        candidates: each the words that it consists of; `answer`: which of them is right, None if there is none.
    """

    text: str
    lang: str
    lead: str
    trace: Trace
    part: str
    words: tuple[Span, ...]
    tokens: tuple[tuple[int, ...], ...]
    pronoun: int
    query: int
    candidates: tuple[tuple[int, ...], ...]
    answer: int | None

    @property
    def causal(self) -> bool:
        """True if no word sees a later one."""
        return self.trace.causal(self.trace.layers_of(self.part)[0], part=self.part)

    @property
    def is_pronoun(self) -> bool:
        """True if the word that looks is a pronoun."""
        return self.pronoun in find_pronouns(self.text)

    @property
    def spoken(self) -> str:
        """The pronoun as it stands in the text."""
        return self.word(self.pronoun)

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The positions of each candidate's tokens."""
        return [tuple(token for word in words for token in self.tokens[word]) for words in self.candidates]

    @property
    def names(self) -> list[str]:
        """The candidates as they stand in the text; equal ones are told apart by their word's number."""
        names = [self.text[self.words[words[0]][0] : self.words[words[-1]][1]] for words in self.candidates]
        return [
            name if names.count(name) == 1 else f"{name} ({words[0] + 1})"
            for name, words in zip(names, self.candidates, strict=True)
        ]

    @property
    def spans(self) -> list[Span]:
        """Where in the text each candidate is."""
        return [(self.words[words[0]][0], self.words[words[-1]][1]) for words in self.candidates]

    def row(self, layer: int, head: int) -> Float:
        """Return (keys,) the pronoun's row of a head."""
        return self.trace.head(layer, head, part=self.part).row(self.query)

    def word(self, index: int) -> str:
        """Return a word as it stands in the text."""
        start, end = self.words[index]
        return self.text[start:end]


def ask(visit: Visit) -> Question | None:
    """Return the question that the session holds about the visitor's text, completed by suggestions.

    Returns:
        None, with the reason on the page, for a text without a word that a model could see.
    """
    chosen = st.session_state
    return ask_about(visit, visit.text, chosen.pronoun, chosen.candidates, chosen.answer)


def ask_about(
    visit: Visit, text: str, pronoun: int | None, candidates: list[int] | None, answer: int | None
) -> Question | None:
    """Return a question about a text, with what is None suggested.

    Args:
        visit: whose model reads it.
        text: what the model reads, behind the lead token.
        pronoun: the word that looks.
        candidates: words that it could mean.
        answer: the word that it does mean.

    Raises:
        ValueError: the model can't read the text; the text of the error is for the visitor.
    """
    lead = front(visit)
    trace = cache.get_trace(visit.choice, lead + text, Switches())
    tokens, _ = trace.tokens_of(trace.parts[0])
    words = split_words(text)
    of_words = word_tokens(tokens, words, offset=len(lead))
    seen = [place for place, of_word in enumerate(of_words) if of_word]
    if not seen:
        st.info("This page looks at words, and the model sees none in this text.")
        return None
    if pronoun is None or pronoun not in seen:
        pronoun = _suggest_pronoun(text, seen)
    wanted = suggest_candidates(text, pronoun) if candidates is None else candidates
    groups = runs([word for word in wanted if word in seen and word != pronoun])
    words_of_candidates = [word for group in groups for word in group]
    if answer not in words_of_candidates:
        alone = words_of_candidates[:1] if len(groups) == 1 else []
        answer = alone[0] if alone else guess_answer(text, pronoun, words_of_candidates)
    return Question(
        text=text,
        lang=language_of(text),
        lead=lead,
        trace=trace,
        part=trace.parts[0],
        words=words,
        tokens=of_words,
        pronoun=pronoun,
        query=of_words[pronoun][-1],
        candidates=tuple(groups),
        answer=next((place for place, group in enumerate(groups) if answer in group), None),
    )


def front(visit: Visit) -> str:
    """Return what is put in front of a text for this visitor: nothing, or a line break."""
    return own_lead(visit) if st.session_state.lead == "on" else ""


def own_lead(visit: Visit) -> str:
    """Return what suits the model: a line break, or nothing where its tokenizer puts a token of its own in front."""
    from attnviz.models.scan.sentences import lead_text

    engine = cache.get_engine(visit.choice)
    return cache.results().get(("lead", visit.choice), lambda: lead_text(engine))


def shown_words(question: Question) -> range:
    """Return the words to draw: all, or of a long text those around the pronoun and as many candidates as fit."""
    n_words = len(question.words)
    if n_words <= MOST_WORDS:
        return range(n_words)
    ends = [question.pronoun, *(word for group in question.candidates for word in group)]
    near = [word for word in ends if abs(word - question.pronoun) < MOST_WORDS - 4]
    start = max(0, min(min(near) - 4, n_words - MOST_WORDS))
    return range(start, start + MOST_WORDS)


def pick_word(word: int) -> None:
    """Take a click on a word as the visitor set it: a candidate or none, the answer, or the word that looks."""
    chosen = st.session_state
    question: Question = chosen.question
    candidates = [place for group in question.candidates for place in group]
    if chosen.click == "pronoun":
        chosen.pronoun = word
        chosen.candidates = [place for place in candidates if place != word] if chosen.candidates is not None else None
        return
    if word == question.pronoun:
        return
    chosen.pronoun = question.pronoun
    if chosen.click == "answer":
        chosen.answer = word
        chosen.candidates = sorted({*candidates, word})
    else:
        chosen.candidates = sorted({*candidates} ^ {word})
        if chosen.answer is None and question.answer is not None:
            chosen.answer = question.candidates[question.answer][0]


def _suggest_pronoun(text: str, seen: list[int]) -> int:
    """Return the last pronoun that has a candidate before it, else the last pronoun, else the last word."""
    pronouns = [place for place in reversed(find_pronouns(text)) if place in seen]
    for place in pronouns:
        if any(word < place for word in suggest_candidates(text, place)):
            return place
    spans = split_words(text)
    words = [place for place in reversed(seen) if text[spans[place][0]].isalnum()]
    return (pronouns or words or seen[::-1])[0]


def said_lead(lead: str) -> str:
    """Return how the lead is written on the page.

    >>> said_lead("\\n")
    '⏎'
    """
    return lead.replace("\n", "⏎")
