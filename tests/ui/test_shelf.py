"""The store that visitors share: made once, whoever asks; the longest unused goes first."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.app.shell.shelf import Shelf

THREADS = 32
SECONDS = 120  # a wait that long is a deadlock


class Stopped(BaseException):
    """What streamlit raises to end a script in the middle isn't an Exception either."""


def kept(shelf: Shelf, keys: str) -> str:
    """Return the keys that still lie on the shelf, without making anything and in the order asked for."""
    return "".join(key for key in keys if shelf.peek(key) is not None)


def test_many_threads_get_one_thing_a_key() -> None:
    shelf: Shelf[object] = Shelf(limit=10)
    made: list[int] = []
    together = threading.Barrier(THREADS)

    def make(key: int) -> object:
        made.append(key)
        time.sleep(0.02)  # long enough that all others ask meanwhile
        return object()

    def visitor(number: int) -> tuple[int, object]:
        together.wait(SECONDS)
        return number % 4, shelf.get(number % 4, lambda: make(number % 4))

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(visitor, range(THREADS)))
    assert sorted(made) == [0, 1, 2, 3]
    assert len({id(thing) for _, thing in found}) == 4
    assert all(thing is shelf.peek(key) for key, thing in found)
    assert shelf.n_made == 4


def test_two_keys_are_made_at_the_same_time() -> None:
    shelf: Shelf[str] = Shelf(limit=10)
    both_are_in = threading.Barrier(2)

    def make(key: str) -> str:
        both_are_in.wait(SECONDS)  # broken if the second make waits for the first
        return key

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda key: shelf.get(key, lambda: make(key)), "ab")) == ["a", "b"]


@pytest.mark.parametrize("error", [Stopped, ValueError])
def test_after_an_interrupted_make_the_next_who_waits_tries(error: type[BaseException]) -> None:
    shelf: Shelf[str] = Shelf(limit=10)
    inside, go_on, attempts = threading.Event(), threading.Event(), []

    def make() -> str:
        attempts.append(threading.get_ident())
        if len(attempts) == 1:
            inside.set()
            go_on.wait(SECONDS)
            raise error
        return "made"

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(shelf.get, "key", make)
        assert inside.wait(SECONDS) and shelf.is_making("key")
        others = [pool.submit(shelf.get, "key", make) for _ in range(2)]
        go_on.set()
        with pytest.raises(error):
            first.result(SECONDS)
        assert [other.result(SECONDS) for other in others] == ["made", "made"]
    assert (len(attempts), shelf.n_made, len(shelf)) == (2, 1, 1)
    assert not shelf.is_making("key")


def test_the_longest_unused_goes_first() -> None:
    shelf: Shelf[str] = Shelf(limit=2)
    for key in "abac":  # a is used again before c comes
        shelf.get(key, lambda: "thing")
    assert kept(shelf, "abc") == "ac"
    shelf.peek("a")
    shelf.get("d", lambda: "thing")
    assert kept(shelf, "acd") == "ad"


def test_a_limit_in_bytes_counts_what_things_weigh_and_keeps_the_newest() -> None:
    shelf: Shelf[bytes] = Shelf(limit=100, size_of=len)
    for key, size in (("a", 40), ("b", 50), ("c", 20)):
        shelf.get(key, lambda size=size: bytes(size))
    assert kept(shelf, "abc") == "bc"
    shelf.get("heavy", lambda: bytes(500))
    assert len(shelf) == 1 and shelf.peek("heavy") is not None
    shelf.get("d", lambda: bytes(100))
    assert len(shelf) == 1 and shelf.peek("d") is not None


def test_room_is_cleared_before_making() -> None:
    shelf: Shelf[str] = Shelf(limit=3)
    for key in "abc":
        shelf.get(key, lambda: "thing")
    assert shelf.get("d", lambda: kept(shelf, "abc"), room=1) == "bc"
    assert len(shelf) == 3


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 6)), max_size=40), st.integers(1, 12))
def test_it_keeps_what_a_plain_list_would_keep(asked: list[tuple[str, int]], limit: int) -> None:
    shelf: Shelf[int] = Shelf(limit, size_of=lambda size: size)
    expected: list[tuple[str, int]] = []  # longest unused first
    for key, size in asked:
        found = next((entry for entry in expected if entry[0] == key), (key, size))
        assert shelf.get(key, _giving(size)) == found[1]
        expected = [entry for entry in expected if entry[0] != key] + [found]
        while len(expected) > 1 and sum(size for _, size in expected) > limit:
            expected.pop(0)
        assert len(shelf) == len(expected)
    assert kept(shelf, "abcdef") == "".join(sorted(key for key, _ in expected))


def _giving(value: int) -> Callable[[], int]:
    return lambda: value
