"""All heads of a text, beside a busy neighbour: attnviz imported first, and after torch has brought NumPy along."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.benchmarks.timing import ROOT

PROGRAM = """
import json, sys
if sys.argv[1] == "torch first":
    import torch
import attnviz
from attnviz.core.heads.at_a_glance import survey
from tests.benchmarks.engines import TEXT
from tests.benchmarks.timing import in_turn, median
from tests.benchmarks.tracing import text_of
engine = attnviz.load("smollm2")
cut = lambda n: engine.trace(text_of(engine, n), max_tokens=n)
traces = {"13 tokens": engine.trace(TEXT), "64 tokens": cut(64), "128 tokens": cut(128)}
runs = {name: (lambda trace=trace: survey(trace)) for name, trace in traces.items()}
print(json.dumps({name: median(seconds) for name, seconds in in_turn(9, **runs).items()}))
"""
ORDERS = ("attnviz first", "torch first")
BUSY = "while True: pass"


def measure() -> dict[str, Any]:
    """Return the seconds of a look at all heads of SmolLM2, by what was imported first and by the neighbours."""
    found: dict[str, Any] = {}
    for n_neighbours in (0, 1):
        neighbours = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n_neighbours)]
        try:
            found |= {f"{first}, {n_neighbours} busy neighbours": _seconds(first) for first in ORDERS}
        finally:
            for neighbour in neighbours:
                neighbour.kill()
                neighbour.wait()
    return found


def _seconds(first: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, first], cwd=ROOT, env=_environment(), capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _environment() -> dict[str, str]:
    """Return the environment without a number of threads that somebody has set."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
