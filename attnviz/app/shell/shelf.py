"""A store that visitors share: each thing is made once, the longest unused goes first. Standard library only."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Shelf(Generic[V]):
    """Keeps up to `limit` (in units of `size_of`) of what was made; the newest stays whatever its size.

    Two threads that ask for the same key at once get one thing: the second waits. If making fails or is interrupted,
    the next one who waits tries again.

    >>> shelf = Shelf(limit=2)
    >>> [shelf.get(key, lambda: key * 2) for key in ("a", "b", "a")], shelf.n_made
    (['aa', 'bb', 'aa'], 2)
    """

    def __init__(self, limit: float, size_of: Callable[[V], float] = lambda value: 1) -> None:
        self.limit = limit
        self.size_of = size_of
        self.n_made = 0
        self._things: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, list[Any]] = {}  # key -> [lock, how many use it]

    def get(self, key: Hashable, make: Callable[[], V], *, room: float = 0) -> V:
        """Return what lies under `key`; else make it, after clearing `room` so that the shelf isn't full meanwhile."""
        with self._alone(key):
            thing = self.peek(key)
            if thing is not None:
                return thing
            self._shrink(self.limit - room)
            thing = make()
            with self._lock:
                self._things[key] = thing
                self.n_made += 1
            self._shrink(self.limit, keep=key)
            return thing

    def peek(self, key: Hashable) -> V | None:
        """Return what lies under `key`, now the most recently used, or None."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
            return self._things.get(key)

    def is_making(self, key: Hashable) -> bool:
        """Return True while somebody makes what belongs under `key`."""
        with self._lock:
            return key in self._making

    def __len__(self) -> int:
        with self._lock:
            return len(self._things)

    def _shrink(self, limit: float, keep: Hashable = None) -> None:
        with self._lock:
            total = sum(self.size_of(thing) for thing in self._things.values())
            for key in list(self._things):
                if total <= limit:
                    return
                if key != keep:
                    total -= self.size_of(self._things.pop(key))

    @contextmanager
    def _alone(self, key: Hashable) -> Any:
        with self._lock:
            entry = self._making.setdefault(key, [threading.Lock(), 0])
            entry[1] += 1
        try:
            with entry[0]:
                yield
        finally:
            with self._lock:
                entry[1] -= 1
                if entry[1] == 0:
                    del self._making[key]
