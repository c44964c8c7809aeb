"""What the model would write next, as it is and with the switches in the whole of it."""

from collections.abc import Callable
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import numbers_box
from attnviz.app.show.facts import of_text
from attnviz.core.trace.trace import Trace
from attnviz.figures import next_token_bars

N_WORDS = 6
MOST_ROWS = 8
NO_WORDS = "This model has no next-token output: it turns a text into vectors, and predicts no word."


def next_words(visit: Visit) -> Callable[[], None]:
    """Draw the likeliest next tokens; the function returned draws what belongs below: numbers and files."""
    st.markdown("#### Next token")
    if not visit.info.predicts:
        st.caption(NO_WORDS)
        return lambda: None
    try:
        switched = _switched(visit)
    except ValueError as error:
        st.caption(plain(as_sentence(str(error))))
        switched = None
    before = visit.rest.next_probabilities()
    after = None if switched is None else switched.next_probabilities()
    st.html(rows_html(visit.rest, before, after))
    if after is not None:
        st.caption(plain(_what_happened(visit.rest, before, after)))
    return lambda: _numbers(visit, switched)


def _switched(visit: Visit) -> Trace | None:
    """Return the pass under the switches, whatever the map shows of them; None if all are at rest."""
    if not visit.switched:
        return None
    return visit.after if visit.in_pass else cache.get_trace(visit.choice, visit.text, visit.switches)


def rows_html(trace: Trace, before: NDArray[np.floating], after: NDArray[np.floating] | None) -> str:
    """Return a table of the likeliest tokens, with a bar for each probability.

    Args:
        trace: knows what tokens are called.
        before, after: (vocabulary,) probabilities; after: None if nothing is switched.
    """
    sides = [before] if after is None else [before, after]
    best = [int(token) for side in sides for token in np.argsort(-side, kind="stable")[:N_WORDS]]
    tokens = list(dict.fromkeys(best))[:MOST_ROWS]
    most = max(float(side[tokens].max()) for side in sides)
    head = "<tr><th>token</th><th>probability</th></tr>"
    rows = "".join(_row(trace.label_of(token), [float(side[token]) for side in sides], most) for token in tokens)
    return f'<table class="attnviz-next">{head}{rows}</table>'


def _row(label: str, shares: list[float], most: float) -> str:
    bars = "".join(
        f'<div class="{name}"><i style="width:{100 * share / most:.1f}%"></i><span>{percent(share)}</span></div>'
        for name, share in zip(("own", "switched"), shares, strict=False)
    )
    return f"<tr><th>{escape(label)}</th><td>{bars}</td></tr>"


def _numbers(visit: Visit, switched: Trace | None) -> None:
    before = visit.rest.next_tokens(N_WORDS)
    after = None if switched is None else switched.next_tokens(N_WORDS)
    rows = [("as the model is", *pair) for pair in before] + [("switched", *pair) for pair in after or ()]
    names = ("model", "next token", "probability")
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    figure = next_token_bars(before, after, theme=visit.theme, title="")
    about = of_text(visit, switched or visit.rest)
    numbers_box(figure, "next-tokens", f"next token {visit.info.name}", lambda: table, about=about)


def _what_happened(trace: Trace, before: NDArray[np.floating], after: NDArray[np.floating]) -> str:
    best = int(np.argmax(before))
    rank = int((after > after[best]).sum()) + 1
    label = trace.label_of(best)
    return f"“{label}”: {percent(before[best])} before, {percent(after[best])} now, rank {rank:,} of {len(after):,}."


def percent(share: float) -> str:
    """Return a probability with the digits it deserves.

    >>> percent(0.7731), percent(0.00012), percent(0.0000001)
    ('77.3 %', '0.012 %', 'below 0.001 %')
    """
    if share < 1e-5:
        return "below 0.001 %"
    return f"{share * 100:.1f} %" if share >= 0.01 else f"{share * 100:.2g} %"
