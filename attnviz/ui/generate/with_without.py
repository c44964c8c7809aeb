"""The same continuation with the cache and without, both really run, at several lengths of text."""

from functools import partial
from typing import Any

import streamlit as st

from attnviz.core.both_ways import BothWays, both_ways
from attnviz.core.cost import Shape, step_cost, step_meeting_point
from attnviz.core.switches import Switches
from attnviz.figures import Curve, cost_curves, quantity
from attnviz.ui import cache
from attnviz.ui.charts import draw
from attnviz.ui.generate.texts import say
from attnviz.ui.visit import Visit

LENGTHS = (16, 64, 128, 256, 512)  # tokens of text that a step is measured at
N_STEPS = 5  # at each length; the first reads the whole text


def with_without(visit: Visit, shape: Shape | None) -> None:
    """Offer to run both ways, and draw what came out, measured and by formula."""
    st.markdown(say("both", "intro"))
    key = ("both ways", visit.choice, visit.text)
    found = cache.results().peek(key)
    if found is None:
        found = _measure(visit, key)
        if found is None:
            return
    _result(found)
    _seconds(visit, found)
    if shape is not None:
        _formula(visit, shape)
        _eye(shape)
    st.caption(say("both", "formula"))


def _measure(visit: Visit, key: tuple[Any, ...]) -> tuple[BothWays, ...] | None:
    """Run both ways at each length, with progress and a button that stops it; a stopped run leaves nothing behind."""
    chosen = st.session_state
    if not chosen.get("measuring_both"):
        st.button("Run both", key="run-both", type="primary", on_click=_set_measuring, args=(True,))
        st.caption(
            f"Your text, repeated to {', '.join(map(str, LENGTHS[:-1]))} and {LENGTHS[-1]} tokens, {N_STEPS} steps each."
        )
        return None
    st.button("Stop", key="stop-both", on_click=_set_measuring, args=(False,))
    bar = st.empty()
    engine = cache.get_engine(visit.choice, lambda sentence: None)
    lengths = [n for n in LENGTHS if n + N_STEPS <= visit.info.limit]
    found = []
    for number, n in enumerate(lengths):
        text = _text_of(engine, visit.text, n)
        runs: dict[bool, list] = {True: [], False: []}
        for cached in (True, False):
            word = "with" if cached else "without"
            for step in engine.generate(text, N_STEPS, cache=cached):
                runs[cached].append(step)
                share = (number + (0 if cached else 0.5) + 0.1 * len(runs[cached])) / len(lengths)
                bar.progress(min(share, 1.0), f"{n} tokens, {word} the cache: step {len(runs[cached])} of {N_STEPS}")
        found.append(both_ways(runs[True], runs[False]))
    _set_measuring(False)
    cache.results().get(key, lambda: tuple(found))
    st.rerun(scope="fragment")
    return None


def _text_of(engine: Any, text: str, n_tokens: int) -> str:
    """Return the text, repeated or cut so that it has n tokens or a few more, as the engine reads it."""
    once = max(1, len(engine.trace(text, max_tokens=n_tokens, switches=Switches()).tokens))
    body = (text.strip() + " ") * (n_tokens // once + 2)
    tokens = engine.trace(body, max_tokens=n_tokens).tokens
    return body[: tokens[-1].end]


def _result(found: tuple[BothWays, ...]) -> None:
    last = found[-1]
    cached, plain = (quantity(seconds, "seconds") for seconds in (min(last.cached[1:]), min(last.plain[1:])))
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
    cached = [sorted(both.cached[1:])[len(both.cached[1:]) // 2] for both in found]
    plain = [sorted(both.plain[1:])[len(both.plain[1:]) // 2] for both in found]
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
    draw(figure, "both-seconds", f"with and without cache {visit.info.name}", partial(dict, table))


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
    draw(figure, "both-formula", f"multiply-adds of a step {visit.info.name}", partial(dict, table))


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


def _set_measuring(on: bool) -> None:
    st.session_state.measuring_both = on
