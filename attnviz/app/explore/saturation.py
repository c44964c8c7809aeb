"""How sharp the softmax is, with the model's factor 1/√d and without it, on the same q and k."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_view
from attnviz.core.softmax.row_sharpness import LARGEST_NORM, Histogram, histogram
from attnviz.core.softmax.sharpness import Saturation, SaturationReport, Scope, saturation_report
from attnviz.figures import gradient_histogram, saturation_histogram

SCOPES: dict[Literal["hide"] | Scope, str] = {
    "hide": "hide",
    "head": "this head",
    "layer": "its layer",
    "all": "all heads",
}
NAMES = ("with 1/√d", "without")


def saturation(visit: Visit) -> None:
    """Offer the histograms, and draw them for the chosen scope."""
    st.markdown("#### How sharp is the softmax?")
    reason = visit.info.cannot.get("scores") or visit.info.cannot.get("scaled")
    label = "Histograms of weights and gradients, with and without the factor 1/√d, for"
    scope = choose(label, "histogram", SCOPES, disabled=bool(reason), help=reason)
    if reason:
        st.caption(plain(reason))
    elif scope != "hide":
        _report(visit, scope)


def _report(visit: Visit, scope: Scope) -> None:
    own = visit.picture if visit.switched else None
    layer = None if scope == "all" else visit.layer
    head = visit.head if scope == "head" else None
    key = ("saturation", visit.choice, visit.text, visit.after.switches, own, visit.part, scope, layer, head)
    before = None if own is None else replace(own, scaled=True)
    report = cache.results().get(
        key, lambda: saturation_report(visit.after, scope, layer, head, part=visit.part, before=before)
    )
    columns = st.columns(3, gap="medium")
    for column, drawing in zip(columns, (_weights, _maxima, _norms), strict=True):
        with column:
            drawing(visit, report)
    st.markdown(_shares(report))
    st.caption(_what_counts(report))


def _weights(visit: Visit, report: SaturationReport) -> None:
    a, b = report.before.weights, report.after.weights
    figure = saturation_histogram(
        a.counts,
        b.counts,
        a.edges,
        unit="cells",
        value_name="attention weight",
        names=NAMES,
        n_not_finite=a.n_not_finite + b.n_not_finite,
        log_counts=True,
        title="Weights of allowed cells",
        theme=visit.theme,
    )
    draw(figure, "histogram-weights", f"weights {visit.info.name}", partial(_table, a, b), about=of_view(visit))


def _maxima(visit: Visit, report: SaturationReport) -> None:
    a, b = histogram(report.before.maxima), histogram(report.after.maxima)
    figure = saturation_histogram(
        a.counts, b.counts, a.edges, names=NAMES, title="Largest weight of each row", theme=visit.theme
    )
    draw(figure, "histogram-maxima", f"row maxima {visit.info.name}", partial(_table, a, b), about=of_view(visit))


def _norms(visit: Visit, report: SaturationReport) -> None:
    a, b = (histogram(side.norms, high=LARGEST_NORM) for side in (report.before, report.after))
    figure = gradient_histogram(a.counts, b.counts, a.edges, names=NAMES, theme=visit.theme)
    name = f"softmax gradient {visit.info.name}"
    draw(figure, "histogram-gradient", name, partial(_table, a, b), about=of_view(visit))


def _table(before: Histogram, after: Histogram) -> dict[str, np.ndarray]:
    edges = before.edges.round(4)
    return {"from": edges[:-1], "to": edges[1:], NAMES[0]: before.counts, NAMES[1]: after.counts}


def _shares(report: SaturationReport) -> str:
    lines = [
        "| largest weight above 0.99 | of all rows | on the first token or a special one | elsewhere | "
        "median gradient (10 to 90 %) |",
        "|:--|--:|--:|--:|--:|",
    ]
    for name, side in zip(NAMES, (report.before, report.after), strict=True):
        share, (low, middle, high) = side.saturated(), side.norm_quantiles((0.1, 0.5, 0.9))
        lines.append(
            f"| {name} | {share.share:.1%} | {share.at_rest:.1%} | {share.elsewhere:.2%} | "
            f"{middle:.3f} ({low:.3f} to {high:.3f}) |"
        )
    return "\n".join(lines)


def _what_counts(report: SaturationReport) -> str:
    side: Saturation = report.before
    n_rows = len(side.maxima)
    sentences = [
        f"Counted: {side.weights.n:,} allowed cells of {len(report.heads)} head{'s' * (len(report.heads) > 1)}, "
        f"{side.n_single:,} of them the only choice of their row (always 1); and {n_rows:,} rows with a choice, which "
        "the other two histograms count.",
        "A head at rest puts nearly everything on the first token: that is no dying softmax, so it is counted apart. "
        "The gradient's size is the Frobenius norm of the softmax's Jacobian: 0 when one token has all the weight, "
        "1/2 when two share it. A trained model without its factor shows a wrong temperature, not how training without "
        "it would have gone.",
    ]
    if side.n_rows_used < side.n_rows:
        sentences.append(f"Of {side.n_rows:,} queries {side.n_rows_used:,}, evenly spaced, were used.")
    broken = side.n_broken + report.after.n_broken
    if broken:
        sentences.append(f"{broken:,} rows hold NaN or infinity and are left out.")
    return plain(" ".join(sentences))
