"""Does a head matter? What it adds to one next word over another, and what changes when it is off."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.pronouns.pronoun_examples import Example, example_named, take
from attnviz.app.pronouns.question import Question
from attnviz.app.pronouns.texts import say
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit, ask_whole_page
from attnviz.app.show import job
from attnviz.app.show.charts import draw
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_text
from attnviz.app.show.heads_map import head_buttons, heads_map, signed
from attnviz.app.show.numpy_model import MOST_TOKENS, numpy_model
from attnviz.core.attention.textbook import softmax
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.battery import battery_texts
from attnviz.core.pronouns.verdict import verdict
from attnviz.core.trace.trace import Trace
from attnviz.figures import labelled_bars
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.effects import (
    Direct,
    all_effects,
    direct_effects,
    logits_without,
    next_word_token,
    reference_means,
)
from attnviz.models.tokens import tokenize

N_LARGEST = 6


@dataclass(frozen=True, eq=False)
class Duel:
    """Two next words for a text, in the model in NumPy.

    Attributes:
        words: as typed; `pair`: the first token of each.
        ids: of the text's tokens; `key`: what results are kept under.
        logits: of a pass with every head on; `trace`: of the text.
    """

    model: Model
    words: tuple[str, str]
    pair: tuple[int, int]
    ids: list[int]
    key: tuple[Hashable, ...]
    logits: NDArray[np.float32]
    trace: Trace

    @property
    def lead(self) -> float:
        """Logit of the first word minus logit of the second."""
        return float(self.logits[self.pair[0]]) - float(self.logits[self.pair[1]])


def matters(visit: Visit, question: Question) -> None:
    """Draw what heads do to the lead of one next word over another."""
    st.markdown(say("matters", "intro"))
    if not visit.info.predicts:
        st.info("This model predicts no next word: it turns a text into vectors. Choose a decoder, such as SmolLM2.")
        return
    if len(question.trace.tokens) > MOST_TOKENS:
        st.info(f"This part is worked out for texts of up to {MOST_TOKENS} tokens.")
        return
    model = numpy_model(visit)
    if model is None:
        return
    words = _words(question)
    if not all(word.strip() for word in words):
        st.info(
            "Type two words that could come next: what the heads do to the lead of one over the other is shown here."
        )
        return
    try:
        duel = _duel(visit, question, model, words)
    except ValueError as error:
        st.info(as_sentence(str(error)))
        return
    instead = _instead()
    kept = cache.results().get
    direct = kept((*duel.key, "direct"), lambda: direct_effects(model, duel.ids, duel.pair))
    layer = kept((*duel.key, "layer", visit.layer, instead), lambda: _layer_effects(visit, duel, instead))
    st.markdown(f"#### {plain(_verdict(visit, question, duel, direct, layer))}")
    left, right = st.columns(2, gap="large")
    with left:
        _direct_map(visit, duel, direct)
    with right:
        _effects(visit, duel, instead, layer)
    _why(visit)


def _why(visit: Visit) -> None:
    """Say why a look is not yet a reason, with two heads to try it on."""
    st.markdown(say("matters", "why"))
    example = example_named("pictures")
    if (visit.text, visit.choice.name) == (example.text, example.model):
        head_buttons("why", [(13, 8, "looks, and hardly matters"), (26, 0, "looks, and decides")])
    else:
        st.button("Show these two", key="show-why", on_click=_show, args=(example,))


def _show(example: Example) -> None:
    take(example)
    ask_whole_page()


def _words(question: Question) -> tuple[str, str]:
    """Ask for the two words; at first the answer and another candidate."""
    chosen = st.session_state
    names = [question.text[start:end] for start, end in question.spans]
    if question.answer is not None:
        names.insert(0, names.pop(question.answer))
    for field, name in zip(("word", "rival"), dict.fromkeys(names), strict=False):
        if not chosen[field]:
            chosen[field] = name
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field, label in (("word", "The next word"), ("rival", "rather than")):
            st.text_input(label, key=field, persist_state="session", max_chars=60, width=200)
    return chosen.word, chosen.rival


def _duel(visit: Visit, question: Question, model: Model, words: tuple[str, str]) -> Duel:
    engine = cache.get_engine(visit.choice)
    found = [next_word_token(engine.tokenizer, word, after=visit.text) for word in words]
    pair = (found[0][0], found[1][0])
    if pair[0] == pair[1]:
        raise ValueError(f"“{words[0]}” and “{words[1]}” begin with the same token, so the model can't prefer one")
    ids = [token.id for token in question.trace.tokens]
    key = ("duel", visit.choice.name, visit.choice.revision, tuple(ids), pair)
    logits = cache.results().get(key, lambda: logits_without(model, ids, []))
    duel = Duel(model, words, pair, ids, key, logits, question.trace)
    _say_chances(duel, found, question.trace.tokens[-1].label)
    return duel


def _say_chances(duel: Duel, found: list[tuple[int, str, bool]], last: str) -> None:
    chances = softmax(duel.logits.astype(np.float64))
    parts = [
        f"**{plain(word)}** {100 * chances[token]:.3g} %" + (f" (its first token, {plain(label)})" if longer else "")
        for word, (token, label, longer) in zip(duel.words, found, strict=True)
    ]
    st.markdown(
        f"After this text the model expects {' and '.join(parts)}: a lead of {signed(duel.lead)} logits. "
        f"What comes next is said at the last token, “{plain(last)}”, so in this part that is the one that looks."
    )


def _instead() -> str:
    choose("A head that is off writes", "instead", {"zero": "nothing", "mean": "its mean over reference texts"})
    st.caption(say("matters", st.session_state.instead))
    return st.session_state.instead


def _means(visit: Visit, duel: Duel, instead: str) -> NDArray[np.float32] | None:
    """Return what stands in for a head's output: None for nothing, or every head's mean over the reference texts."""
    if instead == "zero":
        return None
    engine = cache.get_engine(visit.choice)
    texts = [[token.id for token in tokenize(engine.tokenizer, item.text)] for item in battery_texts()]
    return cache.results().get(("means", *duel.key[1:3]), lambda: reference_means(duel.model, texts))


def _layer_effects(visit: Visit, duel: Duel, instead: str) -> NDArray[np.float64]:
    """Return (heads,) what switching off each head of the chosen layer does to the lead."""
    means = _means(visit, duel, instead)
    with st.spinner(f"Switching off the heads of layer {visit.layer}"):
        logits = [
            logits_without(duel.model, duel.ids, [(visit.layer, head)], instead=means)
            for head in range(visit.info.n_heads)
        ]
    return np.array([float(row[duel.pair[0]]) - float(row[duel.pair[1]]) - duel.lead for row in logits])


def _verdict(visit: Visit, question: Question, duel: Duel, direct: Direct, layer: NDArray[np.float64]) -> str:
    chances = softmax(duel.logits.astype(np.float64))
    return verdict(
        words=duel.words,
        probabilities=(float(chances[duel.pair[0]]), float(chances[duel.pair[1]])),
        difference=duel.lead,
        head=visit.name,
        looks=(_look(visit, question, duel.words[0]), _look(visit, question, duel.words[1])),
        direct=float(direct.heads[visit.layer, visit.head]),
        effect=float(layer[visit.head]),
        others=np.delete(layer, visit.head),
    )


def _look(visit: Visit, question: Question, word: str) -> float | None:
    """Return what the chosen head gives to a word wherever it stands, from the last token; None if it isn't there."""
    places = [
        token
        for index, of_word in enumerate(question.tokens)
        if question.word(index) == word.strip()
        for token in of_word
    ]
    if not places:
        return None
    row = question.trace.head(visit.layer, visit.head).row(len(question.trace.tokens) - 1)
    return float(row[places].sum())


