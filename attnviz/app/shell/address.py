"""What a visitor chose, kept in the session and in the page's address, so that a copied link shows the same picture.

Each choice is a `Field` with its name, its default and how it reads and writes as text. `restore` reads the address
into the session before any widget is made, `remember` writes the session back after the page has run.
"""

import base64
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.core.cost.published import published_models
from attnviz.core.trace.switches import MAX_TEMPERATURE, MIN_TEMPERATURE

LANDING = "Mary bought a car, although she could not drive it"
PLAIN_TEXT = 1500  # characters of address that a text may take as it is; longer ones are compressed
PACKED_TEXT = 6000  # beyond that proxies and mail programs cut addresses: the text is left out, and the page says so
HEATS = ("0.01", "0.03", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30", "100")  # softmax temperatures of the lesson
PALETTES = ("indigo", "viridis", "cividis", "grey")  # scales of weights, all of them safe for colour-blind eyes
ALL = -1  # of the tokens of a long text: the whole map, pooled
LATE = 3.0  # seconds in which a browser hears of a new address, even on a slow line
MOST_TEXT = 1_000_000  # bytes that a packed text may unfold to


@dataclass(frozen=True)
class Field:
    """One choice: its value at rest, how it is read (ValueError if it can't be) and written as text."""

    default: Any
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str


def choice(default: str, *options: str) -> Field:
    """Return a field that takes one of a few words."""

    def read(word: str) -> str:
        if word not in (default, *options):
            raise ValueError(f"{word} isn't one of {', '.join((default, *options))}")
        return word

    return Field(default, read)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise ValueError(f"{text} isn't a whole number")
    return int(text)


def _number_in(lowest: int, highest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not lowest <= _number(text) <= highest:
            raise ValueError(f"{text} isn't from {lowest} to {highest}")
        return int(text)

    return read


def _tick(default: bool) -> Field:
    """Return a field that is on or off."""

    def read(word: str) -> bool:
        if word not in ("on", "off"):
            raise ValueError(f"{word} isn't on or off")
        return word == "on"

    return Field(default, read, lambda on: "on" if on else "off")


def _read_temperature(text: str) -> str:
    if text != "off" and not (MIN_TEMPERATURE <= float(text) <= MAX_TEMPERATURE):
        raise ValueError(f"{text} isn't a temperature")
    return text


def _read_heads(text: str) -> list[tuple[int, ...]]:
    return [_tuple(entry, 2) for entry in text.split("_") if entry]


def _read_words(text: str) -> list[int]:
    return [] if text == "none" else [_number(part) for part in text.split("_")]


def _write_words(words: list[int]) -> str:
    return "_".join(map(str, words)) or "none"


def _read_looks(text: str) -> list[tuple[int | None, ...]]:
    return [_tuple(entry, 4) for entry in text.split("_") if entry]


def _tuple(entry: str, size: int) -> tuple[Any, ...]:
    numbers = tuple(None if part == "all" and size == 4 else _number(part) for part in entry.split("."))
    if len(numbers) != size or None in numbers[2:]:
        raise ValueError(f"{entry} isn't {size} numbers")
    return numbers


def _write_tuples(entries: list[tuple[int | None, ...]]) -> str:
    return "_".join(".".join("all" if n is None else str(n) for n in entry) for entry in entries)


FIELDS: dict[str, Field] = {
    "model": Field("smollm2"),
    "precision": choice("float32", "bfloat16", "float16"),
    "engine": choice("torch", "numpy"),
    "text": Field(LANDING),
    "part": choice("", "encoder", "decoder", "cross"),
    "layer": Field(13, _number),
    "head": Field(8, _number),
    "causal": choice("own", "on", "off"),
    "temperature": Field("1", _read_temperature),
    "off": Field([], _read_heads, _write_tuples),
    "forbid": Field([], _read_looks, _write_tuples),
    "acts": choice("picture", "pass"),
    "colours": choice("linear", "sqrt", "without_first"),
    "measure": choice("none", "entropy", "distance", "first_token", "previous_token", "largest"),
    "order": choice("layers", "measure"),
    "view": choice("after", "before", "difference"),
    "strip": choice("shade", "lines"),
    "histogram": choice("hide", "head", "layer", "all"),
    "query": Field(None, _number),
    "key": Field(None, _number),
    "zoom": Field(ALL, _number),
    "shows": choice("tokens", "words", "written", "rollout"),
    "special": _tick(True),
    "palette": choice("indigo", *PALETTES[1:]),
    "tool": choice("none", "compare", "find", "lines", "writes"),
    "find_by": choice("pattern", "like", "drawn", "feeds"),
    "pattern": Field("induction"),
    "found_in": choice("known", "here"),
    "drawn": Field([], _read_heads, _write_tuples),
    "lines_heads": Field(None, _read_words, _write_words),
    "versus": choice("head", "text", "model", "switches"),
    "b_text": Field(""),
    "b_model": Field(""),
    "b_layer": Field(None, _number),
    "b_head": Field(None, _number),
    "step": choice(
        "roles", "scores", "position", "scaling", "mask", "softmax", "weighted_sum", "several_heads", "matches"
    ),
    "source": choice("real", "random"),
    "rows": Field(6, _number_in(2, 32)),
    "width": Field(64, _number_in(1, 1024)),
    "seed": Field(0, _number),
    "heads": Field(4, _number_in(1, 64)),
    "other": Field(None, _number),
    "curves": choice("width", "tokens"),
    "swap": Field("well"),
    "heat": choice("1", *HEATS),
    "digits": choice("float32", "float16", "float64"),
    "overflow": choice("largest", "row"),
    "topic": choice("look", "pair", "scores", "matters"),
    "pronoun": Field(None, _number),
    "candidates": Field(None, _read_words, _write_words),
    "answer": Field(None, _number),
    "click": choice("candidate", "answer", "pronoun"),
    "lead": choice("on", "off"),
    "pair": Field(""),
    "sentences": choice("en", "de", "sv", "own"),
    "kind": Field(""),
    "word": Field(""),
    "rival": Field(""),
    "instead": choice("zero", "mean"),
    "cost_part": choice("grows", "matrix", "flash", "measured"),
    "cost_model": choice("", *(model.name for model in published_models())),
    "cost_s": Field(4096, _number_in(16, 2**19)),
    "cost_d": Field(4096, _number_in(8, 65_536)),
    "cost_heads": Field(32, _number_in(1, 1024)),
    "cost_group": Field(1, _number_in(1, 1024)),
    "cost_layers": Field(32, _number_in(1, 512)),
    "cost_mlp": _tick(True),
    "cost_skip": _tick(False),
    "cost_axes": choice("log", "linear"),
    "cost_bytes": choice("2", "4"),
    "cost_block": Field(None, _number_in(1, 4096)),
    "cost_at": Field(None, _number),
    "written": Field(0, _number_in(0, 64)),
    "writing_topic": choice("steps", "both", "memory", "models"),
    "warmth": choice("0", "0.3", "0.7", "1", "1.5", "2"),
    "top_k": Field(0, _number_in(0, 1000)),
    "top_p": choice("1", "0.5", "0.8", "0.9", "0.95"),
    "deck": Field("ten_minutes"),
    "bits": choice("16 bits", "8 bits", "4 bits"),
}
UNDER_OTHER_NAMES = {"z": "text"}  # a packed text


def mend() -> None:
    """Give a choice that came back without a value the one that it had.

    A row of buttons of which one is always on has been seen to send none, on a machine that was busy.
    """
    remembered = st.session_state.get("remembered", {})
    for name, field in FIELDS.items():
        if name in st.session_state and st.session_state[name] is None and field.default is not None:
            before = remembered.get(name)
            st.session_state[name] = field.default if before is None else before


def hold(level: str, place: str, names: Iterable[str]) -> None:
    """Tell the browser the values of choices anew where their boxes come anew: on another page, or in another step.

    A box that comes back shows its lowest value, and tells that, if the run that brought it was overtaken by a click.

    Args:
        level: "page" or "step"; `place`: which one is drawn now.
        names: of `FIELDS`, of boxes that this run has not drawn yet.
    """
    if st.session_state.get("places", {}).get(level) != place:
        for name in names:
            if name in st.session_state:
                st.session_state[name] = st.session_state[name]
    st.session_state.places_now = {**st.session_state.get("places_now", {}), level: place}


def restore(page: str = "") -> None:
    """Read the address into the session, once a visit and whenever somebody else than `remember` changed it.

    What can't be read falls back to its default, and a note says so. On the way to another page of the app streamlit
    empties the address: then the session stays as it is, and `remember` writes it into the new page's address.

    Args:
        page: which page of the app is open.
    """
    mend()
    hold("page", page, FIELDS)
    address = st.query_params.to_dict()
    known = st.session_state.get("address")
    from_page = st.session_state.get("page", page)
    st.session_state.page = page
    if known is not None and from_page != page and not address:
        st.session_state.address = address
        return
    if known == address:
        return
    if known is not None and _is_behind(address):
        st.session_state.address = address  # so that `remember` writes ours once more
        return
    values = {name: field.default for name, field in FIELDS.items()}
    unreadable = []
    for name, text in address.items():
        try:
            if name == "z":
                values["text"] = unpack_text(text)
            elif name in FIELDS:
                values[name] = FIELDS[name].read(text)
        except ValueError:
            unreadable.append(f"“{UNDER_OTHER_NAMES.get(name, name)}”")
    if unreadable:
        note(f"The link's {', '.join(unreadable)} can't be read, so the page's own is shown.")
    for name, value in values.items():
        st.session_state[name] = value
    st.session_state.draft = st.session_state.text
    st.session_state.address = address


def chosen_address() -> dict[str, str]:
    """Return what differs from its default, as the address says it: what `remember` writes if nothing else changes."""
    address: dict[str, str] = {}
    for name, field in FIELDS.items():
        value = st.session_state.get(name, field.default)
        if value != field.default and value is not None:
            address |= pack_text(value) if name == "text" else {name: field.write(value)}
    return address


def remember() -> None:
    """Write what differs from its default into the address."""
    address = chosen_address()
    known = st.session_state.get("address")
    if known != address:
        st.query_params.from_dict(address)
        st.session_state.address = address
        st.session_state.address_before = (known, time.monotonic())
    st.session_state.places = st.session_state.get("places_now", {})
    st.session_state.remembered = {name: st.session_state.get(name, field.default) for name, field in FIELDS.items()}


def _is_behind(address: dict[str, str]) -> bool:
    """Return True if the browser sent a click before it had heard of the address that `remember` wrote last.

    Such a click changes a choice, or it comes with the address before, and soon. Nobody else wrote that address, and
    reading it would undo the visitor's last choice.
    """
    remembered = st.session_state.get("remembered", {})
    moved = any(st.session_state.get(name, FIELDS[name].default) != value for name, value in remembered.items())
    before, when = st.session_state.get("address_before", (None, 0.0))
    return moved or (address == before and time.monotonic() - when < LATE)


def note(sentence: str) -> None:
    """Say something at the top of the page, in this run or the next, once."""
    notes = st.session_state.setdefault("notes", [])
    if sentence not in notes:
        notes.append(sentence)


def take_notes() -> list[str]:
    """Return the notes that wait and forget them."""
    return st.session_state.pop("notes", [])


def pack_text(text: str) -> dict[str, str]:
    """Return a text as part of an address: plain if short, packed if long, left out if too long for an address."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= PLAIN_TEXT:
        return {"text": text}
    if len(raw) > MOST_TEXT:
        return {}
    packed = base64.urlsafe_b64encode(zlib.compress(raw, 9)).decode("ascii").rstrip("=")
    return {"z": packed} if len(packed) <= PACKED_TEXT else {}


def unpack_text(packed: str) -> str:
    """Return the text that `pack_text` packed.

    Raises:
        ValueError: it isn't such a text, or it unfolds to an unreasonable size.
    """
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unfolding = zlib.decompressobj()
        unfolded = unfolding.decompress(raw, MOST_TEXT)
        if not unfolding.eof:
            raise ValueError("a packed text that was cut, or that unfolds too far")
        return unfolded.decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError("not a packed text") from error


def fits_address(text: str) -> bool:
    """Return True if a link can carry the text."""
    return bool(pack_text(text))
