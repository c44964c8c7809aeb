"""Measure speed and memory, and print JSON: `python -m tests.benchmarks`, or `make bench`.

Times are medians of runs taken in turn, so that a drifting machine moves both sides of a ratio. Memory is the peak of a
process of its own for each figure. Name measurements to run some of them: `python -m tests.benchmarks trace`.
"""

import json
import sys

from tests.benchmarks import all_heads, blockwise, engines, page, scanning, tracing

MEASUREMENTS = {
    "trace": tracing.measure,
    "engines": engines.measure,
    "page": page.measure,
    "all_heads": all_heads.measure,
    "scan": scanning.measure,
    "blockwise": blockwise.measure,
}


def main(names: list[str]) -> None:
    """Run the named measurements, all without names, and print what they found."""
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        sys.exit(f"there is no measurement {', '.join(sorted(unknown))}; there are {', '.join(MEASUREMENTS)}")
    print(json.dumps({name: MEASUREMENTS[name]() for name in names or MEASUREMENTS}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