def _direct_map(visit: Visit, duel: Duel, direct: Direct) -> None:
    st.markdown("#### What each head adds by itself")
    _map(visit, duel, direct.heads, "direct")
    st.caption(
        say(
            "matters",
            "adds",
            heads=signed(direct.heads.sum()),
            mlps=signed(direct.mlps.sum()),
            embedding=signed(direct.embedding),
            biases=signed(direct.biases),
            total=signed(direct.total),
            word=duel.words[0],
            rival=duel.words[1],
        )
    )


def _effects(visit: Visit, duel: Duel, instead: str, layer: NDArray[np.float64]) -> None:
    """Draw what happens without a head: the chosen layer at once, all heads when asked for."""
    st.markdown("#### What changes when it is off")
    wanted = (*duel.key, "effects", instead)
    known = cache.results().peek(wanted)
    if known is None and not job.is_going_on("switching", wanted):
        figure = labelled_bars(
            layer,
            [f"L{visit.layer} H{head}" for head in range(len(layer))],
            highlighted=[visit.head],
            value_name="change of the lead, in logits",
            how_to_read=f"Each bar is a head of layer {visit.layer}, switched off alone; the coloured one is chosen.",
            theme=visit.theme,
        )
        heads = [f"H{head}" for head in range(len(layer))]
        table, about = {"head": heads, "change": layer}, of_text(visit, duel.trace)
        draw(figure, "layer-effects", f"effects layer {visit.layer}", table, about=about)
        work = partial(_all_effects, duel, _means(visit, duel, instead))
        begin = {"args": ("switching", wanted, work), "kwargs": {"alone": job.ALONE_SECONDS}}
        st.button("Switch off every head, one after another", key="switch-off-all", on_click=job.start, **begin)
        return
    if known is None:
        job.watch("switching", keep=lambda found: cache.results().get(wanted, lambda: found), key="stop-switching")
        return
    _map(visit, duel, known, "effect")
    st.caption("The lead without the head minus the lead with it: orange heads held it up, purple ones held it down.")


def _all_effects(duel: Duel, means: NDArray[np.float32] | None, say: job.Say) -> NDArray[np.float64]:
    def show(done: int, total: int) -> None:
        say(done, total, f"Switched off {done} of {total} heads, one at a time")

    return all_effects(duel.model, duel.ids, duel.pair, instead=means, progress=show)


def _map(visit: Visit, duel: Duel, values: NDArray[np.float64], key: str) -> None:
    read = f"Each cell is a head: purple for “{duel.words[0]}”, orange for “{duel.words[1]}”."
    about = of_text(visit, duel.trace)
    heads_map(visit, f"{key}-map", values, range(len(values)), bar_title="logits", how_to_read=read, about=about)
    largest = strongest(np.abs(values), range(len(values)), N_LARGEST)
    head_buttons(key, ((layer, head, signed(values[layer, head])) for layer, head, _ in largest))
