"""The sentences of the page Cost, from `assets/cost.toml`: parts with the same fields as the steps of the lesson."""

import tomllib
from functools import cache
from pathlib import Path

from attnviz.ui.lesson.frame import Step

FILE = Path(__file__).resolve().parents[3] / "assets" / "cost.toml"


@cache
def all_parts() -> dict[str, Step]:
    """Return the parts by name, in the order of the file."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["part"]
    steps = (Step(number=number, **{**entry, "code": tuple(entry["code"])}) for number, entry in enumerate(entries, 1))
    return {step.name: step for step in steps}


def table(header: str, rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table whose first column is left-aligned and the others right.

    >>> print(table("| a | b |", [("x", "1")]))
    | a | b |
    |:--|--:|
    | x | 1 |
    """
    n_columns = header.count("|") - 1
    return "\n".join([header, f"|:--|{'--:|' * (n_columns - 1)}", *(f"| {' | '.join(row)} |" for row in rows)])
