"""The parts of the page Cost: which module draws which. The only list of the parts that there are."""

from collections.abc import Callable

from attnviz.ui.cost import flash, grows, matrix, measured
from attnviz.ui.lesson.frame import Step
from attnviz.ui.visit import Visit

DRAW: dict[str, Callable[[Visit | None, Step], None]] = {
    "grows": grows.draw,
    "matrix": matrix.draw,
    "flash": flash.draw,
    "measured": measured.draw,
}
