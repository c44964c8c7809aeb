"""The command heatmap: one head on one text, as a picture or as numbers."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import attnviz
from attnviz.cli.picture import head_figure, image, page
from attnviz.cli.shared import Model, check_writable, load_engine, out, plain_errors, write_file
from attnviz.cli.texts import File, Text, read_text
from attnviz.core.export.head_files import head_csv, head_json, head_npz, head_numbers, script
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
        shown = Switches({"own": None, "on": True, "off": False}[causal], scaling, temperature)
        ablate = frozenset(_head(name) for name in off or ())
        words = read_text(text, file)
        engine = load_engine(model)
        given = {"target": target} if target is not None else {}
        of_the_pass = Switches(*_three(shown if in_pass else Switches()), ablate=ablate)
        trace = engine.trace(words, switches=of_the_pass, **given)
        asked: dict[str, Any] = {"part": part} | ({} if in_pass or shown.at_rest else {"switches": shown})
        look = {"theme": theme.value, "scale": colours.value}
        said = _write(out_file, ending, trace, (layer, head), asked, look)
        _say(out_file, trace, said)


def _ending(file: Path) -> str:
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"the name of the file to write ends in {', '.join(ENDINGS)}; got {file.name}")
    return ending[1:]


def _head(name: str) -> tuple[int, int]:
    layer, dot, head = name.partition(".")
    if not (dot and layer.isdecimal() and head.isdecimal()):
        raise ValueError(f"a head to switch off is written layer.head, such as 16.0; got {name}")
    return int(layer), int(head)


def _three(switches: Switches) -> tuple[bool | None, bool, float]:
    return switches.causal, switches.scaled, switches.temperature


def _write(
    file: Path,
    ending: str,
    trace: Trace,
    place: tuple[int, int],
    asked: dict[str, Any],
    look: dict[str, str],
) -> str:
    """Write the file, and return a sentence on what it leaves out, empty if nothing."""
    head = trace.head(*place, **asked)
    writers = {"csv": head_csv, "json": head_json, "npz": head_npz}
    if ending in writers:
        write_file(file, writers[ending](head_numbers(trace, *place, version=attnviz.__version__, **asked)))
        return ""
    if ending == "py":
        write_file(file, script(trace, *place, version=attnviz.__version__, **asked))
        return ""
    title = ", ".join([trace.model.title, head.name, *_changes(trace, asked)])
    figure, left_out = head_figure(head, title=title, **look)
    write_file(file, page(figure, title) if ending == "html" else image(figure, ending))
    return left_out


def _changes(trace: Trace, asked: dict[str, Any]) -> list[str]:
    """Return in words what is switched."""
    shown, ablate = asked.get("switches", trace.switches), sorted(trace.switches.ablate)
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
