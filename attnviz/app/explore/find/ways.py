"""Heads found by what they do: by a pattern, like the selected one, by drawing, and by what they feed on."""

from attnviz.app.explore.find.by_drawing import by_drawing
from attnviz.app.explore.find.by_feeding import fed_by_this
from attnviz.app.explore.find.by_likeness import like_this
from attnviz.app.explore.find.by_pattern import by_pattern
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose

WAYS = {
    "pattern": "by a pattern",
    "like": "like the selected head",
    "drawn": "by drawing",
    "feeds": "fed by the selected head",
}
DRAW = {"pattern": by_pattern, "like": like_this, "drawn": by_drawing, "feeds": fed_by_this}


def find(visit: Visit) -> None:
    """Show the four ways to find heads, and what the chosen one finds: a picture, and a list of heads beside it."""
    DRAW[choose("Find heads", "find_by", WAYS)](visit)
