"""The sentences of the page Generate, from `texts.toml`."""

from typing import Any

from attnviz.app.show.lesson import fill, read_texts


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers and words filled in."""
    return fill(read_texts("attnviz.app.generate")[topic][name].replace("\n", " "), **values)
