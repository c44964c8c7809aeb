"""How things are measured: in turn, and in processes of their own."""

import json
import statistics
import subprocess
import sys
import threading
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


def peak_while(run: Callable[[], Any]) -> float:
    """Return the megabytes that this process held more while `run` ran, its result included, at the highest.

    Counts anonymous memory, looked up each millisecond: the model's file, mapped into memory, comes and goes by itself.
    """
    before = highest = _anonymous()
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.001):
            highest = max(highest, _anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    kept = run()
    done.set()
    watcher.join()
    highest = max(highest, _anonymous())
    del kept
    return highest - before


def _anonymous() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def peak_of(program: str, *arguments: str) -> float:
    """Return the number that a program, run in a fresh process, prints last."""
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(json.loads(result.stdout.splitlines()[-1]))
