"""The scoreboard of a model on pronoun sentences: the model and its random-weight control scanned, and scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnviz.core.pronouns.items import Item
from attnviz.core.pronouns.scoreboard import Board, make_boards
from attnviz.models.engine import Engine
from attnviz.models.listen.torch_engine import TorchEngine
from attnviz.models.load.control import random_control
from attnviz.models.scan.sentences import Scan, scan

Said = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Result:
    """Boards of all items, of each language and of each kind, and the scan they were made from."""

    boards: tuple[Board, ...]
    scan: Scan


def scan_boards(
    engine: Engine,
    items: Sequence[Item],
    *,
    lead: str | None = "auto",
    control: bool = True,
    progress: Said | None = None,
    cache: bool = True,
) -> Result:
    """Scan items with a model and with a model of the same shape and random weights, and return the scoreboards.

    Args:
        engine: made by `attnviz.load`.
        items: pronoun sentences.
        lead: as in `scan`.
        control: also scan the model with random weights; engines that don't run through torch have none.
        progress: called with (what is run, items done, all items); what it raises ends the scan.
        cache: as in `scan`.

    Raises:
        ValueError: no item can be measured.
    """
    say = progress or (lambda what, done, total: None)
    found = scan(engine, items, lead=lead, cache=cache, progress=lambda *at: say(engine.info.title, *at))
    looks_of_control = None
    if control and isinstance(engine, TorchEngine):
        say("Random weights of the same shape", 0, len(found.looks.items))
        random = random_control(engine)
        looks_of_control = scan(
            random, found.looks.items, lead=lead, cache=cache, progress=lambda *at: say("Random weights", *at)
        ).looks
    boards = make_boards(
        found.looks,
        control=looks_of_control,
        model=engine.info.name,
        revision=engine.info.revision,
        lead=found.lead,
    )
    return Result(tuple(boards), found)
