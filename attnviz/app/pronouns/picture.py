"""The sentence with arcs, the candidates' bars under three heads and three rules, and all heads on this sentence."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.save_picture.save_picture import save_picture
from attnviz.app.components.sentence_arcs.sentence_arcs import Asked, Sentence, sentence_arcs
from attnviz.app.pronouns.best_heads import board_for, looks_of, margins_of, named_heads, reference_is_shown
from attnviz.app.pronouns.pronoun_examples import example_caption
from attnviz.app.pronouns.question import Question, own_lead, pick_word, said_lead, shown_words
from attnviz.app.shell import controls
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_text
from attnviz.app.show.heads_map import head_buttons, heads_map, signed
from attnviz.core.export.table_files import Columns
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.pronouns.one_sentence import row_shares
from attnviz.core.pronouns.token_places import first_candidate, nearest_candidate
from attnviz.figures import candidate_bars

N_CLEAREST = 8
CLICKS = {"candidate": "candidate or not", "answer": "the answer", "pronoun": "who looks"}


def sentence(visit: Visit, question: Question) -> None:
    """Draw the sentence with arcs for the chosen head, and what a click on a word does."""
    st.session_state.question = question
    title, head_boxes = st.columns([3, 1], vertical_alignment="bottom")
    with title:
        asked = f"Who is “{question.spoken}”? " if question.is_pronoun else f"From “{question.spoken}”: "
        st.subheader(plain(f"{asked}What {visit.name} looks at"), anchor=False)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            choose("A click on a word makes it", "click", CLICKS)
            _lead_switch(visit)
    with head_boxes:
        controls.head(visit.info)
    example_caption(visit, question)
    arcs(question, (visit.layer, visit.head), key="arcs", on_pick=pick_word)
    save_picture("arcs", f"attnviz arcs {visit.name}", key="save-arcs", html=True)
    st.caption(plain(_where_it_went(visit, question)))


def arcs(
    question: Question,
    head: tuple[int, int],
    *,
    key: str,
    on_pick: Callable[[int], None] | None = None,
    highlight: Collection[int] = (),
) -> None:
    """Draw a question's sentence with an arc to every word, as wide as one head's weight on it."""
    shown = shown_words(question)
    weights = word_weights(question, head)
    place = {word: i for i, word in enumerate(shown)}
    starts = [question.words[word][0] for word in shown]
    ends = [starts[0], *(question.words[word][1] for word in shown[:-1])]
    sentence = Sentence(
        [question.word(word) for word in shown],
        gaps=[question.text[end:start] for end, start in zip(ends, starts, strict=True)],
        masked=[question.causal and word > question.pronoun for word in shown],
        highlight={place[word] for word in highlight if word in place},
    )
    candidates = [tuple(place[word] for word in group if word in place) for group in question.candidates]
    sentence_arcs(
        sentence,
        Asked(place[question.pronoun], candidates, question.answer),
        [float(weights[word]) for word in shown],
        label=f"L{head[0]} H{head[1]}",
        on_pick=None if on_pick is None else lambda i: on_pick(shown[i]),
        key=key,
    )
    if len(shown) < len(question.words):
        outside = float(weights.sum() - weights[shown.start : shown.stop].sum())
        st.caption(
            f"Words {shown.start + 1} to {shown.stop} of {len(question.words):,}; "
            f"those outside get {outside:.0%} of the weight."
        )


def word_weights(question: Question, head: tuple[int, int]) -> np.ndarray:
    """Return (words,) what a head gives to each word of the text from the pronoun; 0 for words without a token."""
    row = question.row(*head)
    return np.array([row[list(tokens)].sum() if tokens else 0.0 for tokens in question.tokens])


def look(visit: Visit, question: Question) -> None:
    """Draw the candidates' bars, and the map of all heads on this sentence."""
    if not question.candidates:
        st.info("Click words that it could mean to make them candidates: their weights are compared here.")
        return
    left, right = st.columns(2, gap="large")
    with left:
        _bars(visit, question)
    with right:
        _all_heads(visit, question)


def _lead_switch(visit: Visit) -> None:
    lead = own_lead(visit)
    choose(
        "Before the text",
        "lead",
        {"on": f"{said_lead(lead)} in front" if lead else "as it is", "off": "as typed"},
        help="Many heads rest on the first token, whatever it is. A line break in front keeps that weight off a "
        "candidate that opens the text."
        if lead
        else "This model's tokenizer puts a token of its own in front, so nothing else is needed.",
        disabled=not lead,
    )


