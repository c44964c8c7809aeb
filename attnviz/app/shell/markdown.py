"""Text that is not Markdown, for Streamlit's Markdown. Standard library only."""

from collections.abc import Iterable


def plain(text: str) -> str:
    """Return text that Streamlit's Markdown shows as it is."""
    for sign in "\\`*_[]<>$~:#|":
        text = text.replace(sign, f"\\{sign}")
    return text


def as_sentence(text: str) -> str:
    """Return an error's text as a sentence; a name in front, such as a model's, keeps its letters.

    >>> as_sentence("there is no text"), as_sentence("gpt2 has no such layer")
    ('There is no text.', 'gpt2 has no such layer.')
    """
    text = plain(text.strip())
    if text.partition(" ")[0].isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def table(header: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table whose first column is left-aligned and the others right.

    >>> print(table("| a | b |", [("x", "1")]))
    | a | b |
    |:--|--:|
    | x | 1 |
    """
    n_columns = header.count("|") - 1
    return "\n".join([header, f"|:--|{'--:|' * (n_columns - 1)}", *(f"| {' | '.join(row)} |" for row in rows)])
