"""The command heatmap: one head on one text, as a picture or as numbers."""

import os
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import attnviz
from attnviz.cli.head_picture import head_figure, image, page
from attnviz.cli.shared import Model, check_writable, load_engine, out, plain_errors, write_file
from attnviz.cli.texts import File, Text, read_text
from attnviz.core.export.head_files import HeadNumbers, head_csv, head_json, head_npz, numbers_of, script_of
from attnviz.core.trace.head import Head
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

ENDINGS = (".html", ".png", ".svg", ".csv", ".json", ".npz", ".py")


class Causal(StrEnum):
    """Who may look ahead: as the model has it, nobody, or everybody."""

    OWN, ON, OFF = "own", "on", "off"


class Theme(StrEnum):
    """The page that a picture is made for."""

    LIGHT, DARK = "light", "dark"


class Colours(StrEnum):
    """How weights become colours."""

    LINEAR, SQRT, WITHOUT_FIRST = "linear", "sqrt", "without_first"


def heatmap(
    layer: Annotated[int, typer.Option(help="Number of the layer, from 0.")],
    head: Annotated[int, typer.Option(help="Number of the head, from 0.")],
    out_file: Annotated[Path, typer.Option("--out", help=f"The file to write: {' '.join(ENDINGS)}")],
    text: Text = None,
    file: File = None,
    model: Model = "smollm2",
    causal: Annotated[Causal, typer.Option(help="The causal mask: the model's own rule, on, or off.")] = Causal.OWN,
    scaling: Annotated[bool, typer.Option(help="Scale q k^T by the model's own factor.")] = True,
    temperature: Annotated[float, typer.Option(help="Divides what is inside the softmax.")] = 1.0,
    off: Annotated[
        list[str] | None, typer.Option(help="A head to switch off, as layer.head; may be given again.")
    ] = None,
    in_pass: Annotated[
        bool,
        typer.Option("--in-pass", help="The switches act inside the whole model, not on this picture alone."),
    ] = False,
    target: Annotated[str | None, typer.Option(help="The decoder's text, in models with an encoder.")] = None,
    part: Annotated[str | None, typer.Option(help="encoder, decoder or cross, in models with all of them.")] = None,
    theme: Annotated[Theme, typer.Option(help="Colours of a picture.")] = Theme.LIGHT,
    colours: Annotated[Colours, typer.Option(help="How weights become colours.")] = Colours.LINEAR,
) -> None:
    """Write one head's map as a picture (html, png, svg), as numbers (csv, json, npz), or as a script (py).

    \b
    Examples:
      python -m attnviz heatmap --text "Mary bought a car" --layer 13 --head 8 --out car.html
      python -m attnviz heatmap --file letter.txt --layer 9 --head 4 --no-scaling --out letter.csv
      echo "The cat sat." | python -m attnviz heatmap --model minilm --text - --layer 2 --head 4 --out cat.svg
      python -m attnviz heatmap --text "a b a b" --layer 18 --head 6 --off 16.0 --off 16.1 --out off.json

    A head that is switched off with --off is off inside the whole model. An .html file needs no network; .png and .svg
    are drawn by an installed Chromium or Chrome.
    """
    with plain_errors():
        ending = _ending(out_file)
        check_writable(out_file)
        switches = Switches({"own": None, "on": True, "off": False}[causal], scaling, temperature)
        of_the_pass = replace(
            switches if in_pass else Switches(), ablate=frozenset(_head_off(name) for name in off or ())
        )
        words = read_text(text, file)
        trace = load_engine(model).trace(words, target=target, switches=of_the_pass)
        shown = trace.head(layer, head, part=part, switches=None if in_pass or switches.at_rest else switches)
        left_out = _write(out_file, ending, shown, theme=theme.value, scale=colours.value)
        _say(out_file, trace, left_out)


def _ending(file: Path) -> str:
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"the name of the file to write ends in {', '.join(ENDINGS)}; got {file.name}")
    return ending[1:]


def _head_off(name: str) -> tuple[int, int]:
    layer, dot, head = name.partition(".")
    if not (dot and layer.isdecimal() and head.isdecimal()):
        raise ValueError(f"a head to switch off is written layer.head, such as 16.0; got {name}")
    return int(layer), int(head)


def _write(file: Path, ending: str, head: Head, *, theme: str, scale: Any) -> str:
    """Write the file, and return a sentence on what it leaves out, empty if nothing."""
    writers: dict[str, Callable[[HeadNumbers], str | bytes]] = {"csv": head_csv, "json": head_json, "npz": head_npz}
    if ending in writers:
        write_file(file, writers[ending](numbers_of(head, version=attnviz.__version__)))
        return ""
    if ending == "py":
        write_file(file, script_of(head, version=attnviz.__version__))
        return ""
    title = ", ".join([head.trace.model.title, head.name, *_changes(head)])
    figure, left_out = head_figure(head, title=title, theme=theme, scale=scale)
    write_file(file, page(figure, title) if ending == "html" else image(figure, ending))
    return left_out


def _changes(head: Head) -> list[str]:
    """Return in words what is switched."""
    shown, ablate = head.acting, sorted(head.trace.switches.ablate)
    words = [] if shown.causal is None else [f"causal mask {'on' if shown.causal else 'off'}"]
    words += [] if shown.scaled else ["no scaling"]
    words += [] if shown.temperature == 1 else [f"temperature {shown.temperature:g}"]
    words += [f"without {', '.join(f'L{layer} H{head}' for layer, head in ablate)}"] if ablate else []
    return words


def _say(file: Path, trace: Trace, left_out: str) -> None:
    size = os.path.getsize(file)
    cut = f" {trace.n_cut} tokens at the end were cut: the model takes {trace.model.limit}." if trace.n_cut else ""
    sentence = f"{file}: {len(trace.tokens)} tokens, {size / 1000:,.0f} kB.{cut} {left_out}"
    out.print(escape(sentence.strip()), soft_wrap=True)
