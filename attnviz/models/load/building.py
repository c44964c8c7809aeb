"""One model is built at a time, and none while a pass runs that it could disturb. Uses torch.

While transformers makes a model it changes what holds for the whole process: torch's default type, how weights are
drawn, the random numbers. Two at once would get weights of neither, without a word.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

_one = threading.RLock()  # held while a model is made
_here = threading.local()  # how many passes of this thread are one in another
_turn = threading.Condition()  # guards the two below
_passes = 0  # that run now
_others = 0  # models of another type that are made or wait for their turn: no pass begins


@contextmanager
def building(dtype: torch.dtype = torch.float32) -> Iterator[None]:
    """Make a model inside the block, alone; random numbers go on afterwards where they were.

    Args:
        dtype: of its weights. Another one than float32 becomes torch's default for as long as it takes, and passes of
            other models would compute with it: they end first, and others wait.
    """
    with nullcontext() if dtype == torch.float32 else _no_pass(), _one, torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def passing() -> Iterator[None]:
    """Run a model inside the block; a pass within a pass of the same thread waits for nobody."""
    global _passes
    within = getattr(_here, "within", 0)
    with _turn:
        if not within:
            _turn.wait_for(lambda: not _others)
        _passes += 1
    _here.within = within + 1
    try:
        yield
    finally:
        _here.within = within
        with _turn:
            _passes -= 1
            _turn.notify_all()


@contextmanager
def _no_pass() -> Iterator[None]:
    global _others
    with _turn:
        _others += 1
        _turn.wait_for(lambda: not _passes)
    try:
        yield
    finally:
        with _turn:
            _others -= 1
            _turn.notify_all()
