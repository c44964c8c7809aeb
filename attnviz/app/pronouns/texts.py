"""The sentences of the page Pronouns, from `texts.toml`."""

from functools import cache
from typing import Any

from attnviz.app.show.lesson import fill, read_texts


@cache
def _texts() -> dict[str, dict[str, str]]:
    return read_texts("attnviz.app.pronouns")


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers filled in and minus signs as they should be."""
    return fill(_texts()[topic][name].replace("\n", " "), **values).replace(" -", " −")
