"""What a GGUF file says of itself before its numbers: settings, and names of arrays. Standard library alone.

The layout is ggml's: four letters, a version, two counts, the settings, the table of arrays (ggml, docs/gguf.md).
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


class Array(NamedTuple):
    """An array of a GGUF file: its shape, ggml's number for how it is stored (0 is float32), where it begins."""

    shape: tuple[int, ...]
    kind: int
    place: int


@dataclass(frozen=True)
class Header:
    """The settings of a GGUF file (of lists of words only their length), and its arrays by name."""

    settings: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def architecture(self) -> str:
        """What llama.cpp calls this kind of model."""
        return str(self.settings["general.architecture"])

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a setting of this architecture, as `rope.freq_base`."""
        return self.settings.get(f"{self.architecture}.{name}", default)


def check_gguf(path: Path) -> None:
    """Look at the first few bytes and the settings of a file, before anything costs time.

    Raises:
        ValueError: no GGUF file, a damaged one, one part of several, or no language model.
    """
    with open(path, "rb") as file:
        if file.read(4) != MAGIC:
            hint = ": name the folder that it lies in" if path.suffix == ".safetensors" else ""
            raise ValueError(f"{path.name} isn't a GGUF file{hint}")
    header = read_header(path)
    number, count = header.settings.get("split.no"), header.settings.get("split.count")
    part = (number + 1, count) if isinstance(number, int) and isinstance(count, int) else None
    if named := _PART.search(path.name):
        part = part or (int(named[1]), int(named[2]))
    if part and part[1] > 1:
        raise ValueError(
            f"{path.name} is {part[0]} of {part[1]} parts of a model: merge them first (llama-gguf-split --merge)"
        )
    kind = header.settings.get("general.type", "model")
    if kind != "model":
        raise ValueError(f"{path.name} holds no model by itself but {kind!r}")


def read_header(path: Path) -> Header:
    """Return what a GGUF file says of itself.

    Raises:
        ValueError: damaged, cut short, or a version that nobody writes any more.
    """
    try:
        with open(path, "rb") as file:
            return _header(_Reader(file, path.stat().st_size))
    except (struct.error, EOFError, RecursionError) as error:
        raise ValueError(f"{path.name} can't be read: it is cut short or damaged ({error})") from error


class _Reader:
    """Numbers and strings, one after the other; what a damaged length asks for is never taken from memory."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self._size = file, size

    def take(self, length: int) -> bytes:
        if length > self._size - self.file.tell():
            raise EOFError(f"it ends {length - self._size + self.file.tell()} bytes too soon")
        return self.file.read(length)

    def numbers(self, kind: str, count: int = 1) -> tuple[Any, ...]:
        return struct.unpack(f"<{count}{kind}", self.take(count * struct.calcsize(f"<{kind}")))

    def string(self) -> str:
        return self.take(self.numbers("Q")[0]).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self.numbers(_NUMBERS[kind])[0]
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            raise EOFError(f"a setting is of type {kind}, which there isn't")
        inner, count = self.numbers("I")[0], self.numbers("Q")[0]
        if inner in _NUMBERS:
            return self.numbers(_NUMBERS[inner], count)
        for _ in range(count):  # words: a hundred thousand of them, of which nobody needs the letters here
            self.take(self.numbers("Q")[0]) if inner == _STRING else self.value(inner)
        return count


def _header(reader: _Reader) -> Header:
    reader.take(4)
    version = reader.numbers("I")[0]
    if version not in _VERSIONS:
        raise EOFError(f"its version is {version}, where 2 and 3 are known")
    n_arrays, n_settings = reader.numbers("Q", 2)
    settings: dict[str, Any] = {}
    for _ in range(n_settings):
        name = reader.string()
        settings[name] = reader.value(reader.numbers("I")[0])
    if not isinstance(settings.get("general.architecture"), str):
        raise EOFError("it doesn't say its architecture")
    arrays = {}
    for _ in range(n_arrays):
        name = reader.string()
        shape = reader.numbers("Q", reader.numbers("I")[0])
        arrays[name] = Array(tuple(reversed(shape)), reader.numbers("I")[0], reader.numbers("Q")[0])
    step = settings.get("general.alignment", 32)
    if not isinstance(step, int) or step < 1:
        raise EOFError(f"its alignment is {step}")
    start = -(-reader.file.tell() // step) * step  # the numbers begin at the next multiple, and places count from there
    return Header(settings, {name: each._replace(place=start + each.place) for name, each in arrays.items()})
