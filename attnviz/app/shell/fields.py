"""Fields: what a visitor can choose, and how each choice reads and writes as text in the page's address.

A page describes its own in its folder. Here are the kinds of fields, and those that all pages share.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnviz.core.trace.switches import MAX_TEMPERATURE, MIN_TEMPERATURE

LANDING = "Mary bought a car, although she could not drive it"
PALETTES = ("indigo", "viridis", "cividis", "grey")  # scales of weights, all of them safe for colour-blind eyes
OF_TEXT = "text"  # names words or tokens: another text puts it at rest
OF_SWITCHES = "switches"  # what all switches at rest puts at rest


@dataclass(frozen=True)
class Field:
    """One choice.

    Attributes:
        default: its value at rest.
        read: makes a value of text, ValueError if it can't be; `write`: makes text of a value.
        of: what the choice belongs to, so that the shell knows when to put it at rest: OF_TEXT, OF_SWITCHES.
    """

    default: Any
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    of: tuple[str, ...] = ()


Fields = Mapping[str, Field]
"""Fields by their name in the address, which is their name in the session too."""


def choice(default: str, *options: str, of: tuple[str, ...] = ()) -> Field:
    """Return a field that takes one of a few words."""

    def read(word: str) -> str:
        if word not in (default, *options):
            raise ValueError(f"{word} isn't one of {', '.join((default, *options))}")
        return word

    return Field(default, read, of=of)


def whole(default: int | None, lowest: int = 0, highest: int = 999_999, *, of: tuple[str, ...] = ()) -> Field:
    """Return a field that takes a whole number in a range."""

    def read(text: str) -> int:
        if not lowest <= _number(text) <= highest:
            raise ValueError(f"{text} isn't from {lowest} to {highest}")
        return int(text)

    return Field(default, read, of=of)


def tick(default: bool) -> Field:
    """Return a field that is on or off."""

    def read(word: str) -> bool:
        if word not in ("on", "off"):
            raise ValueError(f"{word} isn't on or off")
        return word == "on"

    return Field(default, read, lambda on: "on" if on else "off")


def tuples(size: int, *, of: tuple[str, ...] = ()) -> Field:
    """Return a field that takes tuples of numbers: pairs (layer, head), or looks (layer, head, query, key).

    In a look "all" stands for every layer, or every head, and is None in the value.
    """

    def read(text: str) -> list[tuple[Any, ...]]:
        return [_tuple(entry, size) for entry in text.split("_") if entry]

    return Field([], read, _write_tuples, of)


def numbers(*, of: tuple[str, ...] = ()) -> Field:
    """Return a field that takes several whole numbers, or none of them; None is what the page itself would take."""
    return Field(None, _read_numbers, _write_numbers, of)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise ValueError(f"{text} isn't a whole number")
    return int(text)


def _read_numbers(text: str) -> list[int]:
    return [] if text == "none" else [_number(part) for part in text.split("_")]


def _write_numbers(numbers: list[int]) -> str:
    return "_".join(map(str, numbers)) or "none"


def _tuple(entry: str, size: int) -> tuple[Any, ...]:
    numbers = tuple(None if part == "all" and size == 4 else _number(part) for part in entry.split("."))
    if len(numbers) != size or None in numbers[2:]:
        raise ValueError(f"{entry} isn't {size} numbers")
    return numbers


def _write_tuples(entries: list[tuple[int | None, ...]]) -> str:
    return "_".join(".".join("all" if n is None else str(n) for n in entry) for entry in entries)


def _read_temperature(text: str) -> str:
    if text != "off" and not (MIN_TEMPERATURE <= float(text) <= MAX_TEMPERATURE):
        raise ValueError(f"{text} isn't a temperature")
    return text


SHARED: Fields = {
    "model": Field("smollm2"),
    "precision": choice("float32", "bfloat16", "float16"),
    "engine": choice("torch", "numpy"),
    "text": Field(LANDING),
    "part": choice("", "encoder", "decoder", "cross"),
    "layer": whole(13),
    "head": whole(8),
    "causal": choice("own", "on", "off", of=(OF_SWITCHES,)),
    "temperature": Field("1", _read_temperature, of=(OF_SWITCHES,)),
    "off": tuples(2, of=(OF_SWITCHES,)),
    "forbid": tuples(4, of=(OF_TEXT, OF_SWITCHES)),
    "acts": choice("picture", "pass", of=(OF_SWITCHES,)),
    "query": whole(None, of=(OF_TEXT,)),
    "key": whole(None, of=(OF_TEXT,)),
    "seed": whole(0),
    "palette": choice(*PALETTES),
}
