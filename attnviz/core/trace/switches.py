"""The switches: what a visitor may change about attention, as plain data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.arguments import got, number, truth, whole
from attnviz.core.attention.masks import Mask

MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1e6

Forbidden = tuple[int | None, int | None, int, int]


@dataclass(frozen=True)
class Switches:
    """What is changed about a model's attention; the defaults change nothing.

    Attributes:
        causal: None keeps the model's own rule; True also forbids later keys; False also allows them (the past side of
            a sliding window stays as it is).
        scaled: False drops the model's own factor in front of q k^T (the same as temperature = that factor).
        temperature: what is inside the softmax, sinks and bias included, is divided by it; from MIN_TEMPERATURE to
            MAX_TEMPERATURE, beyond which float32 scores would overflow or vanish.
        ablate: pairs (layer, head) whose output is set to zero. Acts in a whole pass only.
        forbid: (layer, head, query, key): that query may not see that key. None as layer or head means all of them.

    Raises:
        ValueError: an argument of another kind, a temperature out of range, or entries of the wrong shape.

    >>> Switches(ablate={(3, 1)}).at_rest
    False
    """

    causal: bool | None = None
    scaled: bool = True
    temperature: float = 1.0
    ablate: frozenset[tuple[int, int]] = frozenset()
    forbid: frozenset[Forbidden] = frozenset()

    def __post_init__(self) -> None:
        if self.causal is not None:
            object.__setattr__(self, "causal", truth("causal", self.causal, or_none=True))
        object.__setattr__(self, "scaled", truth("scaled", self.scaled))
        object.__setattr__(self, "temperature", _temperature(self.temperature))
        object.__setattr__(self, "ablate", _tuples("ablate", self.ablate, 2, "(layer, head)"))
        object.__setattr__(self, "forbid", _tuples("forbid", self.forbid, 4, "(layer, head, query, key)"))

    @property
    def at_rest(self) -> bool:
        """True if nothing is changed."""
        return self == Switches()

    def forbidden(self, layer: int, head: int) -> list[tuple[int, int]]:
        """Return the (query, key) pairs that are forbidden in that head."""
        return [(q, k) for a, b, q, k in self.forbid if a in (None, layer) and b in (None, head)]

    def check_forbid(self, layers: Iterable[int], n_heads: int, n_queries: int, n_keys: int) -> None:
        """Raise ValueError if a forbidden look names a layer, head or token that isn't there."""
        numbers = set(layers)
        for layer, head, query, key in self.forbid:
            if layer is not None and layer not in numbers:
                raise ValueError(f"forbid names layer {layer}; the layers with attention are {sorted(numbers)}")
            if head is not None and not 0 <= head < n_heads:
                raise ValueError(f"forbid names head {head}; heads go from 0 to {n_heads - 1}")
            if not (0 <= query < n_queries and 0 <= key < n_keys):
                raise ValueError(
                    f"forbid names query {query} and key {key}; this text has tokens 0 to {max(n_queries, n_keys) - 1}"
                )


def allowed_cells(
    mask: Mask, switches: Switches, layer: int, head: int, queries: NDArray[np.int64], keys: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return (len(queries), len(keys)), True where `queries` may see `keys` in that head under `switches`.

    Raises:
        ValueError: the forbidden looks leave a query without any key.
    """
    cells = mask.allowed(queries, keys)
    ahead = keys > queries[:, None]
    if switches.causal is True:
        cells = cells & ~ahead
    elif switches.causal is False:
        cells = cells | ahead
    forbidden = [(q, k) for q, k in switches.forbidden(layer, head) if q in queries] if switches.forbid else []
    if forbidden:
        _check_a_key_is_left(mask, switches, forbidden)
        cells = cells.copy()
        for query, key in forbidden:
            cells[np.ix_(queries == query, keys == key)] = False
    return cells


def allowed_table(
    mask: Mask,
    switches: Switches,
    layer: int,
    heads: Sequence[int],
    queries: NDArray[np.int64],
    keys: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return (1 or heads, queries, keys), what `allowed_cells` says of heads; one table where it holds for all."""
    differ = switches.forbid and any(
        number in (None, layer) and head is not None for number, head, *_ in switches.forbid
    )
    if not differ:
        return allowed_cells(mask, switches, layer, heads[0], queries, keys)[None]
    return np.stack([allowed_cells(mask, switches, layer, head, queries, keys) for head in heads])


def _check_a_key_is_left(mask: Mask, switches: Switches, forbidden: list[tuple[int, int]]) -> None:
    every_key = np.arange(mask.n_keys)
    own = Switches(causal=switches.causal)
    for query in {q for q, _ in forbidden}:
        row = allowed_cells(mask, own, 0, 0, np.array([query]), every_key)[0]
        row[[k for q, k in forbidden if q == query]] = False
        if not row.any():
            raise ValueError(f"token {query} would have nothing left to look at: leave it at least one key")


def _tuples(name: str, value: Any, size: int, form: str) -> frozenset[Any]:
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise ValueError(f"{name} must be a set of {form}, got {got(value)}")
    return frozenset(_entry(name, entry, size, form) for entry in value)


def _entry(name: str, entry: Any, size: int, form: str) -> tuple[int | None, ...]:
    if isinstance(entry, str | bytes) or not hasattr(entry, "__iter__"):
        raise ValueError(f"{name} must hold {form}, got {got(entry)}")
    places = form.strip("()").split(", ")
    numbers = tuple(entry)
    if len(numbers) != size:
        raise ValueError(f"{name} must hold {form}, got {got(entry)}")
    left_out = tuple(size == 4 and place in ("layer", "head") for place in places)  # None means all of them
    return tuple(
        None if n is None and free else whole(f"{name}: the {place} in {got(entry)}", n, or_none=free)
        for n, place, free in zip(numbers, places, left_out, strict=True)
    )


def _temperature(value: Any) -> float:
    takes = f"a number from {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
    found = number("temperature", value, takes)
    if not MIN_TEMPERATURE <= found <= MAX_TEMPERATURE:
        raise ValueError(f"temperature must be {takes}, got {value!r}")
    return found
