"""The head card: what the selected head does here, and what it is known for."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit
from attnviz.core.compare.agreement import largest_probability_difference, largest_weight_difference
from attnviz.core.heads.battery import BatteryScores, battery_texts, known_for
from attnviz.core.heads.in_words import here


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
