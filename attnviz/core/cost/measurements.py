"""What a measurement of attention on this machine says: growth, ratios, a table. Standard library and NumPy only.

`attnviz.models.measure.timing` measures; here is what follows from the numbers, whatever they turn out to be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnviz.core.export import table_files

WAYS = {
    "numpy": "NumPy, whole matrix",
    "numpy_blocks": "NumPy, block by block",
    "numpy_skipping": "NumPy, blocks, future ones skipped",
    "torch_eager": "PyTorch, whole matrix",
    "torch_fused": "PyTorch, fused",
}
"""The ways to work out the same attention: short name -> what to call it."""

SIZES = (256, 512, 1024, 2048, 4096, 8192)
D_HEAD = 64
BLOCK = 128  # queries, and keys, in a block of the ways that have blocks
SHARE = 0.25  # of the free memory: a size that could need more is left out

NUMBER_BYTES = 4  # float32
MATRICES = {"numpy": 4, "torch_eager": 6}  # whole s x s matrices of float32 that a way may hold at once, at most
SMALL = 32 * 10**6  # bytes that the other ways may need whatever the length: blocks, buffers of the libraries
EQUAL = 1.15  # ratios up to it count as equal: a measurement is not more exact
CLEARLY_LESS = 0.5

Quantity = Literal["seconds", "peak_bytes"]
GROWS_FROM = 1024  # tokens: in shorter texts fixed costs hide the growth


@dataclass(frozen=True)
class Measurement:
    """One way at one length.

    Attributes:
        way: a key of `WAYS`.
        tokens: queries, and keys.
        seconds: of the fastest of several runs.
        peak_bytes: memory held at the highest beyond what was held before, the result included.
    """

    way: str
    tokens: int
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Comparison:
    """Two ways at the largest length that both were measured at.

    Attributes:
        tokens: that length.
        first, second: the two values; `ratio`: second / first.
    """

    tokens: int
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """How many times as much the second one takes."""
        return self.second / max(self.first, 1e-12)


def expected_bytes(way: str, tokens: int) -> int:
    """Return the most memory that a way may need for so many tokens, so that it can be refused before it runs.

    Whole matrices hold the scores, the mask and the weights, each of s^2 numbers; the other ways hold a few numbers for
    each token.

    Raises:
        ValueError: there is no such way, or fewer than one token.

    >>> expected_bytes("numpy", 8192) // 8192**2, expected_bytes("torch_fused", 1)
    (16, 32001024)
    """
    if way not in WAYS or tokens < 1:
        raise ValueError(f"expected one of {', '.join(WAYS)} and at least 1 token, got {way!r} and {tokens}")
    if way in MATRICES:
        return MATRICES[way] * tokens**2 * NUMBER_BYTES + tokens
    return SMALL + 4 * D_HEAD * tokens * NUMBER_BYTES


def growth(measurements: Sequence[Measurement], way: str, quantity: Quantity) -> float | None:
    """Return the exponent e of the growth s^e of one way: the slope of its line where both axes are logarithmic.

    Args:
        measurements: of any ways.
        way: a key of `WAYS`.
        quantity: "seconds" or "peak_bytes".

    Returns:
        The slope by least squares; None with fewer than two lengths.

    >>> growth([Measurement("numpy", s, s**2 / 1e9, 0) for s in (1024, 2048, 4096)], "numpy", "seconds")
    2.0
    """
    points = [
        (m.tokens, getattr(m, quantity))
        for m in measurements
        if m.way == way and m.tokens >= GROWS_FROM and getattr(m, quantity) > 0
    ]
    if len({tokens for tokens, _ in points}) < 2:
        return None
    tokens, values = np.log2(np.array(points, np.float64)).T
    return round(float(np.polyfit(tokens, values, 1)[0]), 6)


def compare(measurements: Sequence[Measurement], first: str, second: str, quantity: Quantity) -> Comparison | None:
    """Return two ways side by side at the largest length that both have; None if there is none.

    >>> compare([Measurement("numpy", 8, 2.0, 0), Measurement("numpy_blocks", 8, 3.0, 0)], *list(WAYS)[:2], "seconds")
    Comparison(tokens=8, first=2.0, second=3.0)
    """
    values = {(m.way, m.tokens): float(getattr(m, quantity)) for m in measurements}
    shared = [tokens for way, tokens in values if way == first and (second, tokens) in values]
    if not shared:
        return None
    return Comparison(max(shared), values[first, max(shared)], values[second, max(shared)])


def findings(measurements: Sequence[Measurement]) -> list[tuple[str, Comparison]]:
    """Return what the measurements showed, as names of sentences with the numbers that belong in them.

    Args:
        measurements: as far as they go.

    Returns:
        Pairs of a name such as "blocks_time_slower" and the comparison behind it. Times are faster, equal (within
        15 %) or slower; memory is less (than half) or like.

    >>> slow = [Measurement("numpy", 8, 2.0, 100), Measurement("numpy_blocks", 8, 3.0, 10)]
    >>> [name for name, _ in findings(slow)]
    ['blocks_memory_less', 'blocks_time_slower']
    """
    asked: list[tuple[str, str, str, Quantity]] = [
        ("blocks_memory", "numpy", "numpy_blocks", "peak_bytes"),
        ("blocks_time", "numpy", "numpy_blocks", "seconds"),
        ("skipping_time", "numpy_blocks", "numpy_skipping", "seconds"),
        ("fused_memory", "torch_eager", "torch_fused", "peak_bytes"),
        ("fused_time", "torch_eager", "torch_fused", "seconds"),
    ]
    found = []
    for name, first, second, quantity in asked:
        both = compare(measurements, first, second, quantity)
        if both is not None:
            verdict = _time_verdict(both.ratio) if quantity == "seconds" else _memory_verdict(both.ratio)
            found.append((f"{name}_{verdict}", both))
    return found


def csv_text(measurements: Sequence[Measurement], machine: str = "") -> str:
    r"""Return the measurements as CSV, with what was measured in every row.

    >>> csv_text([Measurement("numpy", 8, 0.5, 100)], "2 cores").splitlines()[1]
    'numpy,8,64,float32,causal,0.5,100,2 cores'
    """
    names = ("way", "tokens", "d_head", "dtype", "mask", "seconds", "peak_extra_bytes", "machine")
    rows = ((m.way, m.tokens, D_HEAD, "float32", "causal", m.seconds, m.peak_bytes, machine) for m in measurements)
    return table_files.csv_text([names, *rows])


def _time_verdict(ratio: float) -> str:
    return "slower" if ratio > EQUAL else "faster" if ratio < 1 / EQUAL else "equal"


def _memory_verdict(ratio: float) -> str:
    return "less" if ratio < CLEARLY_LESS else "like"
