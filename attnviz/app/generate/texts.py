"""The sentences of the page Generate, from `texts.toml`."""

from functools import cache
from typing import Any

from attnviz.app.show.lesson import fill, read_texts


@cache
def _texts() -> dict[str, dict[str, str]]:
    return read_texts("attnviz.app.generate")


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers and words filled in."""
    return fill(_texts()[topic][name].replace("\n", " "), **values)
