"""The command app: the pages in the browser."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli.shared import plain_errors

APP = Path(__file__).resolve().parents[2] / "app.py"
BY_HAND = 130  # exit code after Ctrl+C, the ordinary way to end the app


def start(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the pages are served.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open the pages in the browser. Ctrl+C ends them.

    \b
    Examples:
      python -m attnviz app
      python -m attnviz app --port 8600 --no-browser
    """
    with plain_errors():
        if not APP.is_file():
            raise ValueError(f"there is no {APP}: the pages run from a copy of the repository")
        command = [sys.executable, "-m", "streamlit", "run", APP.name, "--server.port", str(port)]
        command += [] if browser else ["--server.headless", "true"]
        try:
            code = subprocess.call(command, cwd=APP.parent)
        except KeyboardInterrupt:
            code = 0
    raise typer.Exit(0 if code == BY_HAND else code)
