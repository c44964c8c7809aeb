"""The parts of the page Cost: which module draws which. The only list of the parts that there are."""

from collections.abc import Callable

from attnviz.app.cost import flash, grows, matrix
from attnviz.app.cost import measured_here as measured
from attnviz.app.shell.visit import Visit
from attnviz.app.show.lesson import Step

DRAW: dict[str, Callable[[Visit | None, Step], None]] = {
    "grows": grows.draw,
    "matrix": matrix.draw,
    "flash": flash.draw,
    "measured": measured.draw,
}
