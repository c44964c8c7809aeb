"""What Explore offers below the head: compare, find heads, all heads as lines, what a head writes."""

from attnviz.app.explore.compare.compared import compare
from attnviz.app.explore.find.ways import find
from attnviz.app.explore.lines import lines
from attnviz.app.explore.writes import writes
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose

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
    draw = DRAW.get(choose("More to see", "tool", TOOLS))
    if draw is not None:
        draw(visit)
