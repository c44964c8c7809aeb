"""The command line: `python -m attnviz --help`.

Each command reads its arguments, calls models and core, and prints. What a user can get wrong ends in one sentence and
exit code 2. Torch is imported inside the commands that need it, so that help comes at once.
"""

import os

import typer

from attnviz.cli import heads, models, pronouns, start, write_head

app = typer.Typer(
    help="See what attention does in language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app(prog_name="python -m attnviz")


@app.callback()
def _commands() -> None:
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the commands have bars of their own


app.command("app")(start.start)
app.command()(models.models)
app.command()(write_head.heatmap)
app.command()(heads.heads)
app.command()(pronouns.scan)
app.command("make-items")(pronouns.make_items)
app.command("make-scores")(pronouns.make_scores)
