"""Where a command's text comes from: an option, a file, or standard input."""

import sys
from pathlib import Path
from typing import Annotated

import typer

Text = Annotated[str | None, typer.Option("--text", help="The text itself, or - to read it from standard input.")]
File = Annotated[Path | None, typer.Option("--file", help="A UTF-8 file with the text.")]


def read_text(text: str | None, file: Path | None) -> str:
    """Return the text that was asked for, without the line break at the end of a file.

    Raises:
        ValueError: neither or both were given, or the file can't be read.
    """
    if (text is None) == (file is None):
        raise ValueError("pass the text with --text, or a file with --file, or --text - for standard input")
    if text is not None and text != "-":
        return text
    try:
        raw = sys.stdin.buffer.read() if file is None else file.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{file or 'standard input'} can't be read: {(error.strerror or str(error)).lower()}"
        ) from error
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file or 'standard input'} isn't UTF-8 text") from error
