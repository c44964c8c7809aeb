"""The five ways work out the same attention; a run beside the app measures, leaves out what is too large, and stops."""

import os
import threading
import time

import numpy as np
import psutil
import pytest

from attnviz.core.cost.measurements import WAYS, expected_bytes
from attnviz.models.measure import timing
from attnviz.models.measure.timing import Run, measure, way_of


def begin(**options):
    """Return a run, and the thread in which it measures."""
    run = Run(**options)
    thread = threading.Thread(target=run.measure)
    thread.start()
    return run, thread


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_causal_attention(way):
    found = np.asarray(way_of(way, 150)())
    q, k, v = np.random.default_rng(0).standard_normal((3, 150, 64)).astype(np.float32).astype(np.float64)
    for query in (0, 1, 77, 149):  # a plain loop over queries
        exps = np.exp(k[: query + 1] @ q[query] / 8)
        np.testing.assert_allclose(found[query], exps @ v[: query + 1] / exps.sum(), atol=1e-5)


def test_there_is_no_other_way():
    with pytest.raises(ValueError, match="got 'cuda'"):
        way_of("cuda", 8)


def test_a_whole_matrix_is_seen_in_the_memory_and_stays_below_what_is_reserved():
    whole, blocks = measure("numpy", 2048), measure("numpy_blocks", 2048)
    matrix = 4 * 2048**2
    assert 2 * matrix < whole.peak_bytes < expected_bytes("numpy", 2048)
    assert blocks.peak_bytes < whole.peak_bytes / 4
    assert whole.seconds > 0


def test_a_run_measures_all_ways_and_names_what_could_need_more_than_the_limit():
    run = Run(sizes=(128, 256, 2048), limit=expected_bytes("numpy_blocks", 256))
    run.measure()
    assert run.state == "done" and run.done == (5 * (128 + 256 + 2048),) * 2
    assert [(m.way, m.tokens) for m in run.results] == [(way, s) for s in (128, 256) for way in WAYS]
    assert all(m.seconds > 0 for m in run.results)
    assert "PyTorch" in run.machine
    assert {(way, tokens) for way, tokens, _ in run.skipped} == {(way, 2048) for way in WAYS}
    assert all(needed > run.limit for _, _, needed in run.skipped)


def test_stopping_ends_the_process_and_keeps_what_there_is():
    run, thread = begin(sizes=(128, 8192, 8192, 8192))
    while not run.results:
        assert thread.is_alive()
        time.sleep(0.05)
    run.stop()
    thread.join()
    assert run.state == "stopped" and 0 < len(run.results) < 20
    assert not psutil.pid_exists(run._process.pid)


def test_two_runs_wait_for_each_other_and_a_waiting_one_can_be_stopped():
    (first, one), (second, two), (third, three) = (begin(sizes=(128,)) for _ in range(3))
    second.stop()
    two.join()
    assert second.state == "stopped" and second.results == []
    for run, thread in ((first, one), (third, three)):
        thread.join()
        assert run.state == "done" and len(run.results) == 5


def test_whoever_looks_can_end_a_run():
    run = Run(sizes=(128, 8192))

    def look():
        if run.results:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run.measure(look)
    assert run.state == "stopped" and len(run.results) == 1
    assert not psutil.pid_exists(run._process.pid)


def test_a_process_that_ends_early_is_a_failed_run(monkeypatch):
    monkeypatch.setattr(timing.sys, "executable", "/bin/false" if os.path.exists("/bin/false") else "/usr/bin/false")
    run = Run(sizes=(128,))
    run.measure()
    assert run.state == "failed" and run.results == []
