"""How many threads NumPy's matrix products run on."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FUNCTION = "scipy_openblas_{}_num_threads64_"


@contextmanager
def half_the_cores() -> Iterator[None]:
    """Let NumPy's matrix products run on half of the cores inside the block, at least on one.

    OpenBLAS, which computes them, lets its threads spin while they wait for one another. As soon as a neighbour wants
    the same cores each product waits for its turn: 12 tokens on two busy cores took 1.8 s on two threads and 0.19 s on
    one, which is hardly slower on quiet cores (0.09 against 0.06 s). A NumPy with another library is left as it is.
    """
    get, set_ = _openblas()
    before = get()
    set_(max(1, min(before, (os.cpu_count() or 1) // 2)))
    try:
        yield
    finally:
        set_(before)


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], Any]]:
    """Return the functions that get and set the number of threads, from the library that NumPy's wheel brings along."""
    packages = Path(np.__file__).parents[1]
    for file in [*packages.glob("numpy.libs/*openblas*"), *packages.glob("numpy/.dylibs/*openblas*")]:
        library = ctypes.CDLL(str(file))  # loaded already: this is the same one
        if hasattr(library, FUNCTION.format("set")):
            return getattr(library, FUNCTION.format("get")), getattr(library, FUNCTION.format("set"))
    return lambda: 1, lambda number: None
