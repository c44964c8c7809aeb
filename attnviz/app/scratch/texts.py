"""The steps of the lesson, from `texts.toml`."""

from attnviz.app.show.lesson import Step, read_steps


def all_steps() -> dict[str, Step]:
    """Return the steps by name, in the order of the file."""
    return read_steps("attnviz.app.scratch", "step")
