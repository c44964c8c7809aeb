"""Step 3, position: how turning q and k makes a score depend on distance, and what shuffled words show of a head."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.scratch.numbers import MOST_TOKENS, Numbers, numbers_row, pick
from attnviz.app.scratch.trail import trail
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import as_sentence
from attnviz.app.shell.visit import Visit, choose_head
from attnviz.app.show import charts
from attnviz.app.show.charts import heads_table, of_head
from attnviz.app.show.facts import at_rest, of_text
from attnviz.app.show.heads_map import head_button
from attnviz.app.show.lesson import Step, awaited, folded, guess
from attnviz.app.show.numpy_model import numpy_model
from attnviz.core.attention.rotary import score_by_distance, turn_back
from attnviz.core.export.table_files import Columns
from attnviz.core.heads.shuffled import followed_by_heads
from attnviz.core.text.words import shuffle_words
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures import distance_curve, layers_by_heads
from attnviz.figures.marks import crosses
from attnviz.figures.theme import number, theme_of

HEIGHT = 374  # of a picture, in px
DISTANCES = 65  # 0 to 64 tokens apart
MOST_SHUFFLED = 300  # tokens of a text whose words are shuffled while the visitor waits


class Shuffled(NamedTuple):
    """A text with its words in another order.

    Attributes:
        trace: of the shuffled text; `order`: (words,) which old word stands at each place.
        followed: (layers, heads, 2) how far each head's pattern followed positions, and words.
    """

    trace: Trace
    order: NDArray[np.int64]
    followed: NDArray[np.float64]


def draw(visit: Visit, step: Step) -> None:
    """Draw the score over distance for two heads, and which heads follow words when the words are shuffled."""
    numbers = numbers_row(visit, sources=("real",))
    if numbers is None:
        return
    if len(visit.info.parts) > 1 and visit.part != "encoder":
        st.info(step.say("cross"))
        return
    best, looks_back = previous_token_head(visit)
    if st.session_state.source == "random":
        st.caption(step.say("only_real"))
    model = numpy_model(visit)
    theta = None if model is None else model.theta
    asked = theta is not None and looks_back and best != (visit.layer, visit.head)
    if not asked:
        _guess_of_shuffled(visit, step)
    if theta is not None:
        _curves(visit, step, numbers, best if looks_back else None, theta)
        folded(step.say("turns_title"), "position-turns", lambda: st.markdown(step.say("turns", theta=theta)))
    elif model is not None:
        st.markdown(step.say("learned"))
    folded(step.say("shuffle_title"), "position-shuffle", partial(_shuffle_part, visit, step, told=asked))


def previous_token_head(visit: Visit) -> tuple[tuple[int, int], bool]:
    """Return the (layer, head) that looks at the token before most on the visitor's text, and if it does so mostly."""
    survey = cache.get_survey(visit.choice, visit.rest, visit.part, None)
    values = np.nan_to_num(survey.measures["previous_token"], nan=-1.0)  # (layers, heads)
    row, head = divmod(int(values.argmax()), values.shape[1])
    return (visit.rest.layers_of(visit.part)[row], head), bool(values[row, head] > 0.5)


def _curves(visit: Visit, step: Step, numbers: Numbers, best: tuple[int, int] | None, theta: float) -> None:
    """Draw the followed pair's score over distance in the chosen head and, with the answer, in another one."""
    other = None if best is None or best == (visit.layer, visit.head) else _of_head(visit, numbers, *best)
    shown = other is not None and guess(step, **_moves(numbers, other, theta))
    trail(numbers, "score", names={"product": "q · k, turned"})
    ends = _common_range([numbers] if other is None else [numbers, other], theta)
    left, right = st.columns(2, gap="medium")
    with left:
        _curve(visit, numbers, theta, ends, "own")
    with right:
        if best is None or other is None:
            st.markdown(step.say("is_previous", name=visit.name) if best else step.says["no_previous"])
        elif shown:
            _curve(visit, other, theta, ends, "previous")
            st.button(f"Take {other.name}", key="take-previous", on_click=_take, args=(*best, numbers.cell))
        else:
            awaited(step.say("awaited"), HEIGHT)


def _of_head(visit: Visit, numbers: Numbers, layer: int, head: int) -> Numbers:
    """Return the numbers of another head, with the same two tokens followed."""
    of = visit.rest.head(layer, head, part=visit.part).tile(numbers.shown)
    q, k, v = of.qkv
    return replace(numbers, name=of.name, q=q, k=k, v=v, scale=of.scale, of=of)


