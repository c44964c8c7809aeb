"""Arrays that a pass keeps: the same numbers, in blocks of their own where they are large."""

import numpy as np
import pytest
import torch

from attnviz.models.listen import store
from attnviz.models.listen.store import Store


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tokens", [3, 1000])  # below and above what is copied
def test_what_is_kept_stays_as_it_was(dtype, tokens, monkeypatch):
    monkeypatch.setattr(store, "BLOCK", 300_000)  # some arrays share a block, some begin a new one
    kept_in = Store()
    tensors = [torch.randn(9, tokens, 16).to(dtype).transpose(0, 1).contiguous().transpose(0, 1) for _ in range(5)]
    expected = [tensor.float().numpy().copy() for tensor in tensors]
    kept = [kept_in.keep(tensor) for tensor in tensors]
    if tokens == 1000:
        for tensor in tensors:
            tensor.zero_()  # what was copied doesn't change with its source
    for entry, numbers in zip(kept, expected, strict=True):
        array = entry.array()
        np.testing.assert_array_equal(array, numbers)
        assert array.dtype == np.float32 and not array.flags.writeable


def test_large_arrays_share_blocks(monkeypatch):
    monkeypatch.setattr(store, "BLOCK", 300_000)
    kept_in = Store()
    kept = [kept_in.keep(torch.ones(100_000)) for _ in range(4)]
    assert [entry.start for entry in kept] == [0, 100_000, 200_000, 0]
    assert kept[0].block is kept[2].block and kept[3].block is not kept[0].block
    assert len(kept_in.keep(torch.ones(400_000)).block) == 400_000  # larger than a block: one of its own


def test_memory_is_used_again_only_when_nobody_looks_at_it():
    spare = []
    array = Store(spare).keep(torch.full((100_000,), 7.0)).array()  # the store and its entry are gone, a view is left
    other = Store(spare).keep(torch.zeros(100_000)).array()
    assert spare == [] and not np.shares_memory(array, other) and (array == 7).all()
    address = array.ctypes.data
    del array
    assert [memory.ctypes.data for memory in spare] == [address]
    again = Store(spare).keep(torch.ones(100_000)).array()
    assert spare == [] and again.ctypes.data == address and (again == 1).all() and (other == 0).all()


def test_no_more_than_two_blocks_wait():
    spare = []
    kept = [Store(spare).keep(torch.ones(100_000)).array() for _ in range(4)]
    del kept
    assert len(spare) == 2
