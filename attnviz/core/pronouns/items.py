"""Pronoun sentences as data: one item a line of a JSONL file, read with care and written the same way. No NumPy.

A line holds `text`, and as [start, end] in characters, end exclusive, `pronoun`, `answer` (the word or words it stands
for) and `distractors` (a list of such places, the candidates that are wrong). Useful besides: `id`, `lang`, `kind`,
`group` (items of one group are alike, such as those of one template), `source`, `licence`, `causal_ok` and `meta`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Span = tuple[int, int]

SHIPPED = Path(__file__).parent
LANGUAGES = ("en", "de", "sv")

_GROUP_NAMES = (
    "group",
    "template",
    "occupation",
    "play",
    "snippet",
)  # what openly licensed sets call theirs, in `meta`


@dataclass(frozen=True)
class Item:
    """One sentence with a pronoun, what it stands for, and what it could be mistaken for.

    Attributes:
        id: its name; `lang`: language code.
        text: what a model reads.
        pronoun: (start, end) in characters, end exclusive; `answer`, `distractors`: likewise, the candidates.
        kind: of sentence, such as "names"; may be empty.
        group: items of one group are alike, so they are drawn and split together.
        causal_ok: every candidate stands before the pronoun, so that a model that only looks back can see it.
        source, licence: where it is from; `meta`: whatever else its line says.
    """

    id: str
    lang: str
    text: str
    pronoun: Span
    answer: Span
    distractors: tuple[Span, ...]
    kind: str
    group: str
    causal_ok: bool
    source: str = ""
    licence: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def candidates(self) -> tuple[Span, ...]:
        """The answer, then the distractors."""
        return (self.answer, *self.distractors)


@dataclass(frozen=True)
class Problem:
    """A line that is no item: its number, from 1, and what is wrong with it, as half a sentence."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def read_items(path: str | Path) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Read a JSONL file of pronoun sentences; a bad line is skipped and named.

    Args:
        path: the file, in UTF-8. Empty lines mean nothing.

    Returns:
        The items in the order of the file, and a Problem for each line that is none.

    Raises:
        ValueError: there is no such file, or it can't be read.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read: {(error.strerror or str(error)).lower()}") from error
    return parse_items(content)


def parse_items(content: bytes) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Do what `read_items` does with the content of a file."""
    items, problems = [], []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            items.append(_item(_row(line), number))
        except ValueError as error:
            problems.append(Problem(number, str(error)))
    return tuple(items), tuple(problems)


def item_line(item: Item) -> str:
    """Return the line of a JSONL file that says the same, without the line break.

    >>> item = Item("a", "en", "Ann saw it.", (8, 10), (0, 3), ((4, 7),), "", "g", True)
    >>> item_line(item)[:52]
    '{"id": "a", "lang": "en", "text": "Ann saw it.", "pr'
    """
    row = asdict(item)
    for last in ("causal_ok", "meta"):
        row[last] = row.pop(last)
    return json.dumps(row, ensure_ascii=False)


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("it isn't UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("it isn't JSON") from error
    if not isinstance(row, dict):
        raise ValueError('expected a JSON object such as {"text": ..., "pronoun": [0, 3], ...}')
    return row


def _item(row: dict[str, Any], number: int) -> Item:
    text = _text(row)
    pronoun, answer = _span(row, "pronoun", text), _span(row, "answer", text)
    distractors = _distractors(row, text)
    _check_apart(pronoun, answer, distractors)
    told = row.get("meta")
    meta: dict[str, Any] = told if isinstance(told, dict) else {}
    return Item(
        id=_word(row, "id") or f"line {number}",
        lang=_word(row, "lang"),
        text=text,
        pronoun=pronoun,
        answer=answer,
        distractors=distractors,
        kind=_word(row, "kind") or _word(meta, "kind"),
        group=_group(row, meta) or _word(row, "id") or f"line {number}",
        causal_ok=_causal_ok(row, pronoun, (answer, *distractors)),
        source=_word(row, "source"),
        licence=_word(row, "licence"),
        meta=meta,
    )


def _text(row: Mapping[str, Any]) -> str:
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it has no text")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("its text holds half a character, as happens when an emoji is cut in two")
    return text


def _span(row: Mapping[str, Any], name: str, text: str) -> Span:
    if name not in row:
        raise ValueError(f"it has no {name}")
    return _check_span(row[name], f"its {name}", text)


def _distractors(row: Mapping[str, Any], text: str) -> tuple[Span, ...]:
    spans = row.get("distractors")
    if not isinstance(spans, list) or not spans:
        raise ValueError("it has no distractors: expected a list of at least one [start, end]")
    return tuple(_check_span(span, "a distractor", text) for span in spans)


def _check_span(span: Any, name: str, text: str) -> Span:
    whole = isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
    if not whole:
        raise ValueError(f"{name} isn't [start, end], two whole numbers")
    start, end = span
    if not 0 <= start < end <= len(text):
        raise ValueError(f"{name} is [{start}, {end}], outside of its text of {len(text)} characters")
    if not text[start:end].strip():
        raise ValueError(f"{name} covers nothing but white space")
    return start, end


def _check_apart(pronoun: Span, answer: Span, distractors: tuple[Span, ...]) -> None:
    named = sorted(
        [(pronoun, "the pronoun"), (answer, "the answer"), *((span, "a distractor") for span in distractors)]
    )
    for (before, name), (after, other) in zip(named, named[1:], strict=False):
        if before[1] > after[0]:
            raise ValueError(f"{name} and {other} share characters")


def _causal_ok(row: Mapping[str, Any], pronoun: Span, candidates: tuple[Span, ...]) -> bool:
    before = all(end <= pronoun[0] for _, end in candidates)
    told = row.get("causal_ok", before)
    if not isinstance(told, bool):
        raise ValueError("its causal_ok is neither true nor false")
    if told and not before:
        raise ValueError("it says causal_ok, but a candidate stands after the pronoun")
    return told


def _group(row: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """Return the group that a line names, directly or in the words of the sets that are around."""
    found = _word(row, "group") or next(filter(None, (_word(meta, name) for name in _GROUP_NAMES)), "")
    if found and found == _word(meta, "snippet"):  # 101A and 101B are twins, the same text but for a word or two
        return found.rstrip("ABCDEFGH") or found
    return found


def _word(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
