"""The sentences of the page Generate, from `assets/generate.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attnviz.ui.lesson.frame import fill

FILE = Path(__file__).resolve().parents[3] / "assets" / "generate.toml"


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def say(topic: str, name: str, /, **values: Any) -> str:
    """Return a sentence as Markdown, with numbers and words filled in."""
    return fill(_texts()[topic][name].replace("\n", " "), **values)
