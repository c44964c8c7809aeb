"""Attention measured on this machine: time and memory of five ways, in a process of its own. Uses torch there.

`Run` starts `python -m attnviz.models.measure.timing` and collects what it prints, so that stopping is ending that
process, and nothing that it needs weighs on the app. Each way works out the same causal attention of one head, on one
thread: first runs that are watched for memory, then runs that are timed.
"""

import ctypes
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from attnviz.core.attention.textbook import scaled_dot_product_attention
from attnviz.core.blockwise.online import blockwise_attention
from attnviz.core.cost.measurements import BLOCK, D_HEAD, SHARE, SIZES, WAYS, Measurement, expected_bytes

ROOT = Path(__file__).resolve().parents[3]
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
WATCHED_SECONDS = 0.05  # at least, so that short runs are seen too
LOOK_SECONDS = 0.0005
TIMED_SECONDS, TIMED_RUNS = 0.2, 3  # at least
_one_at_a_time = threading.Lock()  # two measurements side by side would measure each other


class Run:
    """A measurement in a process of its own.

    Attributes:
        state: "waiting" for another visitor's to end, "running", "done", "stopped", or "failed".
        results: so far.
        skipped: (way, tokens, bytes it could need) of what would go beyond `limit`.
        now: (way, tokens) that is being measured.
        limit: bytes that no measurement may need.
        machine: what it runs on, in words.
    """

    def __init__(self, sizes: Sequence[int] = SIZES, limit: int | None = None) -> None:
        self.sizes = tuple(sizes)
        self.limit = int(SHARE * psutil.virtual_memory().available) if limit is None else limit
        self.state = "waiting"
        self.results: list[Measurement] = []
        self.skipped: list[tuple[str, int, int]] = []
        self.now: tuple[str, int] | None = None
        self.machine = ""
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    @property
    def done(self) -> tuple[int, int]:
        """How much of the work is done, and how much there is: the tokens of all measurements."""
        sizes = [tokens for tokens in self.sizes for _ in WAYS]
        n_done = min(len(self.results) + len(self.skipped), len(sizes))
        return sum(sizes[:n_done]), sum(sizes)

    def stop(self) -> None:
        """End the process at once; what was measured stays."""
        with self._lock:
            if self.state in ("waiting", "running"):
                self.state = "stopped"
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def measure(self, look: Callable[[], None] = lambda: None) -> None:
        """Measure, and return when it is over; `look` is called now and then, and ends it by raising."""
        while not _one_at_a_time.acquire(timeout=0.2):
            if self.state == "stopped":
                return
            look()
        try:
            process = self._start()
            if process is not None:
                self._read(process, look)
        finally:
            _one_at_a_time.release()

    def _start(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.state == "stopped":
                return None
            order = json.dumps({"sizes": self.sizes, "limit": self.limit})
            self._process = subprocess.Popen(
                [sys.executable, "-m", "attnviz.models.measure.timing", order],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join([str(ROOT), *_own_path()])},
            )
            self.state = "running"
            return self._process

    def _read(self, process: subprocess.Popen[str], look: Callable[[], None]) -> None:
        told: Any = process.stdout  # a pipe, as it was asked for
        try:
            look()
            for line in told:
                self._take(json.loads(line))
                look()
            process.wait()
            if self.state == "running":
                self.state = "done" if process.returncode == 0 else "failed"
        finally:
            self.stop()
            told.close()
            process.wait()

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.pop("kind")
        if kind == "result":
            self.results.append(Measurement(**told))
        elif kind == "skipped":
            self.skipped.append((told["way"], told["tokens"], told["bytes"]))
        elif kind == "now":
            self.now = told["way"], told["tokens"]
        else:
            self.machine = told["machine"]


def measure(way: str, tokens: int) -> Measurement:
    """Measure one way at one length, in this process and on as many threads as it was given."""
    run = way_of(way, tokens)
    run()
    return Measurement(way, tokens, _seconds(run), _peak(run))


def way_of(way: str, tokens: int) -> Callable[[], Any]:
    """Return a function that works out causal attention of one head of random q, k, v that way.

    Raises:
        ValueError: there is no such way.
    """
    q, k, v = np.random.default_rng(0).standard_normal((3, tokens, D_HEAD)).astype(np.float32)
    if way == "numpy":
        return lambda: scaled_dot_product_attention(q, k, v, causal=True)[0]
    if way in ("numpy_blocks", "numpy_skipping"):
        skip = way == "numpy_skipping"
        return lambda: blockwise_attention(q, k, v, causal=True, block_size=BLOCK, skip_masked_blocks=skip)
    if way not in WAYS:
        raise ValueError(f"expected one of {', '.join(WAYS)}, got {way!r}")
    import torch

    qkv = [torch.from_numpy(array) for array in (q, k, v)]
    return lambda: (eager_attention if way == "torch_eager" else fused_attention)(*qkv)


def eager_attention(q: Any, k: Any, v: Any) -> Any:
    """Return causal attention of one head in plain PyTorch, (tokens, d_head), with the whole matrix in memory."""
    import torch

    scores = q @ k.T / q.shape[-1] ** 0.5  # (tokens, tokens)
    future = torch.ones(scores.shape, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1) @ v


def fused_attention(q: Any, k: Any, v: Any) -> Any:
    """Return the same from PyTorch's own function, which goes block by block in compiled code."""
    from torch.nn.functional import scaled_dot_product_attention as fused

    return fused(q[None, None], k[None, None], v[None, None], is_causal=True)[0, 0]


def _seconds(run: Callable[[], Any]) -> float:
    """Return the time of the fastest of at least three runs: what slows the others down is a neighbour's work."""
    seconds: list[float] = []
    while len(seconds) < TIMED_RUNS or sum(seconds) < TIMED_SECONDS:
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _peak(run: Callable[[], Any]) -> int:
    """Return the bytes that this process held more while it ran, at the highest: resident memory, looked up often."""
    process, done = psutil.Process(), threading.Event()
    _give_back()
    before = highest = process.memory_info().rss

    def watch() -> None:
        nonlocal highest
        while not done.wait(LOOK_SECONDS):
            highest = max(highest, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        end = time.perf_counter() + WATCHED_SECONDS
        kept = run()
        while time.perf_counter() < end:
            kept = run()
        highest = max(highest, process.memory_info().rss)
        del kept
    finally:
        done.set()
        watcher.join()
    return highest - before


def _give_back() -> None:
    """Return freed memory to the system, so that it can't be used again unseen; only glibc keeps any."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return


def _own_path() -> list[str]:
    return os.environ["PYTHONPATH"].split(os.pathsep) if os.environ.get("PYTHONPATH") else []


def _machine() -> str:
    import torch

    n_bytes = psutil.virtual_memory().total
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {n_bytes / 1e9:.0f} GB; one thread; "
        f"NumPy {np.__version__}, PyTorch {torch.__version__.split('+')[0]}"
    )


def _work(sizes: Sequence[int], limit: int) -> None:
    """Measure every way at every length, and print what is found, a line each."""
    import torch

    torch.set_num_threads(1)
    _tell("machine", machine=_machine())
    with torch.inference_mode():
        for tokens in sizes:
            for way in WAYS:
                needed = expected_bytes(way, tokens)
                if needed > limit:
                    _tell("skipped", way=way, tokens=tokens, bytes=needed)
                    continue
                _tell("now", way=way, tokens=tokens)
                _tell("result", **vars(measure(way, tokens)))


def _tell(kind: str, **what: Any) -> None:
    print(json.dumps({"kind": kind, **what}), flush=True)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    _work(order["sizes"], order["limit"])
