"""The sentences of the page Pronouns, from `texts.toml`."""

from typing import Any

from attnviz.app.show.lesson import fill, read_texts


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers filled in and minus signs as they should be."""
    sentence = read_texts("attnviz.app.pronouns")[topic][name]
    return fill(sentence.replace("\n", " "), **values).replace(" -", " −")
