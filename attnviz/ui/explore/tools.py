"""What Explore offers below the head: compare, find heads, all heads as lines, what a head writes."""

import streamlit as st

from attnviz.ui.explore.compare import compare
from attnviz.ui.explore.find import find
from attnviz.ui.explore.lines import lines
from attnviz.ui.explore.writes import writes
from attnviz.ui.visit import Visit

TOOLS = {
    "none": "nothing",
    "compare": "Compare",
    "find": "Find heads",
    "lines": "Heads as lines",
    "writes": "What it writes",
}
DRAW = {"compare": compare, "find": find, "lines": lines, "writes": writes}


def tools(visit: Visit) -> None:
    """Show the row of tools, and the one that is open."""
    st.segmented_control(
        "More to see",
        list(TOOLS),
        key="tool",
        persist_state="session",
        required=True,
        format_func=TOOLS.get,
    )
    draw = DRAW.get(st.session_state.tool)
    if draw is not None:
        draw(visit)
