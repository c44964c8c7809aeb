"""How a tokenizer spells, read from its parts, and what each of its pieces stands for. Needs no library of its own."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.core.text.visible import visible

EMPTY = "‹empty›"  # no label is ever blank
_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class Spelling:
    """How a vocabulary writes its pieces; an empty string means that there is no such sign."""

    algorithm: str  # BPE, WordPiece, Unigram or WordLevel
    byte_level: bool  # one letter for each byte, as GPT-2 does
    byte_fallback: bool  # <0xE6> for the bytes of characters without an entry
    space: str  # ▁
    prefix: str  # ## before a piece that goes on with a word
    suffix: str  # </w> after a piece that ends a word


@dataclass(frozen=True)
class Piece:
    """One token as its vocabulary has it.

    Attributes:
        content: the bytes it stands for.
        label: what to call it when its neighbours have no say in that, else None.
        special: True if it has a meaning of its own.
    """

    content: bytes
    label: str | None = None
    special: bool = False


def backend_of(tokenizer: Any) -> Any:
    """Return what does the work in a fast tokenizer, or raise ValueError: it isn't one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(
            f"expected a fast tokenizer (one that AutoTokenizer.from_pretrained gives when the model has a "
            f"tokenizer.json), got {type(tokenizer).__name__}, which can't say where in the text its tokens are"
        )
    return backend


def spelling_of(tokenizer: Any) -> Spelling:
    """Return how a tokenizer writes its pieces."""
    backend = backend_of(tokenizer)
    model = backend.model
    # Without a decoder nothing says how to read the pieces, so look at how the text was written into them.
    steps = _steps(backend.decoder) or [*_steps(backend.pre_tokenizer), *_steps(backend.normalizer)]
    types = {step["type"] for step in steps}
    suffixes = [step["suffix"] for step in steps if step["type"] == "BPEDecoder"]
    return Spelling(
        algorithm=type(model).__name__,
        byte_level="ByteLevel" in types,
        byte_fallback="ByteFallback" in types or _falls_back_to_bytes(backend),
        space=next(filter(None, map(_space_sign, steps)), ""),
        prefix=getattr(model, "continuing_subword_prefix", None) or "",
        suffix=getattr(model, "end_of_word_suffix", None) or next(iter(suffixes), ""),
    )


def _falls_back_to_bytes(backend: Any) -> bool:
    if type(backend.model).__name__ == "Unigram":  # tokenizers 0.23 doesn't tell: look for the entries that it needs
        return all(backend.token_to_id(piece) is not None for piece in ("<0x00>", "<0xFF>"))
    return bool(getattr(backend.model, "byte_fallback", False))


def _steps(part: Any) -> list[dict[str, Any]]:
    """Return the settings of each step of a decoder, pre-tokenizer or normalizer."""

    def flatten(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if state["type"] == "Sequence":
            inner = next(value for value in state.values() if isinstance(value, list))
            for step in inner:
                yield from flatten(step)
        else:
            yield state

    # The part alone: the JSON of the whole tokenizer has the vocabulary in it, some megabytes.
    return [] if part is None else list(flatten(json.loads(part.__getstate__())))


def _space_sign(step: dict[str, Any]) -> str:
    """Return the sign that a step writes for a space or reads as one, or an empty string."""
    if step["type"] == "Metaspace":
        return step["replacement"]
    if step["type"] == "Replace":
        pair = {step["content"], step["pattern"].get("String", "")}
        return next(iter(pair - {" "}), "") if " " in pair and len(pair) == 2 else ""
    return ""


def read_pieces(tokenizer: Any, ids: Sequence[int]) -> list[Piece]:
    """Return what each of these ids stands for."""
    backend = backend_of(tokenizer)
    spelling = spelling_of(tokenizer)
    special_ids = set(tokenizer.all_special_ids)
    added = backend.get_added_tokens_decoder()

    def read(id_: int) -> Piece:
        entry = backend.id_to_token(id_) if 0 <= id_ < 2**32 else None
        if entry is None:
            return Piece(b"", f"‹id {id_}›")
        if id_ in special_ids or (id_ in added and added[id_].special):
            return Piece(entry.encode(), _own_text(entry), special=True)
        if id_ in added:  # stored as the plain text that it is, not in the vocabulary's spelling
            words = _read_spaces(spelling, entry)
            return Piece(words.encode(), visible(words) or EMPTY)
        return _read_entry(spelling, entry)

    return [read(int(id_)) for id_ in ids]


def _read_entry(spelling: Spelling, entry: str) -> Piece:
    """Read an ordinary entry of the vocabulary."""
    if spelling.prefix and entry.startswith(spelling.prefix):
        rest = entry.removeprefix(spelling.prefix)
        return Piece(rest.encode(), spelling.prefix + visible(rest))
    ends_word = bool(spelling.suffix) and entry.endswith(spelling.suffix)
    if ends_word:
        entry = entry.removesuffix(spelling.suffix)
    if spelling.byte_level:
        content = bytes(_BYTES[char] for char in entry) if _BYTES.keys() >= set(entry) else entry.encode()
    elif spelling.byte_fallback and (match := _BYTE_PIECE.fullmatch(entry)):
        content = bytes.fromhex(match[1])
    else:
        content = _read_spaces(spelling, entry).encode()
    return Piece(content + b" " * ends_word)


def _read_spaces(spelling: Spelling, entry: str) -> str:
    return entry.replace(spelling.space, " ") if spelling.space else entry


def _own_text(entry: str) -> str:
    """Return a special token's text as it stands, if all of it can be seen."""
    return entry if entry.isprintable() and entry.strip() == entry != "" else visible(entry) or EMPTY


def _byte_alphabet() -> dict[str, int]:
    """Return which byte each letter of a byte-level vocabulary stands for.

    Bytes that are printable in Latin-1 stand for themselves, the other 68 are, in order, the letters from U+0100 on.

    Source: GPT-2's encoder.py, `bytes_to_unicode`.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()
