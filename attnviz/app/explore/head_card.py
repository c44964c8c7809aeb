"""The head card, and what the model would write next."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw
from attnviz.app.show.facts import of_view
from attnviz.core.compare.agreement import largest_probability_difference, largest_weight_difference
from attnviz.core.heads.battery import BatteryScores, battery_texts, known_for
from attnviz.core.heads.in_words import here
from attnviz.figures import next_token_bars

N_GUESSES = 6


def head_card(visit: Visit) -> None:
    """Say what the selected head is known for on the reference texts and, apart, what it does here."""
    st.markdown(f"#### {visit.name}")
    head = visit.head_after
    queries, keys = head.tokens
    rows = np.full(len(queries), -1) if visit.part == "cross" else None
    found = here(head.weights, head.allowed, keys, rows=rows, query_tokens=queries)
    st.markdown(f"**On this text:** {plain(found.sentence)}")
    if visit.part == "cross":
        return
    lines = [
        f"- {plain(known.title)}: {known.score:.2f} :gray[(n {known.n:,})]"
        for known in known_for(_battery(visit), visit.layer, visit.head)
    ]
    st.markdown(
        f"**Known for,** on {len(battery_texts())} reference texts that come with attnviz, not on yours:\n\n"
        + "\n".join(lines or ["- nothing that those texts test"])
    )
    st.caption("The mean weight over n places where the pattern could show.")


def _battery(visit: Visit) -> BatteryScores:
    with passing() as bar:
        return cache.get_battery(
            visit.choice, visit.part, lambda done, of: bar.progress(done / of, f"Reading reference text {done} of {of}")
        )


def against_pytorch(visit: Visit) -> None:
    """Say how far the from-scratch engine's numbers are from PyTorch's on this text."""
    if visit.info.engine != "numpy":
        return
    other = cache.get_trace(replace(visit.choice, engine="torch"), visit.text, visit.after.switches)
    key = ("against", visit.choice, visit.text, visit.after.switches)
    weights = cache.results().get(key, lambda: largest_weight_difference(visit.after, other))
    sentence = (
        f"Computed by NumPy, from scratch. Against PyTorch, over all heads: weights differ by at most {weights:.1e}"
    )
    if visit.info.predicts:
        sentence += f", next-token probabilities by {largest_probability_difference(visit.after, other):.1e}"
    st.caption(plain(f"{sentence}."))


def guesses(visit: Visit) -> None:
    """Draw the likeliest next tokens, before and after the switches of a whole pass."""
    st.markdown("#### Next token")
    if not visit.info.predicts:
        st.caption("This model has no next-token output: it turns a text into vectors, and predicts no word.")
        return
    changed = visit.after is not visit.rest
    before, after = visit.rest.next_tokens(N_GUESSES), visit.after.next_tokens(N_GUESSES) if changed else None
    key = ("next", visit.choice, visit.text, visit.after.switches, visit.theme)
    figure = cache.results().get(key, lambda: next_token_bars(before, after, theme=visit.theme, title=""))
    rows = [("as the model is", *pair) for pair in before] + [("switched", *pair) for pair in after or ()]
    names = ("model", "next token", "probability")
    draw(
        figure,
        "next-tokens",
        f"next token {visit.info.name}",
        lambda: dict(zip(names, zip(*rows, strict=True), strict=True)),
        about=of_view(visit),
    )
    if changed:
        st.caption(plain(_what_happened(visit)))
    elif visit.switched:
        st.caption("The switches act on this picture alone, so the prediction is the model's own.")


def _what_happened(visit: Visit) -> str:
    before, after = visit.rest.next_probabilities(), visit.after.next_probabilities()
    best = int(np.argmax(before))
    rank = int((after > after[best]).sum()) + 1
    label = visit.rest.label_of(best)
    return f"“{label}”: {_percent(before[best])} before, {_percent(after[best])} now, rank {rank:,} of {len(after):,}."


def _percent(share: float) -> str:
    """Return a probability with the digits it deserves.

    >>> _percent(0.7731), _percent(0.00012), _percent(0.0000001)
    ('77.3 %', '0.012 %', 'below 0.001 %')
    """
    if share < 1e-5:
        return "below 0.001 %"
    return f"{share * 100:.1f} %" if share >= 0.01 else f"{share * 100:.2g} %"
