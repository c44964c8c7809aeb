"""What all tests share: tiny models, the two small real models, and how hypothesis behaves."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import tiny
from tests.progress import Progress, in_order

# Before torch is imported: threads that wait would otherwise spin, and a busy neighbour makes a pass many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Processes side by side share the cores: more threads than cores only get in each other's way.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers))))

# No deadline: a shared machine is slow at times. On CI the same examples each time, so that a failure can be repeated.
settings.register_profile("attnviz", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("attnviz")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function from a name in `tests.tiny.NAMES` to the folder of that model, built when first asked for.

    q and k are sharpened so that maps aren't flat; `sharpen=1.0` leaves them as the library makes them.
    """
    built: dict[tuple[str, float], Path] = {}

    def folder(name: str, sharpen: float = tiny.SHARP) -> Path:
        if (name, sharpen) not in built:
            built[name, sharpen] = tiny.build(name, tmp_path_factory.mktemp(name), sharpen=sharpen)
        return built[name, sharpen]

    return folder


@pytest.fixture(scope="session")
def shipped() -> Callable[..., Any]:
    """Return a function from the name of a small real model and "torch" or "numpy" to its engine, loaded once."""
    from attnviz.models.load.by_name import load

    return functools.cache(lambda name, engine="torch": load(name, engine=engine))


@pytest.fixture(scope="session")
def smollm2(shipped: Callable[..., Any]) -> Any:
    """Return the engine of SmolLM2-135M-Instruct: a decoder, 30 layers of 9 heads."""
    return shipped("smollm2")


@pytest.fixture(scope="session")
def minilm(shipped: Callable[..., Any]) -> Any:
    """Return the engine of all-MiniLM-L6-v2: an encoder, 6 layers of 12 heads."""
    return shipped("minilm")


@pytest.fixture
def load_once(shipped: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call of `attnviz.load` get the two small real models that are loaded already."""
    from attnviz.models.load import by_name as loading

    real = loading.load

    def load(name: Any, *, engine: str = "torch", progress: Any = None, **options: Any) -> Any:
        if name in ("smollm2", "minilm") and options in ({}, {"dtype": "float32", "revision": None}):
            return shipped(name, engine)
        return real(name, engine=engine, progress=progress, **options)

    monkeypatch.setattr(loading, "load", load)


@pytest.fixture(scope="session")
def engine_of(tiny_folder: Callable[..., Path]) -> Callable[..., Any]:
    """Return a function from the name of a tiny model to its engine, loaded once: for tests that leave it as it is."""
    from attnviz.models.load.by_name import load

    return functools.cache(lambda name, engine="torch": load(str(tiny_folder(name)), engine=engine))


@pytest.fixture(scope="session")
def pair(shipped: Callable[..., Any], engine_of: Callable[..., Any]) -> Callable[[str], tuple[Any, Any]]:
    """Return a function from the name of a small real model or a tiny one to its (torch engine, NumPy engine)."""

    def both(name: str) -> tuple[Any, Any]:
        get = shipped if name in ("smollm2", "minilm") else engine_of
        return get(name), get(name, "numpy")

    return both


def pytest_make_parametrize_id(val: Any) -> str | None:
    """Name switches by what is switched, in an order that is the same in every process; others as pytest does."""
    from attnviz.core.trace.switches import Switches

    if not isinstance(val, Switches):
        return None
    sets = [str(sorted(entries, key=str)) for entries in (val.ablate, val.forbid)]
    return f"causal={val.causal} scaled={val.scaled} temperature={val.temperature} off={sets[0]} forbid={sets[1]}"


def pytest_configure(config: pytest.Config) -> None:
    """Say in the process that reports what is done; its helpers print nothing."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put fast tests first, and leave out what is marked long unless the markers asked for name it."""
    items[:] = in_order(items)
    if "long" in config.getoption("markexpr"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
