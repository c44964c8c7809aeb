"""The parts of the page Cost, from `texts.toml`: with the same fields as the steps of the lesson."""

from attnviz.app.show.lesson import Step, read_steps


def all_parts() -> dict[str, Step]:
    """Return the parts by name, in the order of the file."""
    return read_steps("attnviz.app.cost", "part")
