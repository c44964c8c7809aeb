"""Amounts in words that fit an axis: bytes, seconds, counts. Standard library only."""

import math

_SCALES = {
    "bytes": [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    "seconds": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
}
GAP = "\u00a0"  # a space that no line ends at
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def quantity(value: float, unit: str = "") -> str:
    r"""Return an amount with at most three digits and its unit, in one piece.

    Args:
        value: at least 0.
        unit: "bytes" (a kB is 1,000), "seconds", or "" for a count, which is written as a power of ten from a million.

    Raises:
        ValueError: there is no such unit.

    >>> quantity(4_294_967_296, "bytes"), quantity(0.00123, "seconds"), quantity(1_024)
    ('4.29\xa0GB', '1.23\xa0ms', '1,024')
    >>> quantity(2.7488e11), quantity(1e12), quantity(999_999_999, "bytes")
    ('2.7\xa0×\xa010¹¹', '10¹²', '1\xa0GB')
    """
    if unit == "":
        return _count(value)
    if unit not in _SCALES:
        raise ValueError(f'unit is "bytes", "seconds" or "", got {unit!r}')
    for size, name in _SCALES[unit]:
        if value >= 0.9995 * size:
            return f"{_three_digits(value / size)}{GAP}{name}"
    size, name = _SCALES[unit][-1]
    return f"{value / size:.3g}{GAP}{name}"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def _count(value: float) -> str:
    if value < 999_500:
        return f"{value:,.0f}" if value >= 99.95 or value == round(value) else f"{value:.3g}"
    power = math.floor(math.log10(value) + 1e-9)
    digits = f"{value / 10**power:.1f}"
    if digits == "10.0":
        power, digits = power + 1, "1.0"
    raised = f"10{str(power).translate(_RAISED)}"
    return raised if digits == "1.0" else f"{digits}{GAP}×{GAP}{raised}"
