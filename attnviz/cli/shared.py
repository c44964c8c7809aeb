"""What the commands share: where they print, how they load and write, and how they say what went wrong."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

STOPPED = 130  # exit code after Ctrl+C, as shells have it

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Model = Annotated[
    str, typer.Option(help="smollm2, minilm, untrained, a Hugging Face id, a folder with safetensors, or a .gguf file.")
]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what a user got wrong into one sentence and exit code 2, and Ctrl+C into another."""
    try:
        yield
    except ValueError as error:
        err.print(f"[bold]attnviz:[/bold] {escape(' '.join(str(error).split()))}", soft_wrap=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        err.print("[bold]attnviz:[/bold] stopped; nothing was written", soft_wrap=True)
        raise typer.Exit(STOPPED) from error


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each thing that is run, and yield the function that moves it."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not err.is_terminal  # a file or a pipe has no use for a bar
    with Progress(*columns, TimeRemainingColumn(), console=err, transient=True, disable=hidden) as bars:
        tasks: dict[str, Any] = {}

        def move(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(escape(what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield move


def load_engine(name: str) -> Any:
    """Load a model, saying on a terminal what takes its time."""
    import attnviz

    with err.status(f"Loading {escape(name)}") as status:
        return attnviz.load(name, progress=lambda sentence: status.update(escape(sentence)))


def check_writable(file: Path) -> None:
    """Raise ValueError before the work, not after it, if the result can't be written."""
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file to write")
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent} to write {file.name} into")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"{file} may not be written")


def write_file(file: Path, content: str | bytes) -> None:
    """Write a result; raise ValueError with the reason if that fails."""
    try:
        file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise ValueError(f"{file} can't be written: {(error.strerror or str(error)).lower()}") from error


def number_table(title: str, *columns: str) -> Table:
    """Return an empty table with a column of names, called "", and columns of numbers to the right of it."""
    table = _table(title)
    for name in columns:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    return table


def word_table(title: str, *columns: str) -> Table:
    """Return an empty table whose cells are words, broken into lines where they are long."""
    table = _table(title)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _table(title: str) -> Table:
    return Table(
        title=escape(title), title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
