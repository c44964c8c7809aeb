"""The parts of the page Cost, from `texts.toml`: with the same fields as the steps of the lesson."""

from functools import cache

from attnviz.app.show.lesson import Step, read_steps


@cache
def all_parts() -> dict[str, Step]:
    """Return the parts by name, in the order of the file."""
    return read_steps("attnviz.app.cost", "part")


def table(header: str, rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table whose first column is left-aligned and the others right.

    >>> print(table("| a | b |", [("x", "1")]))
    | a | b |
    |:--|--:|
    | x | 1 |
    """
    n_columns = header.count("|") - 1
    return "\n".join([header, f"|:--|{'--:|' * (n_columns - 1)}", *(f"| {' | '.join(row)} |" for row in rows)])