def _where_it_went(visit: Visit, question: Question) -> str:
    """Say what the chosen head gives to each candidate, and where the rest of its weight lies."""
    tokens, _ = question.trace.tokens_of(question.part)
    row = question.row(visit.layer, visit.head)
    groups = question.groups
    shares = row_shares(row, tokens, question.query, {token for group in groups for token in group})
    given = [f"{name} {row[list(group)].sum():.2f}" for name, group in zip(question.names, groups, strict=True)]
    others = {
        f"the first token ({tokens[0].label})": shares.first,
        "special tokens": shares.special,
        "punctuation": shares.punctuation,
        "itself": shares.own,
        "other words": shares.rest,
        "a learned sink": 1 - float(row.sum()),
    }
    rest = ", ".join(f"{name} {share:.2f}" for name, share in others.items() if share >= 0.005)
    to_candidates = f"{', '.join(given)}. " if given else "nothing to a candidate, since there is none. "
    return f"In {visit.name}, “{question.spoken}” gives {to_candidates}The rest of its weight: {rest or 'nothing'}."


def _bars(visit: Visit, question: Question) -> None:
    heads = named_heads(visit, question)
    looks, layers = looks_of(visit, question), question.trace.layers_of(question.part)
    rows = [(f"{head.name}, {head.why}", looks[layers.index(head.layer), head.head]) for head in heads]
    figure = candidate_bars(
        rows, question.names, answer=question.answer, rules=_rules(question), title="", theme=visit.theme
    )
    st.markdown("#### What heads say, and what three rules say that look at nothing")
    table, about = partial(_bars_table, question, rows), of_text(visit, question.trace)
    draw(figure, "candidates", f"candidates {visit.info.name}", table, about=about)
    head_buttons("named", ((head.layer, head.head, "") for head in heads))
    _warn(visit, question)


def _rules(question: Question) -> list[tuple[str, list[float]]]:
    n = len(question.candidates)
    nearest = nearest_candidate(question.words[question.pronoun], question.spans)
    first = first_candidate(question.spans)
    return [
        ("nearest candidate", [float(i == nearest) for i in range(n)]),
        ("first candidate", [float(i == first) for i in range(n)]),
        ("equal shares", [1 / n] * n),
    ]


def _bars_table(question: Question, rows: Sequence[tuple[str, NDArray[np.float64]]]) -> Columns:
    names = [name for name, _ in rows] + [name for name, _ in _rules(question)]
    values = [list(weights) for _, weights in rows] + [shares for _, shares in _rules(question)]
    columns = {name: [round(float(row[i]), 6) for row in values] for i, name in enumerate(question.names)}
    return {"who says": names, **columns}


def _warn(visit: Visit, question: Question) -> None:
    """Say how far the scoreboard's best head can be trusted."""
    board = board_for(visit.info, question)
    if board is None or not board.chosen:
        st.caption("No scoreboard for this model and language yet: it can be made under “Many sentences”.")
        return
    best = board.chosen[0]
    rate = f"{best.rate.value:.0%} [{best.rate.low:.0%}, {best.rate.high:.0%}]".replace("%", " %")
    language = {"en": "English", "de": "German", "sv": "Swedish"}[board.lang]
    kind = f" about {board.kind}" if board.kind else ""
    said = (
        f"L{best.layer} H{best.head} was chosen on one half of the {language} sentences{kind} and is right in {rate} "
        f"of the other half (n {best.n}), where it gives {best.answer:.2f} to the answer and {best.distractor:.2f} to "
        "the other candidate."
    )
    st.caption(plain(said))
    if not reference_is_shown(board):
        st.warning(
            f"No head of this model shows {language} reference: the difference is too small to see. What this picture "
            "shows is one sentence, not a rule."
        )


def _all_heads(visit: Visit, question: Question) -> None:
    if question.answer is None:
        st.info("Which candidate is right? Choose “the answer” above and click it: then all heads are compared by it.")
        return
    answer = question.names[question.answer]
    st.markdown(f"#### All heads: “{plain(answer)}” minus the best other candidate")
    values, layers = margins_of(visit, question, question.answer), question.trace.layers_of(question.part)
    heads_map(
        visit,
        "margins",
        values,
        layers,
        bar_title="difference",
        value_range=(-1.0, 1.0),
        how_to_read=f"Each cell is a head: a purple one gives “{answer}” more weight than any other candidate, "
        "an orange one less.",
        about=of_text(visit, question.trace),
    )
    st.markdown("The heads that see it most clearly")
    best = strongest(values, layers, N_CLEAREST)
    head_buttons("clear", ((layer, head, signed(value)) for layer, head, value in best))
