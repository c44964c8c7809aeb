"""Which colour scale the visitor wants weights drawn in. Needs streamlit."""

import streamlit as st

from attnviz.app.shell.fields import PALETTES
from attnviz.figures.palettes import DEFAULT

TITLES = {"indigo": "indigo", "viridis": "viridis (yellow, green, purple)", "cividis": "cividis (yellow, blue)"}


def chosen() -> str:
    """Return the name of the colour scale, the app's own where nobody chose."""
    name = st.session_state.get("palette")
    return name if name in PALETTES else DEFAULT


def picker() -> None:
    """Let the visitor choose."""
    st.selectbox(
        "Colours of weights",
        PALETTES,
        key="palette",
        persist_state="session",
        format_func=lambda name: TITLES.get(name, name),
        help="One scale for all pictures of weights. Each is even, and safe for colour-blind eyes.",
    )
