"""From the text box to the large map: how many of our functions stand on one another, and who reads the session."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from streamlit.runtime.state.session_state_proxy import SessionStateProxy

from attnviz.app.explore import large_map
from tests.ui.conftest import APP, Visitor

Open = Callable[..., Visitor]
OURS = (str(APP), str(APP.parent / "attnviz"))
MOST_FRAMES = 12  # while the numbers are made, and while the figure is
LONG = " ".join(f"word{i} and" for i in range(130))
VIEWS: list[dict[str, str]] = [
    {},
    {"query": "9", "key": "3", "forbid": "13.8.9.3", "colours": "without_first"},
    {"shows": "words"},
    {"shows": "written", "view": "difference", "temperature": "2"},
    {"model": "minilm", "shows": "rollout", "layer": "2", "special": "off"},
    {"text": LONG, "zoom": "48"},
    {"text": LONG},
]


def stack(frame: FrameType | None) -> list[str]:
    """Return our functions that stand on one another, the outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return found[::-1]


@contextmanager
def watched() -> Iterator[dict[str, list[str]]]:
    """Keep the deepest stack of each function of the large map, by its name, in all threads that start meanwhile."""
    deepest: dict[str, list[str]] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            functions = stack(frame)
            for name in ("shown.shown_map", "shown_map.shown_figure"):
                if name in functions and len(functions) > len(deepest.get(name, [])):
                    deepest[name] = functions

    threading.setprofile(look)
    try:
        yield deepest
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


@pytest.mark.parametrize("address", VIEWS, ids=lambda address: "-".join(address) or "landing")
def test_few_functions_stand_between_the_text_and_its_picture(open_app: Open, address: dict[str, str]) -> None:
    visitor = open_app(**address)
    with watched() as deepest:
        visitor.type("The cat sat on the mat because it was warm" if "zoom" not in address else LONG + " again")
    assert visitor.crashes() == [] and visitor.has("head-map")
    assert set(deepest) == {"shown.shown_map", "shown_map.shown_figure"}
    assert len(deepest["shown_map.shown_figure"]) <= MOST_FRAMES, deepest["shown_map.shown_figure"]
    if address.get("shows") != "rollout":  # which walks through all layers
        assert len(deepest["shown.shown_map"]) <= MOST_FRAMES, deepest["shown.shown_map"]


@pytest.mark.parametrize("address", VIEWS, ids=lambda address: "-".join(address) or "landing")
def test_below_the_page_nothing_reads_the_session(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, address: dict[str, str]
) -> None:
    below: list[str] = []
    reads: list[tuple[str, str]] = []

    def entered(name: str) -> Callable[..., Any]:
        function = getattr(large_map, name)

        def enter(*arguments: Any, **options: Any) -> Any:
            below.append(name)
            made = function(*arguments, **options)
            below.append("")
            return made

        return enter

    def reading(name: str) -> Callable[..., Any]:
        method = getattr(SessionStateProxy, name)

        def read(session: SessionStateProxy, key: str) -> Any:
            if below and below[-1]:
                reads.append((below[-1], key))
            return method(session, key)

        return read

    for name in ("shown_map", "shown_figure"):
        monkeypatch.setattr(large_map, name, entered(name))
    for name in ("__getitem__", "__getattr__"):
        monkeypatch.setattr(SessionStateProxy, name, reading(name))
    visitor = open_app(**address)
    assert visitor.crashes() == [] and visitor.has("head-map")
    assert below == ["shown_map", "", "shown_figure", ""] and reads == []
