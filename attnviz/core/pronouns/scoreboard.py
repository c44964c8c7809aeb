"""The scoreboard: the heads of a model on pronoun sentences, as a page shows it, a file keeps it, a table lists it.

NumPy and the standard library.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.export import table_files
from attnviz.core.pronouns.head_scores import Chosen, Looks, Rate, Scores, choose_heads, score, take
from attnviz.core.pronouns.items import SHIPPED

SCORES_FILE = SHIPPED / "scores.json"
CSV_COLUMNS = (
    "layer", "head", "n", "accuracy", "accuracy_low", "accuracy_high", "weight_on_answer", "weight_on_distractor",
    "chance", "nearest", "first", "random_weights",
)  # fmt: skip

_MAPS = ("accuracy", "low", "high", "answer", "distractor")
_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Board:
    """The heads of a model on one set of items.

    Attributes:
        model: what it was loaded by; `revision`: of its weights; `lead`: what stood in front of each text.
        lang: of the items, `kind`: their kind; empty where several are taken together.
        scores: all heads on all of these items. The best of them is lucky: many heads are compared.
        chosen: the best heads on one half of the items, reported on the other; none with fewer than two groups.
        control: the head that is chosen so in a model of the same shape with random weights.
        control_best: accuracy of that model's best head on all of these items; NaN if it wasn't run.
    """

    model: str
    revision: str
    lead: str
    lang: str
    kind: str
    scores: Scores
    chosen: tuple[Chosen, ...]
    control: Chosen | None = None
    control_best: float = float("nan")


def make_board(
    looks: Looks,
    *,
    control: Looks | None = None,
    model: str = "",
    revision: str = "",
    lead: str = "",
    lang: str = "",
    kind: str = "",
) -> Board:
    """Return the board of a set of items.

    Args:
        looks: what the model's heads gave to the candidates of these items.
        control: what the heads of a model of the same shape with random weights gave to the same items.
        model: what it was loaded by.
        revision: of its weights.
        lead: what stood in front of each text.
        lang: of the items, empty for several.
        kind: of the items, empty for several.

    Raises:
        ValueError: no items.
    """
    has_halves = len(set(looks.groups)) > 1
    scores = score(looks)
    chosen = choose_heads(looks) if has_halves else []
    control_best, control_chosen = float("nan"), None
    if control is not None:
        control_best = float(np.nanmax(score(control, draws=1).accuracy))
        control_chosen = choose_heads(control, 1)[0] if has_halves else None
    return Board(model, revision, lead, lang, kind, scores, tuple(chosen), control_chosen, control_best)


def make_boards(looks: Looks, *, control: Looks | None = None, **said: Any) -> Iterator[Board]:
    """Yield a board of all items, then one a language and one a kind of each language, where there are several.

    Args:
        looks: of all items.
        control: likewise, of the same items.
        said: `model`, `revision` and so on, as `make_board` takes them.
    """
    langs = {item.lang for item in looks.items}
    parts = [] if len(langs) == 1 and "" not in langs else [("", "")]  # one language alone is all items
    for lang in _named(langs):
        kinds = _named(item.kind for item in looks.items if item.lang == lang)
        parts += [(lang, ""), *((lang, kind) for kind in kinds if len(kinds) > 1)]
    for lang, kind in parts:
        wanted = [lang in ("", item.lang) and kind in ("", item.kind) for item in looks.items]
        part_of_control = None if control is None else take(control, wanted)
        yield make_board(take(looks, wanted), control=part_of_control, lang=lang, kind=kind, **said)


def csv_text(board: Board) -> str:
    """Return a table with a line for each head, in the columns `CSV_COLUMNS`; shares from 0 to 1."""
    scores = board.scores
    same = [*(scores.baselines[name].value for name in ("chance", "nearest", "first")), board.control_best]
    rows: list[Sequence[Any]] = [CSV_COLUMNS]
    for row, head in np.argwhere(~np.isnan(scores.accuracy)).tolist():  # a layer may have fewer heads than others
        values = [getattr(scores, name)[row, head] for name in _MAPS]
        rows.append([scores.layers[row], head, scores.n, *map(_written, [*values, *same])])
    return table_files.csv_text(rows)


def boards_text(boards: Iterable[Board], **said: Any) -> str:
    """Return the JSON text of boards, one a line, with whatever else is to be said about them."""
    lines = ",\n".join(json.dumps(_record(board), ensure_ascii=False, separators=(",", ":")) for board in boards)
    return f'{{"about":{json.dumps(said, sort_keys=True)},"boards":[\n{lines}\n]}}\n'


def read_boards(file: Path = SCORES_FILE) -> list[Board]:
    """Return the boards that a file holds, the shipped one if no other is named.

    Raises:
        ValueError: the file isn't there or holds something else.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return [_board(record) for record in content["boards"]]
    except OSError as error:
        raise ValueError(f"{file} can't be read: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} holds no scores: {error}") from error


def _named(names: Iterable[str]) -> list[str]:
    return sorted(set(names) - {""})


def _record(board: Board) -> dict[str, Any]:
    record = asdict(board)
    scores = record.pop("scores")
    found: dict[str, Any] = _rounded(record | scores)
    return found


def _board(record: Mapping[str, Any]) -> Board:
    scores = Scores(
        layers=tuple(record["layers"]),
        n=record["n"],
        n_groups=record["n_groups"],
        baselines={name: _rate(rate) for name, rate in record["baselines"].items()},
        **{name: _array(record[name]) for name in _MAPS},
    )
    return Board(
        **{name: record[name] for name in ("model", "revision", "lead", "lang", "kind")},
        scores=scores,
        chosen=tuple(map(_chosen, record["chosen"])),
        control=_chosen(record["control"]) if record["control"] else None,
        control_best=_number(record["control_best"]),
    )


def _chosen(record: Mapping[str, Any]) -> Chosen:
    return Chosen(**{**record, "rate": _rate(record["rate"])})


def _rate(record: Mapping[str, Any]) -> Rate:
    return Rate(*(_number(record[name]) for name in ("value", "low", "high")))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _array(rows: list[list[float | None]]) -> NDArray[np.float64]:
    return np.array([[_number(value) for value in row] for row in rows], np.float64)


def _rounded(value: Any) -> Any:
    """Return the same with numbers to four digits, and None, which JSON has, for NaN, which it hasn't."""
    if isinstance(value, Mapping):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, _DIGITS)
    return value


def _written(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.{_DIGITS}f}"
