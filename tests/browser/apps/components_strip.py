"""A page with one token strip of made-up attention, for the browser tests: what it draws comes from the address."""

import numpy as np
import streamlit as st

from attnviz.app.components.token_strip.token_strip import token_strip
from tests.browser.apps.made_up import SENTENCES, made_up_attention

st.set_page_config(layout="wide")
choice = st.query_params
words = SENTENCES[choice.get("text", "animal")]
if "tokens" in choice:
    words = (words * int(choice["tokens"]))[: int(choice["tokens"])]
causal = choice.get("causal", "yes") == "yes"
attention = made_up_attention(len(words), causal=causal)
if st.toggle("Other head"):
    attention = attention @ attention
masked = "causal" if causal else None
if "hole" in choice:
    masked = np.zeros(attention.shape, dtype=bool)
    masked[8, [2, 5]] = True
pinned = st.number_input("Pin", -1, len(words) - 1, int(choice.get("pin", -1)))
if "cross" in choice:
    event = token_strip(words, attention[:, :5], keys=["Das", "·Tier", "·war", "·müde", "."], mode="lines", key="strip")
else:
    event = token_strip(
        words,
        attention,
        special=[word in ("[CLS]", "[SEP]") for word in words],
        selected=int(choice["selected"]) if "selected" in choice else None,
        pinned=None if pinned < 0 else int(pinned),
        mode=choice.get("mode", "shade"),
        direction=choice.get("direction", "looks at"),
        masked=masked,
        key="strip",
    )
st.text(f"pinned {event.pinned}")
