"""The same continuation with the cache and without, both really run, at several lengths of text."""

import statistics
from functools import partial
from typing import Any

import streamlit as st

from attnviz.app.generate.measuring import LENGTHS, N_STEPS, lengths_within, measure_both
from attnviz.app.generate.texts import say
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show import job
from attnviz.app.show.charts import draw
from attnviz.app.show.facts import OF_NOTHING, of_model
from attnviz.core.cost.formulas import Shape, step_cost, step_meeting_point
from attnviz.core.generation.both_ways import BothWays
from attnviz.figures import Curve, cost_curves, quantity


def with_without(visit: Visit, shape: Shape | None) -> None:
    """Offer to run both ways, and draw what came out, measured and by formula."""
    st.markdown(say("both", "intro"))
    if "cache" in visit.info.cannot:
        st.info(plain(visit.info.cannot["cache"]))
        return
    key = ("both ways", visit.choice, visit.text)
    found = cache.results().peek(key)
    if found is None:
        _measure(visit, key)
        return
    if not found:
        st.info(say("both", "too_short"))
        return
    _result(found)
    _seconds(visit, found)
    if shape is not None:
        _formula(visit, shape)
        _eye(shape)
    st.caption(say("both", "formula"))


def _measure(visit: Visit, key: tuple[Any, ...]) -> None:
    """Offer to run both ways, or show how far that is; another text in the middle isn't measured unasked."""
    lengths = lengths_within(visit.info.limit)
    if not lengths:
        st.info(say("both", "no_room", title=visit.info.title, limit=visit.info.limit, least=LENGTHS[0] + N_STEPS))
        return
    if job.is_going_on("measuring_both", key):
        job.watch("measuring_both", keep=lambda found: cache.results().get(key, lambda: found), key="stop-both")
        return
    work = partial(measure_both, cache.get_engine(visit.choice), visit.text, lengths)
    begin = {"args": ("measuring_both", key, work), "kwargs": {"alone": job.ALONE_SECONDS}}
    st.button("Run both", key="run-both", type="primary", on_click=job.start, **begin)
    st.caption(f"Your text, repeated to {', '.join(map(str, lengths))} tokens, {N_STEPS} steps each.")


def _result(found: tuple[BothWays, ...]) -> None:
    last = found[-1]
    cached, plain = (quantity(_typical(seconds), "seconds") for seconds in (last.cached, last.plain))
    st.markdown(
        say(
            "both",
            "result",
            n=sum(len(both.cached) for both in found),
            same="same" if all(both.same_tokens for both in found) else "different",
            gap=f"{max(both.largest_gap for both in found):.1e}",
            cached=cached,
            plain=plain,
            ratio=f"{last.ratio:.0f}",
            t=last.n_tokens[-1],
        )
    )


def _seconds(visit: Visit, found: tuple[BothWays, ...]) -> None:
    n_tokens = [both.n_tokens[-1] for both in found]
    cached = [_typical(both.cached) for both in found]
    plain = [_typical(both.plain) for both in found]
    figure = cost_curves(
        [Curve("without the cache", n_tokens, plain), Curve("with the cache", n_tokens, cached)],
        unit="seconds",
        x_name="tokens so far",
        y_name="time of one more token",
        log=False,
        markers=True,
        title="Measured here: one more token",
        theme=visit.theme,
    )
    table = {"tokens": n_tokens, "with the cache, s": cached, "without, s": plain}
    name = f"with and without cache {visit.info.name}"
    draw(figure, "both-seconds", name, table, about=of_model(visit))
    if len(found) > 1:
        grew = {"cached": cached[-1] / cached[0], "plain": plain[-1] / plain[0]}
        st.markdown(say("both", "grew", first=n_tokens[0], last=n_tokens[-1], **grew))


def _typical(seconds: tuple[float, ...]) -> float:
    """Return the median of all steps but the first, which reads the whole text."""
    return statistics.median(seconds[1:])


def _formula(visit: Visit, shape: Shape) -> None:
    """Draw the multiply-adds of one more token, attention and all else apart."""
    lengths = [16, 64, 256, 1024, 4096, 16384]
    curves, table = [], {"tokens": lengths}
    for cached, name in ((False, "without"), (True, "with the cache")):
        costs = [step_cost(shape, t, cache=cached) for t in lengths]
        parts = {"attention": [c.attention for c in costs], "all weights": [c.total - c.attention for c in costs]}
        for part, values in parts.items():
            curves.append(Curve(f"{part}, {name}", lengths, values))
            table[f"{part}, {name}"] = values
    figure = cost_curves(
        curves,
        x_name="tokens so far",
        y_name="multiply-adds of one more token",
        title="By formula: attention and the weights apart",
        theme=visit.theme,
    )
    name = f"multiply-adds of a step {visit.info.name}"
    draw(figure, "both-formula", name, table, about=OF_NOTHING)


def _eye(shape: Shape) -> None:
    one = step_cost(shape, 1, cache=True)
    st.markdown(
        say(
            "both",
            "eye",
            weights=quantity(one.total - one.attention),
            pair=f"{one.attention:,}",
            meeting=f"{step_meeting_point(shape, cache=True):,.0f}",
        )
    )
