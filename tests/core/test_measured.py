"""What follows from measurements: slopes, ratios and verdicts, against numbers that are known beforehand."""

import csv
import io

import numpy as np
import pytest

from attnviz.core.cost.measurements import (
    SIZES,
    WAYS,
    Measurement,
    compare,
    csv_text,
    expected_bytes,
    findings,
    growth,
)


def made_up(seconds: dict[str, float], n_bytes: dict[str, float], sizes=SIZES) -> list[Measurement]:
    """Return measurements whose time grows as s², and memory as s² for whole matrices, else as s."""
    return [
        Measurement(way, s, factor * s**2, int(n_bytes[way] * (s**2 if way in ("numpy", "torch_eager") else s)))
        for way, factor in seconds.items()
        for s in sizes
    ]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
def test_the_growth_of_a_power_law_is_its_power(power):
    rows = [Measurement("numpy", s, 1e-9 * s**power, 1) for s in (64, *SIZES)]
    rows[0] = Measurement("numpy", 64, 100.0, 1)  # below the lengths that count
    np.testing.assert_allclose(growth(rows, "numpy", "seconds"), power, atol=1e-5)
    assert growth(rows, "torch_fused", "seconds") is None
    assert growth(rows[:4], "numpy", "seconds") is None  # one length that counts


def test_ways_are_compared_at_the_largest_length_that_both_have():
    rows = [
        Measurement("numpy", 256, 1.0, 1),
        Measurement("numpy", 512, 4.0, 1),
        Measurement("numpy_blocks", 256, 2.0, 1),
    ]
    both = compare(rows, "numpy", "numpy_blocks", "seconds")
    assert (both.tokens, both.first, both.second, both.ratio) == (256, 1.0, 2.0, 2.0)
    assert compare(rows, "numpy", "torch_fused", "seconds") is None


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "slower"), (1.1, "equal"), (0.9, "equal"), (0.5, "faster")])
def test_findings_say_what_came_out_and_not_what_was_expected(factor, verdict):
    seconds = {"numpy": 1e-8, "numpy_blocks": factor * 1e-8, "torch_eager": 1e-8, "torch_fused": factor * 1e-8}
    n_bytes = {"numpy": 12, "numpy_blocks": 300, "torch_eager": 12, "torch_fused": 90_000}
    found = dict(findings(made_up(seconds, n_bytes)))
    assert list(found) == [
        "blocks_memory_less",
        f"blocks_time_{verdict}",
        "fused_memory_like",  # as much as the whole matrix, in these numbers
        f"fused_time_{verdict}",
    ]
    np.testing.assert_allclose(found[f"blocks_time_{verdict}"].ratio, factor)
    assert found["blocks_memory_less"].tokens == SIZES[-1]


def test_nothing_measured_shows_nothing():
    assert findings([]) == []


def test_the_memory_that_is_reserved_grows_with_the_square_for_whole_matrices_only():
    for way in WAYS:
        ratio = expected_bytes(way, 8192) / expected_bytes(way, 4096)
        assert (ratio > 3.9) is (way in ("numpy", "torch_eager"))
    with pytest.raises(ValueError, match="got 'cuda' and 8"):
        expected_bytes("cuda", 8)
    with pytest.raises(ValueError, match="at least 1 token"):
        expected_bytes("numpy", 0)


def test_the_table_reads_back():
    rows = [Measurement("numpy", 256, 0.125, 4096), Measurement("torch_fused", 512, 0.5, 1)]
    read = list(csv.DictReader(io.StringIO(csv_text(rows, 'Linux, "2" cores'))))
    back = [Measurement(r["way"], int(r["tokens"]), float(r["seconds"]), int(r["peak_extra_bytes"])) for r in read]
    assert back == rows
    assert {(r["d_head"], r["dtype"], r["mask"], r["machine"]) for r in read} == {
        ("64", "float32", "causal", 'Linux, "2" cores')
    }
