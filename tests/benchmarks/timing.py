"""How things are measured: in turn, and in processes of their own."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def in_turn(rounds: int, **runs: Callable[[], Any]) -> dict[str, list[float]]:
    """Return the seconds of each run, taken in turn `rounds` times after one round that doesn't count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_number in range(rounds + 1):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            if round_number:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    """Return the median of the ratios, pair by pair."""
    return round(statistics.median(a / b for a, b in zip(over, under, strict=True)), 3)


def median(seconds: list[float]) -> float:
    """Return the median, to the millisecond."""
    return round(statistics.median(seconds), 4)


def memory(name: str) -> float:
    """Return megabytes of this process from Linux's own accounts: "VmRSS" now, "VmHWM" at its highest."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def reset_peak() -> None:
    """Let "VmHWM" start from what is in use now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_of(program: str, *arguments: str) -> float:
    """Return what a fresh process prints: megabytes that the second half of `program` added to its peak."""
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(json.loads(result.stdout.splitlines()[-1]))
