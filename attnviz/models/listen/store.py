"""Where the arrays of a pass are kept, so that what stays doesn't lie between what goes.

A pass makes large temporary arrays. Were kept arrays allocated among them, even only NumPy's small headers, the holes
that the temporary ones leave would hold nothing larger, and a pass over 2,048 tokens would take up to 900 MB for 240 MB
of records (glibc 2.36). So arrays are copied into large blocks, and their headers are made when the pass is over. The
memory of blocks that nobody looks at any more is used again: fresh pages cost as much as the copies.
"""

import weakref
from typing import NamedTuple

import numpy as np
import torch

BLOCK = 2**24  # numbers, 64 MB: large enough that the system hands out pages of their own, used up or not
SPARE = 2  # blocks whose memory waits to be used again
SMALL = 2**16  # numbers below which an array stays where it is


class Kept(NamedTuple):
    """An array in a block: where it starts, and its shape."""

    block: np.ndarray
    start: int
    shape: tuple[int, ...]

    def array(self) -> np.ndarray:
        """Return the array, read-only float32, without a copy."""
        found = self.block[self.start : self.start + int(np.prod(self.shape))].reshape(self.shape)
        found.flags.writeable = False
        return found


class Store:
    """The arrays that one pass keeps.

    Args:
        spare: memory of blocks that are free, shared by the passes of one model; this class fills and empties the list.
    """

    def __init__(self, spare: list[np.ndarray] | None = None) -> None:
        self._spare = [] if spare is None else spare
        self._block = np.empty(0, np.float32)
        self._used = 0

    def keep(self, tensor: torch.Tensor) -> Kept:
        """Keep a tensor as float32; a small one without a copy where it is float32 on the CPU already."""
        n, shape = tensor.numel(), tuple(tensor.shape)
        if n < SMALL:
            return Kept(np.ravel(tensor.detach().to("cpu", torch.float32).numpy()), 0, shape)
        if self._used + n > len(self._block):
            self._block, self._used = self._new_block(n), 0
        start, self._used = self._used, self._used + n
        torch.from_numpy(self._block[start : self._used]).view(shape).copy_(tensor.detach())
        return Kept(self._block, start, shape)

    def _new_block(self, n: int) -> np.ndarray:
        """Return memory for n numbers or more, which goes to the spare ones when no array in it is left."""
        if n > BLOCK:
            return np.empty(n, np.float32)
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = np.empty(BLOCK, np.float32)
        block = np.frombuffer(memory.data, np.float32)  # of an array, views would hold the memory, not the block
        weakref.finalize(block, _give_back, memory, self._spare)
        return block


def _give_back(memory: np.ndarray, spare: list[np.ndarray]) -> None:
    if len(spare) < SPARE:
        spare.append(memory)
