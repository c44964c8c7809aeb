"""Part 4, measured here: five ways to the same attention, their time and memory on this machine."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import psutil
import streamlit as st

from attnviz.app.shell.visit import Visit, theme
from attnviz.app.show import charts, job
from attnviz.app.show.facts import OF_NOTHING
from attnviz.app.show.lesson import Step, guess
from attnviz.core.cost.measurements import SHARE, SIZES, WAYS, Measurement, Quantity, csv_text, findings, growth
from attnviz.figures import Curve, cost_curves, quantity
from attnviz.models.measure.timing import Run

NOISE = {"seconds": 0.0, "peak_bytes": 5e5}  # smaller numbers are not drawn
UNITS: dict[Quantity, str] = {"seconds": "seconds", "peak_bytes": "bytes"}
NAMES: dict[Quantity, str] = {"seconds": "time", "peak_bytes": "memory"}


def draw(visit: Visit | None, part: Step) -> None:
    """Offer to measure, show how far it is, and draw what came out."""
    guess(part)
    run: Run | None = st.session_state.get("timing_run")
    if run is not None and job.is_going_on("timing", run):
        job.watch("timing", keep=lambda nothing: None, key="stop-timing")
        return
    _offer(part, run)
    if run is None or not run.results:
        return
    if run.state in ("stopped", "failed"):
        st.info(part.say(run.state))
    _results(part, run)


def _offer(part: Step, run: Run | None) -> None:
    free = psutil.virtual_memory().available
    label = "Measure on this machine" if run is None else "Measure again"
    st.button(label, key="start-timing", type="primary", on_click=_start, args=(part,))
    sizes = ", ".join(f"{size:,}" for size in SIZES)
    st.caption(part.say("before", sizes=sizes, limit=quantity(SHARE * free, "bytes"), free=quantity(free, "bytes")))


def _start(part: Step) -> None:
    run = st.session_state.timing_run = Run()
    job.start("timing", run, partial(_measure, run, part), on_stop=run.stop, alone=job.ALONE_SECONDS)


def _measure(run: Run, part: Step, say: job.Say) -> None:
    def look() -> None:
        if run.state == "waiting":
            say(0, 0, part.say("waiting"))
            return
        what = "Starting" if run.now is None else f"{WAYS[run.now[0]]}, {run.now[1]:,} tokens"
        say(*run.done, f"{what} ({len(run.results)} of {len(run.sizes) * len(WAYS)} measured)")

    run.measure(look)


def _results(part: Step, run: Run) -> None:
    for column, measure, title in zip(
        st.columns(2, gap="large"), UNITS, ("Time", "Memory beyond what was there"), strict=True
    ):
        with column:
            _chart(run.results, measure, title)
    st.caption(part.say("guides"))
    if run.skipped:
        what = ", ".join(f"{WAYS[way]} at {tokens:,}" for way, tokens, _ in run.skipped)
        st.info(part.say("skipped", limit=quantity(run.limit, "bytes"), what=what))
    st.markdown("#### What this machine showed, and why")
    for name, both in findings(run.results):
        unit = "seconds" if "_time_" in name else "bytes"
        numbers = {"first": quantity(both.first, unit), "second": quantity(both.second, unit), "tokens": both.tokens}
        st.markdown(part.say(name, times=1 / max(both.ratio, 1e-9), **numbers))
    _growth(part, run.results)
    st.caption(part.say("method", machine=run.machine))
    name = "attention-measured.csv"
    make = partial(csv_text, run.results, run.machine)
    st.download_button("Results as CSV", make, name, "text/csv", on_click="ignore", key="timing-csv")


def _chart(results: Sequence[Measurement], measure: Quantity, title: str) -> None:
    """Draw one quantity of all ways over the length, with lines of slope 2 and 1 to compare with."""
    unit = UNITS[measure]
    curves = _drawn(results, measure)
    if not curves:
        st.info("All numbers are too small to draw.")
        return
    figure = cost_curves(
        [*curves, *_guides(curves, linear=unit == "bytes")],
        unit=unit,
        y_name=unit,
        markers=True,
        how_to_read="Each point is one measurement; a line as steep as the dotted s² grows four times for twice the "
        "tokens.",
        notes=_noise(results, measure),
        title=title,
        theme=theme(),
        height=560,
    )
    ways, tokens = [WAYS[m.way] for m in results], [m.tokens for m in results]
    table = {"way": ways, "tokens": tokens, unit: [getattr(m, measure) for m in results]}
    charts.draw(figure, f"timing-{unit}", f"attention {unit}", table, about=OF_NOTHING)


def _noise(results: Sequence[Measurement], measure: Quantity) -> list[str]:
    n = sum(getattr(m, measure) <= NOISE[measure] for m in results)
    return [f"{n} numbers below {quantity(NOISE[measure], UNITS[measure])} are noise, not drawn."] if n else []


def _drawn(results: Sequence[Measurement], measure: Quantity) -> list[Curve]:
    """Return a curve for each way that has a number above the noise."""
    curves = []
    for way, name in WAYS.items():
        points = [(m.tokens, getattr(m, measure)) for m in results if m.way == way]
        points = [(tokens, value) for tokens, value in points if value > NOISE[measure]]
        if points:
            curves.append(Curve(name, *np.array(points, np.float64).T))
    return curves


def _guides(curves: Sequence[Curve], *, linear: bool) -> list[Curve]:
    """Return a line of slope 2 just above the highest curve's end and, if asked, one of slope 1 below the lowest's."""
    highest = max(curves, key=lambda curve: np.max(curve.y))
    x = np.asarray(highest.x, np.float64)
    if len(x) < 2:
        return []
    lowest = min(curves, key=lambda curve: np.asarray(curve.y)[-1])
    square = 1.5 * np.max(highest.y) * (x / x[-1]) ** 2
    line = 0.6 * np.asarray(lowest.y)[-1] * (x / x[-1])
    return [Curve("s²", x, square, guide=True), *([Curve("s", x, line, guide=True)] if linear else [])]


def _growth(part: Step, results: Sequence[Measurement]) -> None:
    powers = []
    for measure, what in NAMES.items():
        found = {name: growth(results, way, measure) for way, name in WAYS.items()}
        listed = "; ".join(f"{name} {power:.1f}" for name, power in found.items() if power is not None)
        if listed:
            powers.append(f"**{what}:** {listed}")
    if powers:
        sentence = part.say("growth", powers="§").replace("§", ". ".join(powers))
        st.markdown(sentence)
