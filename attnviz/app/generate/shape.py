"""The sizes of the loaded model, for formulas of cost."""

from attnviz.app.shell import cache
from attnviz.app.shell.visit import Visit
from attnviz.core.cost.formulas import Shape


def loaded_shape(visit: Visit) -> Shape | None:
    """Return the sizes of the visitor's model; None where its configuration doesn't name them as most do."""
    from attnviz.models.measure.shapes import shape_of

    engine = cache.get_engine(visit.choice)
    return cache.results().get(("shape", visit.choice), lambda: shape_of(engine))
