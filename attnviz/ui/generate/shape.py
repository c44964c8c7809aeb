"""The sizes of the loaded model, for formulas of cost."""

from attnviz.core.cost import Shape
from attnviz.ui import cache
from attnviz.ui.visit import Visit


def loaded_shape(visit: Visit) -> Shape | None:
    """Return the sizes of the visitor's model; None where its configuration doesn't name them as most do."""
    from attnviz.models.shapes import shape_of  # here, since it brings torch, which the page shouldn't wait for

    engine = cache.get_engine(visit.choice, lambda sentence: None)
    return cache.results().get(("shape", visit.choice), lambda: shape_of(engine))
