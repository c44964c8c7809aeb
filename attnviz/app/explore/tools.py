"""What Explore offers below the head: compare, find heads, all heads as lines, what a head writes."""

import streamlit as st

from attnviz.app.explore.compare.tool import compare
from attnviz.app.explore.find.tool import find
from attnviz.app.explore.lines import lines
from attnviz.app.explore.writes import writes
from attnviz.app.shell.visit import Visit

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
