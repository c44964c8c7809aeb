"""How many threads NumPy's products have inside attnviz's computations, and that the user's own number comes back."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from attnviz.core.attention import textbook as attention
from attnviz.core.heads import finder
from attnviz.core.threads import _Library, half_the_cores, one_thread
from attnviz.core.trace import layer_scores
from attnviz.core.trace.trace import Trace

HALF = max(1, (os.cpu_count() or 1) // 2)
OWN = max(2, os.cpu_count() or 1)  # the number of the user
BLAS = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]

pytestmark = pytest.mark.skipif(not BLAS, reason="NumPy computes with a library that threadpoolctl doesn't know")


def n_threads() -> int:
    return max(library.get_num_threads() for library in BLAS)


def give(number: int) -> None:
    """Give NumPy a number of threads, as a user does."""
    for library in BLAS:
        library.set_num_threads(number)
        library.clear_controlling_thread()


@pytest.fixture(autouse=True)
def own_number() -> Iterator[None]:
    """Give NumPy the user's number of threads, and see that it has that number still when the test is over."""
    before = n_threads()
    give(OWN)
    yield
    assert n_threads() == OWN
    give(before)


@pytest.mark.parametrize(("limit", "number"), [(one_thread, 1), (half_the_cores, HALF)])
def test_a_block_holds_its_limit_and_gives_the_number_back(limit, number):
    with limit():
        assert n_threads() == min(OWN, number)
    assert n_threads() == OWN
    with pytest.raises(KeyError), limit():
        raise KeyError
    assert n_threads() == OWN


def test_the_smallest_limit_of_nested_blocks_holds(monkeypatch):
    give(8)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    with half_the_cores():
        assert n_threads() == 4
        with one_thread(), half_the_cores():
            assert n_threads() == 1
        assert n_threads() == 4
    assert n_threads() == 8
    give(OWN)


def test_a_user_with_fewer_threads_keeps_them():
    give(1)
    with half_the_cores():
        assert n_threads() == 1
    assert n_threads() == 1
    give(OWN)


def test_the_last_of_two_threads_gives_the_number_back():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_thread():
            entered.set()
            assert leave.wait(300)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(300)
        assert n_threads() == 1
    assert n_threads() == 1  # the other is inside still
    leave.set()
    thread.join()
    assert n_threads() == OWN


@pytest.mark.parametrize("by_thread", [False, True])
def test_a_number_of_the_process_or_of_each_thread_comes_back(by_thread):
    numbers = _Numbers(by_thread)
    library = _Library(numbers)
    library.enter(1)

    def other():
        library.enter(2)
        seen.append(numbers.get_num_threads())
        library.leave(2)
        seen.append(numbers.get_num_threads())

    seen: list[int] = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert numbers.get_num_threads() == 1 and seen == ([2, 4] if by_thread else [1, 1])
    library.leave(1)
    assert numbers.get_num_threads() == 4


class _Numbers:
    """A library of threadpoolctl with 4 threads, a number that every thread has for itself or that all share."""

    def __init__(self, by_thread: bool) -> None:
        self.threading_layer = "openmp" if by_thread else "pthreads"
        self._state = threading.local() if by_thread else SimpleNamespace()

    def get_num_threads(self) -> int:
        return getattr(self._state, "number", 4)

    def set_num_threads(self, number: int) -> None:
        self._state.number = number


def test_many_threads_leave_nothing_behind():
    def enter():
        for _ in range(200):
            with one_thread(), half_the_cores():
                pass

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n_threads() == OWN


class _Watched:
    """NumPy, but for `matmul`, which notes how many threads it has."""

    def __init__(self, seen):
        self._seen = seen

    def __getattr__(self, name):
        return getattr(np, name)

    def matmul(self, *args, **kwargs):
        self._seen.append(n_threads())
        return np.matmul(*args, **kwargs)


@pytest.fixture
def captured() -> Trace:
    rng = np.random.default_rng(0)
    return Trace.from_arrays([*"abcde"], *(rng.standard_normal((3, 2, 4, 5, 8))))


@pytest.mark.parametrize(
    "ask",
    [
        lambda trace: trace.weights(0, 1),
        lambda trace: trace.scores(1, 3),
        lambda trace: trace.layer_weights(0),
        lambda trace: finder.heads_like(trace.head(0, 0)),
    ],
)
def test_a_heads_product_has_one_thread(monkeypatch, captured, ask):
    seen: list[int] = []
    monkeypatch.setattr(layer_scores, "np", _Watched(seen))
    ask(captured)
    assert seen and set(seen) == {1}


def test_a_head_that_fails_gives_the_number_back(monkeypatch, captured):
    def fail(*args, **kwargs):
        raise MemoryError

    watched = _Watched([])
    monkeypatch.setattr(watched, "matmul", fail, raising=False)
    monkeypatch.setattr(layer_scores, "np", watched)
    with pytest.raises(MemoryError):
        captured.weights(0, 0)
    assert n_threads() == OWN


def test_the_users_own_attention_keeps_the_users_threads():
    x = np.ones((4, 8))
    attention.scaled_dot_product_attention(x, x, x)
    assert n_threads() == OWN


@pytest.mark.parametrize("first", ["import torch; import attnviz", "import attnviz", "import numpy; import attnviz"])
def test_importing_and_computing_leave_the_users_number_alone(first):
    script = f"""
{first}
import os
from threadpoolctl import ThreadpoolController
trace = attnviz.Trace.from_arrays(["a", "b"], *[[[[[1.0, 2.0], [3.0, 4.0]]]]] * 3)
trace.weights(0, 0)
numbers = {{x.get_num_threads() for x in ThreadpoolController().lib_controllers if x.user_api == "blas"}}
print(numbers, os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{ {os.cpu_count()} } None"
