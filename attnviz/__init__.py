"""attnviz shows what attention does: every head of a language model, on your own text.

`load` gives an engine, `engine.trace(text)` a `Trace`, and a trace the scores and weights of any head.
Importing attnviz is quick: torch comes with the first `load`, streamlit only with the app.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.core.generation.step import Step
    from attnviz.core.trace.records import Token
    from attnviz.core.trace.switches import Switches
    from attnviz.core.trace.trace import Trace
    from attnviz.models.load.by_name import load

__version__ = "0.1.0"
__all__ = ["Step", "Switches", "Token", "Trace", "load"]

_HOMES = {
    "Step": "attnviz.core.generation.step",
    "Switches": "attnviz.core.trace.switches",
    "Token": "attnviz.core.trace.trace",
    "Trace": "attnviz.core.trace.trace",
    "load": "attnviz.models.load.by_name",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attnviz' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