def _scores(numbers: Numbers, theta: float) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the followed pair's scores (distances,), and those of all pairs (distances, pairs) without token 0."""
    query, key = numbers.cell
    n_distances = max(DISTANCES, query - key + 1)
    q, k = turn_back(numbers.q, theta), turn_back(numbers.k, theta)
    part = slice(max(1, numbers.shown.start), numbers.shown.stop)
    pair = score_by_distance(q[[query]], k[[key]], n_distances, theta).ravel()
    others = score_by_distance(q[part], k[part], n_distances, theta).reshape(n_distances, -1)
    return pair * numbers.scale, others * numbers.scale


def _common_range(heads: Sequence[Numbers], theta: float) -> tuple[float, float]:
    """Return the lowest and the highest score that the curves and bands of these heads reach."""
    drawn = []
    for numbers in heads:
        pair, others = _scores(numbers, theta)
        drawn += [pair, np.quantile(others, (0.1, 0.9), axis=1).ravel()] if others.size else [pair]
    every = np.concatenate(drawn)
    return float(every.min()), float(every.max())


def _moves(own: Numbers, other: Numbers, theta: float) -> dict[str, str]:
    """Return the answer's numbers: where the other head's mean peaks, and what distance and words move in each."""
    pair, pairs = _scores(other, theta)
    means = pairs.mean(axis=1) if pairs.size else pair
    (own_distance, own_words), (by_distance, by_words) = (_spread(numbers, theta) for numbers in (own, other))
    moves = {"by_distance": by_distance, "by_words": by_words, "own_distance": own_distance, "own_words": own_words}
    return {"peak": str(int(means.argmax())), **moves}


def _spread(numbers: Numbers, theta: float) -> tuple[str, str]:
    """Return how much distance moves the mean score from 1 to 8 tokens apart, and how much the words do."""
    pair, others = _scores(numbers, theta)
    low, high = np.quantile(others[1:9], (0.1, 0.9), axis=1) if others.size else (pair[1:9], pair[1:9])
    means = others[1:9].mean(axis=1) if others.size else pair[1:9]
    return number(np.ptp(means)), number((high - low).mean())


def _curve(visit: Visit, numbers: Numbers, theta: float, ends: tuple[float, float], key: str) -> None:
    pair, others = _scores(numbers, theta)
    apart = numbers.cell[0] - numbers.cell[1]
    names = ("“{query}” and “{key}”".format(**numbers.pair), "mean of all pairs, and where 8 in 10 lie")
    has_others = others.shape[1] > 0
    figure = distance_curve(
        pair,
        average=others.mean(axis=1) if has_others else None,
        band=tuple(np.quantile(others, (0.1, 0.9), axis=1)) if has_others else None,
        names=names,
        marked=apart if apart >= 0 else None,
        value_range=ends,
        title=f"{numbers.name}: the score over distance",
        theme=visit.theme,
    )
    name = f"score over distance {numbers.name}"
    table = partial(_distances, pair, others)
    charts.draw(figure, f"lesson-distance-{key}", name, table, about=numbers.about)


def _distances(pair: NDArray[np.floating], others: NDArray[np.floating]) -> Columns:
    return {"distance": np.arange(len(pair)), "this pair": pair, "mean of all pairs": others.mean(axis=1)}


def _take(layer: int, head: int, cell: tuple[int, int]) -> None:
    """Choose a head, and keep following that cell; else each head has a pair of its own."""
    pick(cell)
    choose_head(layer, head)


def _shuffle(visit: Visit) -> Shuffled | str:
    """Return the text with shuffled words as the model sees it, or a sentence why not."""
    if len(visit.rest.tokens) > MOST_SHUFFLED:
        return f"Shuffling is for texts of up to {MOST_SHUFFLED} tokens."
    try:
        text, order = shuffle_words(visit.text, st.session_state.seed)
        trace = cache.get_trace(visit.choice, text, Switches())
    except ValueError as error:
        return as_sentence(f"This text can't be shuffled: {error}")
    key = ("shuffled", visit.choice, visit.text, text, visit.part)
    followed = cache.results().get(key, lambda: followed_by_heads(visit.rest, trace, order, part=visit.part))
    return Shuffled(trace, order, followed)


def _guess_of_shuffled(visit: Visit, step: Step) -> None:
    """Ask whether heads follow shuffled words, if this text can be shuffled."""
    shuffled = _shuffle(visit)
    if isinstance(shuffled, Shuffled):
        guess(step, step.says["question_shuffled"], step.says["answer_shuffled"], **_counts(shuffled))


