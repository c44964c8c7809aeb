"""Models made at the same time by several threads get the weights that each gets alone."""

import threading

import numpy as np
import torch

import attnviz
from attnviz.models.load.building import building, passing

TEXT = "w1 w2 w3 w1 w2"


def test_models_made_at_the_same_time_are_what_each_is_alone(tiny_folder):
    names = {"untrained": "untrained", "llama": str(tiny_folder("llama")), "gpt2": str(tiny_folder("gpt2"))}
    alone = {name: attnviz.load(place).trace(TEXT).weights(1, 2) for name, place in names.items()}
    faults: list[str] = []
    start = threading.Barrier(6)
    random = torch.random.get_rng_state()

    def load(name: str, dtype: str) -> None:
        start.wait()
        for _ in range(4):
            engine = attnviz.load(names[name], dtype=dtype)
            if {weight.dtype for weight in engine.model.parameters()} != {getattr(torch, dtype)}:
                faults.append(f"{name} isn't in {dtype}")
            elif dtype == "float32" and np.abs(engine.trace(TEXT).weights(1, 2) - alone[name]).max() > 1e-6:
                faults.append(f"{name} has other weights")

    def guarded(name: str, dtype: str) -> None:
        try:
            load(name, dtype)
        except Exception as error:  # whatever it is, it is told below
            faults.append(f"{name} in {dtype}: {error!r}")

    threads = [
        threading.Thread(target=guarded, args=(name, dtype))
        for name, dtype in [*((name, "float32") for name in names), *((name, "float16") for name in names)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [] and torch.get_default_dtype() == torch.float32
    assert torch.equal(torch.random.get_rng_state(), random)


def test_no_pass_runs_while_a_model_of_another_type_is_made():
    order: list[str] = []
    inside, release = threading.Event(), threading.Event()

    def build() -> None:
        with building(torch.float16):
            order.append("built")

    with passing(), passing():  # a pass within a pass waits for nobody
        thread = threading.Thread(target=build)
        thread.start()
        with building():  # of the usual type: beside a pass
            order.append("beside")
        order.append("passed")
    thread.join()
    assert order[-1] == "built"

    def make() -> None:
        with building(torch.bfloat16):
            inside.set()
            release.wait()
            order.append("made")

    def run() -> None:
        with passing():
            order.append("ran")

    maker, runner = threading.Thread(target=make), threading.Thread(target=run)
    maker.start()
    inside.wait()
    runner.start()
    release.set()
    for each in (maker, runner):
        each.join()
    assert order[-2:] == ["made", "ran"]
