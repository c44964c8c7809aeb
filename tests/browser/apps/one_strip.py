"""One token strip of made-up attention: what it draws comes from the address."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from attnviz.app.components.token_strip.token_strip import StripLook, StripTokens, token_strip
from tests.browser.apps.made_up import SENTENCES, made_up_attention


def show(choice: Mapping[str, str], visit: str) -> None:
    """Draw one strip; its box and switch have the visit in their keys."""
    words = SENTENCES[choice.get("text", "animal")]
    if "tokens" in choice:
        words = (words * int(choice["tokens"]))[: int(choice["tokens"])]
    causal = choice.get("causal", "yes") == "yes"
    attention = made_up_attention(len(words), causal=causal)
    if st.toggle("Other head", key=f"other-{visit}"):
        attention = attention @ attention
    masked = "causal" if causal else None
    if "hole" in choice:
        masked = np.zeros(attention.shape, dtype=bool)
        masked[8, [2, 5]] = True
    pinned = st.number_input("Pin", -1, len(words) - 1, int(choice.get("pin", -1)), key=f"pin-{visit}")
    if "cross" in choice:
        tokens = StripTokens(words, keys=["Das", "·Tier", "·war", "·müde", "."])
        event = token_strip(tokens, attention[:, :5], look=StripLook("lines"), key=f"strip-{visit}")
    else:
        event = token_strip(
            StripTokens(words, special=[word in ("[CLS]", "[SEP]") for word in words]),
            attention,
            masked=masked,
            look=StripLook(choice.get("mode", "shade"), choice.get("direction", "looks at")),
            selected=int(choice["selected"]) if "selected" in choice else None,
            pinned=None if pinned < 0 else int(pinned),
            key=f"strip-{visit}",
        )
    st.text(f"pinned {event.pinned}")
