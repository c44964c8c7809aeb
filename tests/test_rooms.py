"""Who may import whom, read from the syntax tree, and how long files and functions may be."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

from tests.cases import case

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("app.py"), *ROOT.glob("attnviz/**/*.py")])

# room -> the other rooms it may import; "public" is attnviz/__init__.py
MAY_IMPORT = {
    "app": {"ui"},
    "pages": {"ui", "figures", "core"},
    "ui": {"models", "figures", "core", "public"},
    "cli": {"models", "figures", "core", "public"},
    "public": {"models", "core"},
    "models": {"core"},
    "figures": {"core"},
    "core": set(),
}
# library -> the only rooms that may import it
LIVES_IN = {
    "streamlit": {"app", "ui", "pages"},
    "plotly": {"figures"},
    "torch": {"models"},
    "transformers": {"models"},
}
# modules of core that may import one library more, each for what it is there for
CORE_ALSO = {"attnviz.core.threads": {"threadpoolctl"}}
LINES = {"app": 60, "pages": 80}
FUNCTION_LINES = 60
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def imported_names(source: str, package: str) -> Iterator[str]:
    """Yield the full name of everything a source imports, inside functions and by importlib too.

    Args:
        source: the text of a module.
        package: the package it is in, against which relative imports are read.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from (resolve_name(name, package) for name in names)


def room(module: str) -> str:
    """Return the room of a module of ours: `attnviz.core.trace` is in "core", `attnviz.load` is "public"."""
    if module == "app":
        return "app"
    part = (module.split(".") + [""])[1]
    if part == "__main__":
        return "cli"
    return part if part in MAY_IMPORT else "public"


def forbidden_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return a sentence for each import that breaks a rule, [] when none does."""
    here = room(module)
    package = module if is_package else module.rpartition(".")[0]
    complaints = []
    for name in sorted(set(imported_names(source, package))):
        top = name.split(".")[0]
        if top in ("attnviz", "app"):
            there = room(name)
            if there != here and there not in MAY_IMPORT[here]:
                complaints.append(f"{module} ({here}) imports {name} ({there})")
        elif here not in LIVES_IN.get(top, {here}):
            complaints.append(f"{module} ({here}) imports {name}, which belongs in {', '.join(sorted(LIVES_IN[top]))}")
        elif here == "core" and top not in sys.stdlib_module_names | {"numpy"} | CORE_ALSO.get(module, set()):
            complaints.append(f"{module} (core) imports {name}; core has NumPy and the standard library")
    return complaints


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name in ("import_module", "__import__")


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _lines_without_docstring(function: FUNCTION) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring_lines = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - docstring_lines


def test_files_import_only_from_the_rooms_below():
    complaints = []
    for path in FILES:
        complaints += forbidden_imports(path.read_text(), _module(path), is_package=path.name == "__init__.py")
    assert complaints == []


def test_every_file_has_a_room():
    modules = {_module(path) for path in FILES} - {"attnviz"}
    assert len(modules) > 100
    rooms = {name: name.removeprefix("attnviz.").split(".")[0] for name in modules}
    assert {name: there for name, there in rooms.items() if there not in {*MAY_IMPORT, "__main__"}} == {}


def test_the_checker_catches():
    for module, source in (
        ("attnviz.core.trace", "import torch"),
        ("attnviz.core.trace", "import scipy.special"),
        ("attnviz.core.trace", "from threadpoolctl import ThreadpoolController"),
        ("attnviz.core.threads", "import scipy.special"),
        ("attnviz.core.trace", "from attnviz.models.load import load"),
        ("attnviz.core.trace", "from .. import models"),
        ("attnviz.core.trace", "from attnviz import load"),
        ("attnviz.core.trace", "def later():\n    from ..figures.theme import INDIGO"),
        ("attnviz.models.load", "import streamlit as st"),
        ("attnviz.models.load", "from attnviz.figures import theme"),
        ("attnviz.figures.maps", "import torch.nn"),
        ("attnviz.figures.maps", "import importlib\nimportlib.import_module('attnviz.models.load')"),
        ("attnviz.ui.cache", "from transformers import AutoModel"),
        ("attnviz.ui.cache", "import plotly.graph_objects as go"),
        ("attnviz.ui.cache", "from attnviz.pages import heads"),
        ("attnviz.pages.heads", "from attnviz.models import catalogue"),
        ("attnviz.pages.heads", "from attnviz import load"),
        ("attnviz.pages.heads", "__import__('plotly')"),
        ("attnviz.cli", "import streamlit"),
        ("attnviz.__main__", "from attnviz.ui import state"),
        ("app", "from attnviz.core.trace import Trace"),
        ("attnviz.ui.cache", "import app"),
    ):
        with case((module, source)):
            assert len(forbidden_imports(source, module)) == 1


def test_the_checker_lets_pass():
    for module, source in (
        (
            "attnviz.core.trace",
            "import math\nimport numpy as np\nfrom .masks import Mask\nfrom attnviz.core import heads",
        ),
        ("attnviz.core.threads", "from threadpoolctl import ThreadpoolController"),
        ("attnviz.models.load", "import torch\nfrom attnviz.core.trace import Trace\nfrom . import catalogue"),
        ("attnviz.figures.maps", "import numpy\nimport plotly.graph_objects as go\nfrom ..core import heads"),
        ("attnviz.ui.cache", "import streamlit\nimport attnviz\nfrom attnviz.models.load import load"),
        (
            "attnviz.pages.heads",
            "import streamlit as st\nfrom attnviz.ui import cache\nfrom attnviz.figures import maps",
        ),
        ("attnviz.cli", "import typer\nfrom attnviz.models.load import load"),
        ("app", "import streamlit as st\nfrom attnviz.ui import state"),
    ):
        with case((module, source)):
            assert forbidden_imports(source, module) == []


def test_files_and_functions_fit_a_reader():
    for path in FILES:
        with case(path):
            source = path.read_text()
            assert len(source.splitlines()) <= LINES.get(room(_module(path)), float("inf"))
            functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTION)]
            lengths = {function.name: _lines_without_docstring(function) for function in functions}
            assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES} == {}


def test_lines_are_counted_without_the_docstring():
    function = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    return x').body[0]
    assert _lines_without_docstring(function) == 3


def test_importing_attnviz_brings_no_heavy_library():
    script = "import sys, attnviz; print(*{'torch', 'transformers', 'streamlit', 'plotly'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
