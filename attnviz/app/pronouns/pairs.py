"""Two sentences that differ in a word, side by side, and what the difference does to a head's look."""

import numpy as np
import streamlit as st

from attnviz.app.pronouns.picture import arcs, word_weights
from attnviz.app.pronouns.question import Question, ask_about
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw
from attnviz.app.show.facts import of_text
from attnviz.core.pronouns.mentions import align_words, changed_words, swap_pronoun
from attnviz.figures import labelled_bars

MOST_BARS = 40  # words whose difference is drawn
SAME = 1e-6  # rows that differ by less are the same but for rounding


def pair(visit: Visit, question: Question) -> None:
    """Draw the visitor's sentence beside another one, and the difference between them."""
    if not st.session_state.pair:
        st.session_state.pair = swap_pronoun(question.text, question.pronoun) or ""
    st.text_input(
        "The other sentence",
        key="pair",
        persist_state="session",
        max_chars=2000,
        placeholder="The same sentence with another word in it",
    )
    other = _other(visit, question)
    if other is None:
        return
    changed, changed_there = changed_words(question.text, other.text)
    head = (visit.layer, visit.head)
    for column, asked, words, key in zip(
        st.columns(2, gap="large"), (question, other), (changed, changed_there), ("pair-one", "pair-other"), strict=True
    ):
        with column:
            arcs(asked, head, key=key, highlight=words)
            st.caption(plain(_in_words(asked, head)))
    _explain(visit, question, other, changed)
    _difference(visit, question, other)


def _other(visit: Visit, question: Question) -> Question | None:
    """Return the same question about the other sentence; None, with the reason on the page, if it can't be asked."""
    text = st.session_state.pair
    if not text.strip():
        st.info("Type a sentence that differs in a word, to see what that word changes.")
        return None
    if text == question.text:
        st.info("The two sentences are the same: change a word of the other one.")
        return None
    there = align_words(question.text, text)
    if question.pronoun not in there:
        st.info(plain(f"The other sentence has no word where the first has “{question.spoken}”."))
        return None
    candidates = [there[word] for group in question.candidates for word in group if word in there]
    try:
        return ask_about(visit, text, there[question.pronoun], candidates, None)
    except ValueError as error:
        st.info(as_sentence(str(error)))
        return None


def _in_words(question: Question, head: tuple[int, int]) -> str:
    weights = word_weights(question, head)
    given = [
        f"{name} {weights[list(words)].sum():.2f}"
        for name, words in zip(question.names, question.candidates, strict=True)
    ]
    return f"“{question.spoken}” gives " + (", ".join(given) or "nothing to a candidate: there is none") + "."


def _explain(visit: Visit, question: Question, other: Question, changed: list[int]) -> None:
    """Say what a change after the pronoun can and can't do in a causal model, and offer the later word."""
    later = [word for word in changed if word > question.pronoun]
    if not (question.causal and later and len(later) == len(changed)):
        return
    gap = _largest_difference(question, other, (visit.layer, visit.head))
    same = "the same to the last bit" if gap == 0 else f"the same but for rounding ({gap:.0e})" if gap < SAME else None
    st.info(
        plain(
            "In this model no word sees a later one. The sentences differ only after "
            f"“{question.spoken}”, so its two rows "
            + (f"must be equal, and are {same}." if same else f"should be equal; they differ by {gap:.1e}.")
            + " The model may still settle who is meant, at a later word."
        )
    )
    word = question.word(later[-1])
    st.button(plain(f"Let “{word}” look instead"), key="later-word", on_click=_let_look, args=(question, later[-1]))


def _largest_difference(question: Question, other: Question, head: tuple[int, int]) -> float:
    one, two = (asked.row(*head)[: asked.query + 1] for asked in (question, other))
    return float(np.abs(one - two).max()) if one.shape == two.shape else float("nan")


def _let_look(question: Question, word: int) -> None:
    chosen = st.session_state
    chosen.candidates = [place for group in question.candidates for place in group]
    chosen.answer = question.candidates[question.answer][0] if question.answer is not None else None
    chosen.pronoun = word


def _difference(visit: Visit, question: Question, other: Question) -> None:
    """Draw word by word what the other sentence's pronoun gives more or less."""
    head = (visit.layer, visit.head)
    there = align_words(question.text, other.text)
    one, two = (word_weights(asked, head) for asked in (question, other))
    words = list(there)[:MOST_BARS]
    names = [
        question.word(word)
        if question.word(word) == other.word(there[word])
        else f"{question.word(word)} → {other.word(there[word])}"
        for word in words
    ]
    values = np.array([two[there[word]] - one[word] for word in words])
    figure = labelled_bars(
        values,
        names,
        highlighted=[place for place, word in enumerate(words) if any(word in group for group in question.candidates)],
        value_name="weight, other sentence minus first",
        how_to_read="A bar to the right: the other sentence's pronoun gives that word more.",
        title=f"What changes in {visit.name}",
        theme=visit.theme,
    )
    first = [float(one[word]) for word in words]
    table = {"word": names, "first sentence": first, "other sentence": [float(two[there[word]]) for word in words]}
    about = dict(of_text(visit, question.trace)) | {"other_text": other.trace.text}
    draw(figure, "pair-difference", f"pair {visit.name} {visit.info.name}", table, about=about)
