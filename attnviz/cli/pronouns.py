"""The commands about pronoun sentences: scan, make-items, make-scores."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from attnviz.cli.shared import (
    Model,
    check_writable,
    err,
    load_engine,
    number_table,
    out,
    plain_errors,
    progress_bar,
    write_file,
)
from attnviz.core.pronouns.head_scores import Chosen, Rate
from attnviz.core.pronouns.item_templates import items_text
from attnviz.core.pronouns.items import LANGUAGES, SHIPPED, Item, Problem, read_items
from attnviz.core.pronouns.scoreboard import SCORES_FILE, Board, boards_text, csv_text

MOST_PROBLEMS = 20  # that are told in full


def scan(
    model: Model,
    items: Annotated[Path, typer.Option(help="A JSONL file: text, pronoun, answer and distractors on each line.")],
    out_file: Annotated[Path, typer.Option("--out", help="The CSV file to write, a line for each head.")],
    lead: Annotated[
        str,
        typer.Option(
            help="Text in front of each sentence (\\n is a line break), or none. auto takes a line break for models "
            "without a first token of their own, whose heads otherwise rest on the first word."
        ),
    ] = "auto",
    causal_only: Annotated[
        bool, typer.Option("--causal-only", help="Only items whose candidates all stand before the pronoun.")
    ] = False,
    control: Annotated[bool, typer.Option(help="Also run a model of the same shape with random weights.")] = True,
    cache: Annotated[bool, typer.Option(help="Keep results on disk, and take what is there.")] = True,
) -> None:
    """Score every head of a model on pronoun sentences: how often does it look at the right word?

    \b
    Examples:
      python -m attnviz scan --model minilm --items attnviz/core/pronouns/en.jsonl --out minilm.csv
      python -m attnviz scan --model smollm2 --items my.jsonl --out my.csv --lead none --causal-only

    A head is right when the pronoun gives the answer more weight than any distractor.

    In the summary heads are chosen on one half of the items and reported on the other.
    """
    with plain_errors():
        check_writable(out_file)
        wanted, problems = _read(items, causal_only)
        engine = load_engine(model)
        from attnviz.models.scan.boards import scan_boards

        with progress_bar() as progress:
            result = scan_boards(engine, wanted, lead=_lead(lead), control=control, progress=progress, cache=cache)
        write_file(out_file, csv_text(result.boards[0]))
        _say_skipped(result.scan.skipped)
        _say_boards(result.boards, engine.info.title, _lead_words(result.scan.lead))
        counts = [f"{result.boards[0].scores.n} items measured"]
        counts += [f"{len(problems)} bad {_lines(problems)} skipped"] if problems else []
        counts += [f"{len(result.scan.skipped)} items without tokens skipped"] if result.scan.skipped else []
        out.print(escape(f"{', '.join(counts)}. Every head is in {out_file}."), soft_wrap=True)


def make_items(
    folder: Annotated[Path, typer.Option(help="Where to write en.jsonl, de.jsonl and sv.jsonl.")] = SHIPPED,
) -> None:
    """Make the pronoun sentences that ship, from their templates.

    \b
    Example:
      python -m attnviz make-items
    """
    with plain_errors():
        for lang in LANGUAGES:
            text = items_text(lang)
            write_file(folder / f"{lang}.jsonl", text)
            out.print(escape(f"{folder / lang}.jsonl: {len(text.splitlines())} items"), soft_wrap=True)


def make_scores(
    model: Annotated[list[str] | None, typer.Option(help="A model of the catalogue; may be given again.")] = None,
    out_file: Annotated[Path, typer.Option("--out", help="The JSON file to write.")] = SCORES_FILE,
) -> None:
    """Score the catalogue's models on the sentences that ship. Takes some minutes.

    \b
    Examples:
      python -m attnviz make-scores
      python -m attnviz make-scores --model minilm --out minilm.json
    """
    with plain_errors():
        from attnviz.models.load.catalogue import CATALOGUE
        from attnviz.models.scan.boards import scan_boards

        check_writable(out_file)
        boards: list[Board] = []
        files = {lang: SHIPPED / f"{lang}.jsonl" for lang in LANGUAGES}
        for name in model or CATALOGUE:
            engine = load_engine(name)
            for file in files.values():
                with progress_bar() as progress:
                    found = scan_boards(engine, read_items(file)[0], control=name != "untrained", progress=progress)
                boards += found.boards
        hashes = {lang: hashlib.sha256(file.read_bytes()).hexdigest() for lang, file in files.items()}
        write_file(out_file, boards_text(boards, made_by="python -m attnviz make-scores", items=hashes))
        out.print(escape(f"{out_file}: {len(boards)} boards"), soft_wrap=True)


def _read(file: Path, causal_only: bool) -> tuple[list[Item], Sequence[Problem]]:
    items, problems = read_items(file)
    for problem in problems[:MOST_PROBLEMS]:
        err.print(f"{escape(str(file))}, {escape(str(problem))}; skipped", soft_wrap=True)
    if rest := problems[MOST_PROBLEMS:]:
        numbers = ", ".join(str(problem.line) for problem in rest)
        err.print(f"{escape(str(file))}, also skipped: {_lines(rest)} {numbers}", soft_wrap=True)
    wanted = [item for item in items if item.causal_ok or not causal_only]
    if not wanted:
        why = f"; {len(problems)} {_lines(problems)} skipped" if problems else ""
        why += f"; of {len(items)} none has all candidates before the pronoun" if items else ""
        raise ValueError(f"there is no item to measure in {file}{why}")
    return wanted, problems


def _lead(text: str) -> str | None:
    return None if text == "none" else text.replace("\\n", "\n")


def _lead_words(lead: str) -> str:
    return f"{lead!r} in front of each text" if lead else "nothing in front of the texts"


def _say_skipped(skipped: Sequence[tuple[str, str]]) -> None:
    for name, reason in skipped[:MOST_PROBLEMS]:
        err.print(f"{escape(name)}: {escape(reason)}; skipped", soft_wrap=True)
    if rest := skipped[MOST_PROBLEMS:]:
        err.print(f"also skipped: {escape(', '.join(name for name, _ in rest))}", soft_wrap=True)


def _say_boards(boards: Sequence[Board], title: str, lead: str) -> None:
    whole = boards[0]
    out.print(_heads_table(whole, f"{title}, {lead}"))
    if len(boards) > 1:
        out.print(_parts_table(boards[1:]))
    layer, head = whole.scores.best()
    best = whole.scores.accuracy[whole.scores.layers.index(layer), head]
    out.print(
        f"Best of all heads on all {whole.scores.n} items, a flattering figure: L{layer} H{head} {best:.3f}"
        + ("" if whole.control_best != whole.control_best else f"; with random weights {whole.control_best:.3f}"),
        soft_wrap=True,
    )
    if not whole.chosen:
        out.print("All items are of one group, so no half is left to report on and there are no intervals.")


def _heads_table(board: Board, title: str) -> Table:
    table = number_table(title, "", "right", "interval", "answer", "distractor", "items", "groups")
    for chosen in board.chosen:
        table.add_row(*_chosen_row(f"L{chosen.layer} H{chosen.head}", chosen))
    if board.control:
        name = f"random weights, L{board.control.layer} H{board.control.head}"
        table.add_row(*_chosen_row(name, board.control), style="dim")
    for name, rate in board.scores.baselines.items():
        n, n_groups = str(board.scores.n), str(board.scores.n_groups)
        table.add_row(name, f"{rate.value:.3f}", _interval(rate), "", "", n, n_groups, style="dim")
    table.caption = "heads are chosen on one half, and this is the other; answer, distractor: mean weights"
    return table


def _chosen_row(name: str, chosen: Chosen) -> list[str]:
    numbers = [f"{chosen.answer:.3f}", f"{chosen.distractor:.3f}", str(chosen.n), str(chosen.n_groups)]
    return [name, f"{chosen.rate.value:.3f}", _interval(chosen.rate), *numbers]


def _parts_table(boards: Sequence[Board]) -> Table:
    table = number_table(
        "Each part by itself", "", "head", "right", "interval", "random", "nearest", "first", "items", "groups"
    )
    for board in boards:
        best = board.chosen[0] if board.chosen else None
        found = [f"L{best.layer} H{best.head}", f"{best.rate.value:.3f}", _interval(best.rate)] if best else [""] * 3
        control = f"{board.control.rate.value:.3f}" if board.control else ""
        rules = [f"{board.scores.baselines[name].value:.3f}" for name in ("nearest", "first")]
        sizes = [str(best.n), str(best.n_groups)] if best else [str(board.scores.n), str(board.scores.n_groups)]
        table.add_row(escape(f"{board.lang} {board.kind}".strip()), *found, control, *rules, *sizes)
    table.caption = "random: the best head of random weights; intervals: 95 %, bootstrap over groups"
    return table


def _interval(rate: Rate) -> str:
    return "" if rate.low != rate.low else f"{rate.low:.3f}-{rate.high:.3f}"


def _lines(several: Sequence[Any]) -> str:
    return "line" if len(several) == 1 else "lines"
