"""Which keys a query may see: a model's own rule, kept as one interval of keys a query. NumPy only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Mask:
    """The keys each query may see.

    Causal masks, sliding windows, local attention and "everything" all allow one unbroken run of keys a query, so two
    numbers a query say it all and a mask costs O(queries), not O(queries x keys). `table` is there for the rest.

    Attributes:
        first: (queries,) the first allowed key of each query.
        last: (queries,) the last allowed key, itself allowed; below `first` where a query sees nothing.
        n_keys: number of keys.
        table: (queries, keys) True where allowed, only if the rule isn't a run of keys; else None.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    n_keys: int
    table: NDArray[np.bool_] | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.first)

    def allowed(self, queries: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (len(queries), len(keys)), True where that query may see that key."""
        if self.table is not None:
            return self.table[np.ix_(queries, keys)]
        return (keys >= self.first[queries, None]) & (keys <= self.last[queries, None])  # (queries, keys)

    @property
    def looks_ahead(self) -> bool:
        """True if some query may see a later key."""
        if self.table is not None:
            return bool(np.triu(self.table, k=1).any())
        return bool((self.last > np.arange(self.n_queries)).any())

    @property
    def window(self) -> bool:
        """True if some query may not see a key at or before its own position: a sliding window or the like."""
        if self.table is not None:
            return not bool(np.tril(self.table).sum() == np.tril(np.ones_like(self.table)).sum())
        return bool((self.first > 0).any())


def full_mask(n_queries: int, n_keys: int) -> Mask:
    """Return the mask under which every query sees every key."""
    return Mask(np.zeros(n_queries, np.int64), np.full(n_queries, n_keys - 1, np.int64), n_keys)


def causal_rule(n_queries: int, n_keys: int) -> Mask:
    """Return the mask under which a query sees itself and earlier keys; the queries are the last ones of the keys.

    >>> causal_rule(2, 3).last.tolist()
    [1, 2]
    """
    return Mask(np.zeros(n_queries, np.int64), np.arange(n_keys - n_queries, n_keys), n_keys)


def mask_from_table(table: NDArray[np.bool_]) -> Mask:
    """Return the mask of a (queries, keys) table, True where allowed, as runs of keys if it is made of runs.

    >>> mask_from_table(np.array([[True, False], [True, True]])).last.tolist()
    [0, 1]
    """
    table = np.asarray(table, bool)
    n_keys = table.shape[1]
    first = table.argmax(axis=1).astype(np.int64)
    last = (n_keys - 1 - table[:, ::-1].argmax(axis=1)).astype(np.int64)
    count = table.sum(axis=1)
    last = np.where(count == 0, first - 1, last)
    if (count == last - first + 1).all():
        return Mask(first, last, n_keys)
    return Mask(first, last, n_keys, table.copy())
