"""The command heads: every head of a model, the best on top."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from attnviz.cli.shared import Model, load_engine, out, plain_errors, progress_bar, word_table
from attnviz.cli.texts import File, Text, read_text
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.heads.battery import BatteryScores, battery_texts, known_for, score_battery
from attnviz.core.heads.in_words import here as what_it_does
from attnviz.core.heads.patterns import PATTERNS
from attnviz.core.heads.scored_text import SORTS, score_text
from attnviz.core.trace.trace import Trace


def heads(
    text: Text = None,
    file: File = None,
    model: Model = "smollm2",
    sort: Annotated[str, typer.Option(help=f"What to look for: {', '.join(SORTS)}.")] = "induction",
    known: Annotated[bool, typer.Option("--known", help="Also score the heads on the reference texts.")] = False,
    lowest: Annotated[bool, typer.Option("--lowest", help="The lowest score on top.")] = False,
    n: Annotated[int, typer.Option("--n", min=1, help="How many heads to list.")] = 10,
    part: Annotated[str | None, typer.Option(help="encoder or decoder, in models that have both.")] = None,
) -> None:
    """List the heads of a model that do something most on a text: attend to the previous token, to repetitions ...

    \b
    Examples:
      python -m attnviz heads --text "mint ladder cloud spoon mint ladder cloud spoon" --sort induction
      python -m attnviz heads --file letter.txt --sort previous --n 5 --known
      echo "The cat sat." | python -m attnviz heads --model minilm --text - --sort entropy --lowest

    A head at rest on one text may be a specialist without occasion: --known asks the reference texts.
    """
    with plain_errors():
        if sort not in SORTS:
            raise ValueError(f"heads can be sorted by {', '.join(SORTS)}; got {sort}")
        words = read_text(text, file)
        engine = load_engine(model)
        trace = engine.trace(words)
        part = part or trace.parts[0]
        scores = score_text(trace, sort, part=part)
        battery = _battery(engine, part) if known else None
        order = _order(scores, battery, sort)
        best = strongest(-order if lowest else order, trace.layers_of(part), n)
        if not best:
            title, measured = SORTS[sort]
            raise ValueError(f"no head can be scored for “{title}” on this text: {measured[0].lower()}{measured[1:-1]}")
        _say(trace, part, sort, scores, battery, [(layer, head) for layer, head, _ in best])


def _battery(engine: Any, part: str) -> BatteryScores:
    texts = battery_texts()

    def passes(progress: Any) -> Iterator[tuple[str, Trace]]:
        for done, item in enumerate(texts):
            progress("reference texts", done, len(texts))
            yield item.kind, engine.trace(item.text)

    with progress_bar() as progress:
        return score_battery(passes(progress), part=part)


def _order(scores: Any, battery: BatteryScores | None, sort: str) -> Any:
    """Return what to sort by: the scores on this text, or the reference texts' where this text gives no occasion."""
    if battery is None or sort not in PATTERNS or not np.isnan(scores).all():
        return scores
    return battery.scores[battery.patterns.index(sort)]


def _say(
    trace: Trace, part: str, sort: str, scores: Any, battery: BatteryScores | None, best: list[tuple[int, int]]
) -> None:
    tested = battery is not None and sort in PATTERNS
    columns = ["head", "here", *(["reference"] if tested else []), *(["known for"] if battery else []), "on this text"]
    table = word_table(f"{trace.model.title}: {SORTS[sort].title}", *columns)
    layers = trace.layers_of(part)
    queries, keys = trace.tokens_of(part)
    for layer, number in best:
        head = trace.head(layer, number, part=part)
        cells = [head.name, _number(scores[layers.index(layer), number])]
        if battery is not None:
            found = battery.scores[:, battery.layers.index(layer), number]
            cells += [_number(found[battery.patterns.index(sort)])] if tested else []
            cells += [", ".join(f"{k.title} {k.score:.2f}" for k in known_for(battery, layer, number)) or "nothing"]
        others = queries if part == "cross" else None
        cells += [what_it_does(head.weights, head.allowed, keys, query_tokens=others).sentence]
        table.add_row(*map(escape, cells))
    out.print(table)
    out.print(escape(SORTS[sort].explanation), soft_wrap=True)


def _number(score: float) -> str:
    return "no occasion" if np.isnan(score) else f"{score:.3f}"
