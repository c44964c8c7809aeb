"""What users hand in, checked in one place: each wrong value is one ValueError that names the argument. NumPy only.

Numbers of NumPy are as good as Python's. True and False are no numbers, and 13.0 is no whole number: who hands them in
has taken one argument for another. What is returned is Python's own type: 0 and np.False_ are False from here on.
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_MOST_LETTERS = 80  # of what came, in a message


def whole(name: str, value: Any, *, least: int | None = None, or_none: bool = False) -> int:
    """Return a whole number as an int.

    Args:
        name: of the argument.
        value: what the user handed in.
        least: the smallest that makes sense.
        or_none: the argument may be left out as None; said in the message alone, ask `value is None` before.

    >>> whole("layer", np.int64(3))
    3
    >>> whole("layer", 13.0)
    Traceback (most recent call last):
    ...
    ValueError: layer must be a whole number, got 13.0
    """
    takes = "a whole number" + (f" from {least} up" if least is not None else "") + " or None" * or_none
    if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
        raise ValueError(f"{name} must be {takes}, got {got(value)}")
    return int(value)


def number(name: str, value: Any, takes: str = "a finite number") -> float:
    """Return a finite number as a float; `takes` says in the message what the argument takes.

    >>> number("scale", np.float32(0.5))
    0.5
    >>> number("scale", True)
    Traceback (most recent call last):
    ...
    ValueError: scale must be a finite number, got True
    """
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number beyond all floats
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{name} must be {takes}, got {got(value)}")
    return found


def truth(name: str, value: Any, *, or_none: bool = False) -> bool:
    """Return True or False, which may also be said as 1 and 0; `or_none` as in `whole`.

    >>> truth("scaled", np.False_), truth("scaled", 1)
    (False, True)
    >>> truth("causal", "no", or_none=True)
    Traceback (most recent call last):
    ...
    ValueError: causal must be None, True or False, got 'no'
    """
    if not isinstance(value, bool | np.bool_ | Integral) or value not in (0, 1):
        raise ValueError(f"{name} must be {'None, ' * or_none}True or False, got {got(value)}")
    return bool(value)


def text(name: str, value: Any, takes: str = "a string") -> str:
    """Return a string.

    >>> text("target", b"w1")
    Traceback (most recent call last):
    ...
    ValueError: target must be a string, got b'w1'
    """
    if not isinstance(value, str):
        raise ValueError(f"{name} must be {takes}, got {got(value)}")
    return str(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of several strings.

    >>> one_of("part", None, ("encoder", "decoder"))
    Traceback (most recent call last):
    ...
    ValueError: part must be one of encoder, decoder; got None
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {got(value)}")
    return str(value)


def tile(name: str, value: Any) -> slice:
    """Return a slice of whole numbers; all of them for None.

    >>> tile("queries", None), tile("queries", slice(0, np.int64(64)))
    (slice(None, None, None), slice(0, 64, None))
    >>> tile("queries", 3)
    Traceback (most recent call last):
    ...
    ValueError: queries must be a slice such as slice(0, 64) or None, got 3
    """
    if value is None:
        return slice(None)
    if not isinstance(value, slice):
        raise ValueError(f"{name} must be a slice such as slice(0, 64) or None, got {got(value)}")
    start, stop, step = (
        None if part is None else whole(f"{name}: each part of a slice", part)
        for part in (value.start, value.stop, value.step)
    )
    if step == 0:
        raise ValueError(f"{name}: the step of a slice must not be 0, got {value!r}")
    return slice(start, stop, step)


def instance(name: str, value: Any, kind: type[T], takes: str) -> T:
    """Return a value of that class; `takes` says in the message what the argument takes.

    >>> instance("text", 1, str, "a str")
    Traceback (most recent call last):
    ...
    ValueError: text must be a str, got 1
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {takes}, got {got(value)}")
    return value


def function(name: str, value: Any) -> None:
    """Check that a value can be called.

    >>> function("progress", "loud")
    Traceback (most recent call last):
    ...
    ValueError: progress must be a function or None, got 'loud'
    """
    if not callable(value):
        raise ValueError(f"{name} must be a function or None, got {got(value)}")


def got(value: Any) -> str:
    """Return a value in a few words on one line.

    >>> got("x" * 200)[:4], got(np.zeros((3, 4)))
    ("'xxx", 'ndarray of shape (3, 4)')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    written = " ".join(repr(value).split())
    return written if len(written) <= _MOST_LETTERS else f"{written[: _MOST_LETTERS - 1]}…"
