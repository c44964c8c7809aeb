"""What a head adds to the sentence, in words."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.explore.map_choice import map_choice
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.controls import new_text, rest
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, ask_whole_page, choose_head
from attnviz.app.show.charts import draw
from attnviz.app.show.facts import of_head
from attnviz.app.show.heads_map import signed
from attnviz.app.show.numpy_model import MOST_TOKENS, numpy_model
from attnviz.core.attention.textbook import softmax
from attnviz.core.trace.head import Head
from attnviz.core.trace.maps import Maps
from attnviz.figures import labelled_bars
from attnviz.figures.bars import percent
from attnviz.models.scratch.decoder import Model
from attnviz.models.scratch.residual import next_logits
from attnviz.models.scratch.written import Part, last_states, random_reach, reach, read_write

N_WORDS = 8  # at either end
EXAMPLE = ("smollm2", "The keys to the cabinet", 26, 0)
CAVEAT = (
    "This reads the direct path only: what later layers make of it isn't in it. The last norm is held at its value on "
    "this text. Logits are given above the mean of all words, since what all words get alike changes no probability."
)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a head writes at one token, in as few numbers as the page shows.

    Attributes:
        raised, lowered: tokens of the vocabulary, the strongest first, and `ups`, `downs`: what they get, in logits.
        parts: of the keys with the largest parts.
        likeliest, chance: the model's own next token there and its probability; `added`: what the head gives to it.
        reach: of the strongest word, in standard deviations; `random`: what 19 of 20 random vectors stay below.
        n_words: of the vocabulary.
    """

    raised: NDArray[np.int64]
    ups: NDArray[np.float32]
    lowered: NDArray[np.int64]
    downs: NDArray[np.float32]
    parts: tuple[Part, ...]
    likeliest: int
    chance: float
    added: float
    reach: float
    random: float
    n_words: int


def writes(visit: Visit) -> None:
    """Draw the words that the selected head raises and lowers at the chosen token."""
    choice = map_choice(visit)
    head = visit.head_in(choice.view)
    trace, queries = head.trace, head.tokens[0]
    query = len(queries) - 1 if choice.query is None else min(choice.query, len(queries) - 1)
    token = queries[query]
    st.markdown(f"#### What {visit.name} writes at “{plain(token.label)}” ({query})")
    reason = _reason(head, query)
    if reason:
        st.info(plain(reason))
        return
    if choice.query is None:
        st.caption("The last token. For another one, choose it as “From (query)” below the map.")
    model = numpy_model(visit)
    if model is None:
        return
    found = _reading(visit.choice, model, head, query)
    st.markdown(plain(f"{_sentence(visit, found, trace)} {_strength(found)}"))
    columns = st.columns(2, gap="medium")
    with columns[0]:
        _bars(visit, head, "raised", found.raised, found.ups, found.likeliest)
    with columns[1]:
        _bars(visit, head, "lowered", found.lowered, found.downs, found.likeliest)
    _say_parts(trace, found)
    st.caption(plain(CAVEAT))
    _example(visit, query)


def _reason(head: Head, query: int) -> str | None:
    """Return why there is nothing to read, or None if there is."""
    info, switches = head.trace.model, head.trace.switches
    if not info.predicts:
        return "This model predicts no word: it turns a text into vectors, so there are no words to read a head in."
    if len(info.parts) > 1:
        return "This is worked out for decoders; an encoder-decoder model writes into two streams."
    if _n_read(head, query) > MOST_TOKENS:
        if not switches.at_rest:
            return f"Under switches this is worked out for texts of up to {MOST_TOKENS} tokens."
        return f"This is worked out for the first {MOST_TOKENS} tokens of a text: choose an earlier one as query."
    if (head.layer, head.head) in switches.ablate:
        return f"{head.name} is switched off in this pass, so it writes nothing."
    return None


def _n_read(head: Head, query: int) -> int:
    """Return how many tokens the pass needs: those up to the query, all of them if switches may let it see further."""
    return query + 1 if head.trace.switches.at_rest else len(head.trace.tokens)


def _reading(choice: ModelChoice, model: Model, head: Head, query: int) -> Reading:
    ids = tuple(token.id for token in head.trace.tokens[: _n_read(head, query)])
    switches = head.trace.switches

    def make() -> Reading:
        model_name = (choice.name, choice.revision)
        random = cache.results().get(("random reach", *model_name), lambda: random_reach(model))
        last = last_states(model, list(ids), switches)[query]
        values = head.trace.qkv(head.layer, head.head)[2]
        weights = head.under(None).row(query)  # of the pass itself
        found = read_write(model, head.layer, head.head, weights=weights, values=values, last=last)
        return _summary(found.logits, found.parts, softmax(next_logits(model, last).astype(np.float64)), random)

    return cache.results().get(("writes", choice, switches, ids, head.layer, head.head, query), make)


