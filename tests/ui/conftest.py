"""The whole app without a browser: what a visitor can do in it, and how often the models ran."""

import base64
import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.state.common import TESTING_KEY
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.util import calc_hash

from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.shelf import Shelf
from attnviz.app.shell.visit import Visit
from attnviz.core.heads.battery import battery_texts
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.models.listen.torch_engine import TorchEngine
from tests.ui import address

APP = Path(__file__).parents[2] / "app.py"
SECONDS = 600  # a busy machine is slow, and no test is about that
WIDGETS = (
    "selectbox", "button_group", "number_input", "select_slider", "multiselect", "button", "text_input",
    "file_uploader", "toggle",
)  # fmt: skip


class Visitor:
    """A visitor's tab of the app: acts by the names of widgets, and reads what is drawn."""

    def __init__(self, *, page: str = "", **address: str) -> None:
        self.app = AppTest.from_file(APP, default_timeout=SECONDS)
        self.app.query_params.update(address)
        if page:
            self.app._page_hash = calc_hash(page)  # `switch_page` knows a page by its file's name before the first run
        self.app.run()

    def type(self, text: str) -> None:
        """Type a text and press Run."""
        self.app.text_area(key="draft").set_value(text)
        self.press("Run")

    def press(self, label: str) -> None:
        """Press the button with that label or key."""
        button = next(b for b in self.app.button if label in (b.label, b.key))
        button.click().run()

    def wait_for(self, key: str) -> None:
        """Run the page until it has that widget or chart, as the browser does while the page looks after long work."""
        end = time.monotonic() + SECONDS
        while not self.has(key) and time.monotonic() < end:
            time.sleep(0.05)
            self.app.run()
        assert self.has(key)

    def choose(self, key: str, value: Any) -> None:
        """Give the widget with that key a value, in a picker that takes new ones also one that isn't offered."""
        widget = self.widget(key)
        if key == "model" and value not in ("smollm2", "minilm", "untrained", self["model"]):
            widget.options.append(value)
        widget.set_value(value).run()

    def allow_again(self, label: str) -> None:
        """Click a forbidden look away by its label, which is worked out from the session, out of AppTest's reach."""
        pills = self.widget("allow-again")
        self.app.session_state[TESTING_KEY][pills.id] = lambda _: label
        pills.select(label).run()

    def widget(self, key: str) -> Any:
        """Return the widget with that key."""
        return next(w for kind in WIDGETS for w in self.app.get(kind) if w.key == key)

    def has(self, key: str) -> bool:
        """Return True if a widget or chart with that key is on the page."""
        return any(element.key == key for kind in (*WIDGETS, "plotly_chart") for element in self.app.get(kind))

    def __getitem__(self, name: str) -> Any:
        return self.app.session_state[name]

    @property
    def visit(self) -> Visit:
        return self.app.session_state["visit"]

    @property
    def name(self) -> str:
        return f"L{self['layer']} H{self['head']}"

    def next_words(self) -> dict[str, tuple[str, ...]]:
        """Return the likeliest next tokens as the page names them: as the model is, and with the switches."""
        (table,) = [part.proto.body for part in self.app.get("html") if "<table class=" in part.proto.body]
        rows = re.findall(r"<tr><th>([^<]*)</th><td>(.*?)</td>", table)
        return {unescape(label): tuple(re.findall(r"<span>([^<]*)</span>", bars)) for label, bars in rows}

    def says(self) -> str:
        """Return all sentences on the page, as they read without Markdown's backslashes."""
        kinds = ("markdown", "caption", "info", "error", "subheader")
        return "\n".join(text for kind in kinds for text in self.words(kind))

    def errors(self) -> list[str]:
        return self.words("error")

    def warnings(self) -> list[str]:
        return self.words("warning")

    def notes(self) -> list[str]:
        return self.words("info")

    def crashes(self) -> list[str]:
        """Return what is in red boxes with a traceback."""
        return [str(crash.value) for crash in self.app.exception]

    def chart(self, key: str) -> dict[str, Any]:
        """Return a chart as plotly's browser part gets it."""
        return json.loads(next(c for c in self.app.get("plotly_chart") if c.key == key).proto.spec)

    def drawn(self) -> np.ndarray:
        """Return the numbers of the large map, NaN where it draws none."""
        return _unpacked(self.chart("head-map")["data"][0]["z"])

    def words(self, kind: str) -> list[str]:
        """Return the sentences of one kind of element, as they read without Markdown's backslashes."""
        return [re.sub(r"\\([^A-Za-z0-9\s])", r"\1", str(element.value)) for element in self.app.get(kind)]

    def component(self, key: str) -> dict[str, Any]:
        """Return what the browser component with that key is told."""
        return json.loads(next(c for c in self.app.get("bidi_component") if c.key == key).proto.json)


def _unpacked(values: Any) -> np.ndarray:
    """Return an array from the way plotly packs it."""
    flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    return flat.reshape([int(n) for n in values["shape"].split(",")])


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """Let AppTest read what never changes once, as a server does, where it reads it with each run.

    These are the packages that are installed, searched for components, and the compiled pages.
    """
    scripts = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: scripts)
        yield


@pytest.fixture
def open_app(load_once: None, smollm2: Any, minilm: Any) -> Iterator[Callable[..., Visitor]]:
    """Return a function that opens the app at an address; the real models are there already."""
    _shelve(smollm2, minilm)
    yield Visitor
    _shelve(smollm2, minilm)


@pytest.fixture
def open_step(open_app: Callable[..., Visitor]) -> Callable[..., Visitor]:
    """Return a function that opens the page From scratch at a step, as its link does."""
    return lambda step, **address: open_app(page="scratch", step=step, **address)


def _shelve(*engines: Any) -> None:
    for engine in engines:
        cache.engines().get(ModelChoice(engine.info.name), lambda engine=engine: engine)


@dataclass(frozen=True)
class Passes:
    """The forward passes that ran: those of a visitor's text, and those of the reference texts behind head cards."""

    own: list[tuple[str, str, Switches]] = field(default_factory=list)  # model, text, switches
    reference: list[tuple[str, str, Switches]] = field(default_factory=list)


@pytest.fixture
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without a text that ran before, and leave none."""
    own: Shelf[Trace] = Shelf(cache.TRACE_BYTES, lambda trace: trace.nbytes)
    monkeypatch.setattr(cache, "traces", lambda: own)


@pytest.fixture
def passes(no_traces: None, monkeypatch: pytest.MonkeyPatch) -> Passes:
    """Return lists that grow with each forward pass."""
    found, now = Passes(), threading.local()
    references = {item.text for item in battery_texts()}
    trace, forward = TorchEngine.trace, TorchEngine._run

    def keep_text(engine: TorchEngine, text: str, **options: Any) -> Trace:
        now.text = text
        return trace(engine, text, **options)

    def count(engine: TorchEngine, tokens: Any, targets: Any, switches: Switches, on_layer: Any) -> Any:
        kind = found.reference if now.text in references else found.own
        kind.append((engine.info.name, now.text, switches))
        return forward(engine, tokens, targets, switches, on_layer)

    monkeypatch.setattr(TorchEngine, "trace", keep_text)
    monkeypatch.setattr(TorchEngine, "_run", count)
    return found


@pytest.fixture
def open_link(monkeypatch: pytest.MonkeyPatch) -> Callable[..., address.Visit]:
    """Return a function that opens a tab with an address and runs its page once."""
    return lambda **params: address.Visit(monkeypatch, params)