def _shuffle_part(visit: Visit, step: Step, told: bool) -> None:
    """Draw which heads follow shuffled words; the counts are `told` here if nothing above asks for them."""
    st.number_input("Seed of the order", 0, 999_999, step=1, key="seed", persist_state="session", width=140)
    shuffled = _shuffle(visit)  # a pass of another text: only when the visitor wants to see it
    if isinstance(shuffled, str):
        st.info(shuffled)
        return
    st.markdown(step.say("shuffled", text=shuffled.trace.text))
    if told:
        st.markdown(step.say("answer_shuffled", **_counts(shuffled)))
    layers = visit.rest.layers_of(visit.part)
    lead = shuffled.followed[..., 0] - shuffled.followed[..., 1]  # (layers, heads)
    if np.isnan(lead).all():
        st.info(step.say("all_rest"))
        return
    left, right = st.columns([7, 3], gap="medium")
    with left:
        _lead_map(visit, step, lead, layers, shuffled.trace.text)
    with right:
        _extremes(step, layers, lead)
    st.caption(step.say("measure"))
    _two_maps(visit, step, shuffled)


def _lead_map(visit: Visit, step: Step, lead: NDArray[np.float64], layers: Sequence[int], text: str) -> None:
    """Draw for each head whether it followed positions or words, with a cross where it rests."""
    figure = layers_by_heads(
        lead,
        layers,
        kind="difference",
        bar_title="followed words (below 0) or positions",
        value_range=(-1, 1),
        marked=[(visit.layer, visit.head)],
        how_to_read=step.says["how_to_read"],
        title="Positions or words",
        theme=visit.theme,
        height=140 + 21 * lead.shape[1],  # what the cells need where a row of 30 layers fits the column
    )
    resting = [(head, row) for row, head in np.argwhere(np.isnan(lead)).tolist()]  # heads run down, layers across
    if resting:
        figure.layout.shapes += (crosses(resting, theme_of(visit.theme).hatch),)
    about = dict(at_rest(visit)) | {"shuffled_text": text}
    table = partial(heads_table, lead, layers)
    charts.draw(figure, "lesson-shuffled", f"shuffled {visit.info.name}", table, about=about)
    if resting:
        st.caption(step.say("crosses", n=len(resting)))


def _extremes(step: Step, layers: Sequence[int], lead: NDArray[np.float64]) -> None:
    """List the heads that follow positions most, and those that follow words most, as buttons."""
    order = np.argsort(np.nan_to_num(lead, nan=0.0), axis=None, kind="stable")
    for name, places in (("follow_positions", order[::-1][:4]), ("follow_words", order[:4])):
        st.markdown(step.say(name))
        with st.container(horizontal=True, gap="small"):
            for place in places:
                row, head = divmod(int(place), lead.shape[1])
                head_button("shuffled", layers[row], head, f": {number(lead[row, head])}")


def _two_maps(visit: Visit, step: Step, shuffled: Shuffled) -> None:
    """Draw the chosen head on the text and on the shuffled text."""
    row = visit.rest.layers_of(visit.part).index(visit.layer)
    positions, words = shuffled.followed[row, visit.head]
    says = "rests" if np.isnan(positions) else "chosen"
    st.markdown(step.say(says, name=visit.name, positions=f"{positions:.2f}", words=f"{words:.2f}"))
    for column, trace, title in zip(
        st.columns(2, gap="medium"), (visit.rest, shuffled.trace), ("as typed", "shuffled"), strict=True
    ):
        with column:
            _map(visit, trace, title)


def _map(visit: Visit, trace: Trace, title: str) -> None:
    part = slice(0, min(len(trace.tokens), MOST_TOKENS))
    drawn = of_head(visit.head_of(trace).tile(part, part))
    name, about = f"{visit.name} {title}", of_text(visit, trace)
    look = {"title": f"{visit.name}, {title}", "theme": visit.theme, "height": 480}
    charts.draw_map(drawn, f"lesson-map-{title}", name, about=about, **look)


def _counts(shuffled: Shuffled) -> dict[str, int]:
    """Return the answer's numbers: how many heads follow positions, and how many words."""
    lead = shuffled.followed[..., 0] - shuffled.followed[..., 1]  # (layers, heads)
    counts = {"n_positions": lead > 0, "n_words": lead < 0, "n_active": np.isfinite(lead)}
    return {name: int(heads.sum()) for name, heads in counts.items()}
