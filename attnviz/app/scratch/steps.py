"""The lesson, step by step: which module draws which step. The only list of the steps that there are."""

from collections.abc import Callable

from attnviz.app.scratch import mask, matches, position, roles, scaling, scores, several_heads, softmax, weighted_sum
from attnviz.app.shell.visit import Visit
from attnviz.app.show.lesson import Step

DRAW: dict[str, Callable[[Visit, Step], None]] = {
    "roles": roles.draw,
    "scores": scores.draw,
    "position": position.draw,
    "scaling": scaling.draw,
    "mask": mask.draw,
    "softmax": softmax.draw,
    "weighted_sum": weighted_sum.draw,
    "several_heads": several_heads.draw,
    "matches": matches.draw,
}
