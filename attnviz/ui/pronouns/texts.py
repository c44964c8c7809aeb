"""The sentences of the page Pronouns, from `assets/pronouns/page.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from attnviz.core.items import SHIPPED
from attnviz.ui.lesson.frame import fill


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((SHIPPED / "page.toml").read_text(encoding="utf-8"))


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers filled in and minus signs as they should be."""
    return fill(_texts()[topic][name].replace("\n", " "), **values).replace(" -", " −")
