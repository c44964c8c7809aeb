"""How many threads NumPy's matrix products run on, while attnviz computes and at no other time. Uses threadpoolctl.

OpenBLAS, which computes them, shares even small products between all cores, and its threads spin while they wait for
one another. As soon as a neighbour wants the same cores each product waits for its turn: 12 tokens took a small model
1.8 s on two busy cores with two threads and 0.19 s with one, which is hardly slower on quiet cores (0.09 against 0.06
s). A look at all heads of 100 tokens took 0.7 s with two threads and 0.07 s with one.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[None]:
    """Let NumPy's products run on one thread inside the block: one head's are too small to share."""
    return _at_most(1)


def half_the_cores() -> AbstractContextManager[None]:
    """Let NumPy's products run on half of the cores inside the block: a whole model's are worth sharing."""
    return _at_most(max(1, (os.cpu_count() or 1) // 2))


@contextmanager
def _at_most(n_threads: int) -> Iterator[None]:
    for library in _libraries():
        library.enter(n_threads)
    try:
        yield
    finally:
        for library in _libraries():
            library.leave(n_threads)


class _Library:
    """A library that computes products, and the limits of all blocks that are open.

    Its number of threads is the process's, or each thread's own where it shares its work by OpenMP. The smallest limit
    holds; the last block to end gives back the number that the first one found.

    Args:
        library: of threadpoolctl.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._by_thread = getattr(library, "threading_layer", None) == "openmp"
        self._open: dict[int, tuple[int, list[int]]] = {}  # whose number it is -> that number, and the limits
        self._lock = Lock()

    def enter(self, n_threads: int) -> None:
        """Hold a limit until `leave`."""
        with self._lock:
            own, limits = self._open.setdefault(self._whose(), (self._library.get_num_threads(), []))
            limits.append(n_threads)
            self._set(min([own, *limits]))

    def leave(self, n_threads: int) -> None:
        """End what `enter` began."""
        with self._lock:
            own, limits = self._open[self._whose()]
            limits.remove(n_threads)
            if not limits:
                del self._open[self._whose()]
            self._set(min([own, *limits]))

    def _whose(self) -> int:
        return get_ident() if self._by_thread else 0

    def _set(self, number: int) -> None:
        if self._library.get_num_threads() == number:
            return
        self._library.set_num_threads(number)
        if hasattr(self._library, "clear_controlling_thread"):  # else no other thread could set it from now on
            self._library.clear_controlling_thread()


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return NumPy's library, or none if threadpoolctl knows none; looked for once, since that takes milliseconds."""
    return tuple(_Library(each) for each in ThreadpoolController().lib_controllers if each.user_api == "blas")