def _summary(
    logits: NDArray[np.float32], parts: tuple[Part, ...], chances: NDArray[np.floating], random: float
) -> Reading:
    order, likeliest = np.argsort(-logits, kind="stable"), int(chances.argmax())
    raised, lowered = order[:N_WORDS], order[: -N_WORDS - 1 : -1]
    return Reading(
        raised=raised,
        ups=logits[raised],
        lowered=lowered,
        downs=logits[lowered],
        parts=parts,
        likeliest=likeliest,
        chance=float(chances[likeliest]),
        added=float(logits[likeliest]),
        reach=reach(logits),
        random=random,
        n_words=len(order),
    )


def _sentence(visit: Visit, found: Reading, trace: Maps) -> str:
    """Return what the head does to its strongest word and to the model's own next word, and in which pass."""
    sentence = (
        f"It raises “{trace.label_of(int(found.raised[0]))}” most ({signed(found.ups[0])} logits) and lowers "
        f"“{trace.label_of(int(found.lowered[0]))}” most ({signed(found.downs[0])}). The model's likeliest next word "
        f"there is “{trace.label_of(found.likeliest)}” ({percent(found.chance)}), which gets {signed(found.added)}."
    )
    if visit.switched:
        sentence += (
            " Read in the pass under the switches."
            if not trace.switches.at_rest
            else " Read in the model's own pass, without the switches."
        )
    return sentence


def _bars(
    visit: Visit, head: Head, side: str, words: NDArray[np.int64], added: NDArray[np.float32], likeliest: int
) -> None:
    labels = [head.trace.label_of(int(word)) for word in words]
    figure = labelled_bars(
        added,
        labels,
        highlighted=[place for place, word in enumerate(words) if word == likeliest],
        value_name="logits, above the mean of all words",
        how_to_read=f"Each bar is one of the {len(words)} words most {side} by {visit.name}, with what it adds to that "
        "word's logit by itself; a hatched bar is the model's likeliest next word.",
        title=f"Most {side}",
        theme=visit.theme,
    )
    table = {"next word": labels, "added": added}
    draw(figure, f"writes-{side}", f"{side} {visit.name}", table, about=of_head(head.under(None)))


def _say_parts(trace: Maps, found: Reading) -> None:
    """List the keys whose values make up most of what is written."""
    rest_of = max(0.0, 1 - sum(part.share for part in found.parts))
    lines = []
    for part in found.parts:
        token, word = plain(trace.tokens[part.key].label), plain(trace.label_of(part.word))
        share = f"weight {part.weight:.2f}, {100 * part.share:.0f} % of what is written"
        lines.append(f"- **{token}** ({part.key}): {share}; raises “{word}” most ({plain(signed(part.added))})")
    lines.append(f"- all others: {100 * rest_of:.0f} %")
    st.markdown(
        "**Made of these tokens' values,** by the size of weight × value, carried through W_O:\n\n" + "\n".join(lines)
    )


def _strength(found: Reading) -> str:
    """Say whether the strongest word stands out further than a random vector's would."""
    stands = (
        f"The strongest word lies {found.reach:.1f} standard deviations from the mean of all {found.n_words:,} words"
    )
    known = f"19 of 20 random vectors stay below {found.random:.1f}"
    if found.reach > found.random:
        return f"{stands}, and {known}: this list stands out."
    return f"{stands}, but {known}: a list as strong as this needn't mean anything. Heads write for later layers too."


def _example(visit: Visit, query: int) -> None:
    """Name a head whose words anybody can read, with a button that shows it."""
    model, text, layer, head = EXAMPLE
    shown = (visit.choice.name, visit.text, visit.layer, visit.head)
    if shown == EXAMPLE and query == len(visit.after.tokens) - 1 and not visit.switched:
        st.caption("“Keys” is plural, so its verb must be: this head looks at “keys” and writes “are” and “were”.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(f"A head that writes what anybody can read: L{layer} H{head} on “{text}”."), width="content")
        st.button("Try it", key="writes-example", type="tertiary", on_click=_take_example)


def _take_example() -> None:
    model, text, layer, head = EXAMPLE
    new_text(text)
    st.session_state.model, st.session_state.query = model, None
    choose_head(layer, head)
    rest()
    ask_whole_page()
