"""The rooms of the house as a table: who may import whom, read from the syntax tree, and how long things may be."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from tests.cases import case
from tests.code_lines import FUNCTION, function_lengths, tenth_longest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("app.py"), *ROOT.glob("attnviz/**/*.py")])

PAGES = {path.parent.name for path in ROOT.glob("attnviz/app/*/page.py")}
# room -> the other rooms it may import; a module is in the longest of these names that its own begins with
MAY_IMPORT = {
    "app": {"attnviz.app.pages", "attnviz.app.guide", "attnviz.app.show", "attnviz.app.shell"},  # app.py
    "attnviz": {"attnviz.core", "attnviz.models"},  # what `import attnviz` gives
    "attnviz.core": set(),
    "attnviz.figures": {"attnviz.core"},
    "attnviz.models": {"attnviz.core"},
    "attnviz.cli": {"attnviz", "attnviz.core", "attnviz.figures", "attnviz.models"},
    "attnviz.app": {"attnviz.figures"},
    "attnviz.app.components": {"attnviz.core", "attnviz.figures"},
    "attnviz.app.shell": {"attnviz.core", "attnviz.figures", "attnviz.models", "attnviz.app.components"},
    "attnviz.app.show": {"attnviz", "attnviz.core", "attnviz.figures", "attnviz.models"}
    | {"attnviz.app.components", "attnviz.app.shell"},
    "attnviz.app.guide": {"attnviz.app.components", "attnviz.app.shell"},
    "attnviz.app.pages": {"attnviz.app", "attnviz.app.shell", *(f"attnviz.app.{page}" for page in PAGES)},
} | {
    f"attnviz.app.{page}": {"attnviz", "attnviz.core", "attnviz.figures", "attnviz.models"}
    | {"attnviz.app.components", "attnviz.app.shell", "attnviz.app.show"}
    for page in PAGES
}
# library -> the only rooms that may import it
LIVES_IN = {
    "streamlit": ("app", "attnviz.app"),
    "plotly": ("attnviz.figures",),
    "torch": ("attnviz.models",),
    "transformers": ("attnviz.models",),
}
# modules of core that may import one library more, each for what it is there for
CORE_ALSO = {"attnviz.core.threads": {"threadpoolctl"}}
# packages and modules through which outsiders import what other modules make
DOORS = {
    "attnviz",
    "attnviz.figures",
    "attnviz.core.attention",
    "attnviz.core.blockwise",
    "attnviz.core.export",
    "attnviz.core.heads",
    "attnviz.core.text_scores",
    "attnviz.core.trace",
}
# file names that stand in the folder of every page
OF_EVERY_PAGE = {"__init__.py", "page.py", "fields.py", "texts.py", "scenes.py", "pictures.py"}
LINES = {"app": 60, "page": 80}
MODULE_LINES = 350
FUNCTION_LINES = 60
NINE_IN_TEN = 20  # lines of code that nine functions in ten of a room don't exceed
MOST_PARAMETERS = 8
# arrays captured elsewhere, settings of writing as transformers names them, options of a command
MAY_TAKE_MORE = {"from_arrays", "generate", "heatmap"}


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
    """Return the room of a module of ours: `attnviz.core.trace` is in "attnviz.core", `attnviz.load` in "attnviz"."""
    if module == "attnviz.__main__":
        return "attnviz.cli"
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next(name for name in names if name in MAY_IMPORT)


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
        elif top in LIVES_IN and not here.startswith(LIVES_IN[top]):
            complaints.append(f"{module} ({here}) imports {name}, which belongs in {', '.join(LIVES_IN[top])}")
        elif here == "attnviz.core" and top not in sys.stdlib_module_names | {"numpy"} | CORE_ALSO.get(module, set()):
            complaints.append(f"{module} imports {name}; core has NumPy and the standard library")
    return complaints


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return every group of modules that import each other in a circle."""
    reach = {module: _reached(imports, module) for module in imports}
    groups = {frozenset(other for other in reach[module] if module in reach.get(other, ())) for module in imports}
    return sorted(sorted(group) for group in groups if group)


def _reached(imports: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports.get(module, ())
    return found


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name in ("import_module", "__import__")


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(path: Path) -> str:
    return _module(path) if path.name == "__init__.py" else _module(path).rpartition(".")[0]


MODULES = {_module(path): path for path in FILES}


@cache
def _makes(module: str) -> set[str]:
    """Return the names that a module makes itself."""
    tree = ast.parse(MODULES[module].read_text())
    made = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTION | ast.ClassDef)}
    return made | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _home(name: str) -> str:
    """Return the module that a full name of ours leads to."""
    return name if name in MODULES else name.rpartition(".")[0]


def _functions(path: Path) -> list[FUNCTION]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTION)]


def _n_parameters(function: FUNCTION) -> int:
    given = function.args
    return len(given.posonlyargs + given.args + given.kwonlyargs) + bool(given.vararg) + bool(given.kwarg)


def test_files_import_only_from_the_rooms_below():
    complaints = []
    for path in FILES:
        complaints += forbidden_imports(path.read_text(), _module(path), is_package=path.name == "__init__.py")
    assert complaints == []


def test_no_modules_import_each_other_in_a_circle():
    imports = {}
    for module, path in MODULES.items():
        names = {_home(name) for name in imported_names(path.read_text(), _package(path)) if name.startswith("attnviz")}
        imports[module] = {name for name in names if name in MODULES} - {module}
    assert circles(imports) == []


def test_names_are_imported_from_where_they_are_made():
    strangers = []
    for module, path in MODULES.items():
        for name in imported_names(path.read_text(), _package(path)):
            home = _home(name)
            if home not in MODULES or name in MODULES or home in ("attnviz", "attnviz.figures"):
                continue
            if home in DOORS and module not in DOORS:
                strangers.append(f"{module} goes through the door {home}")
            if home not in DOORS and name.rpartition(".")[2] not in _makes(home):
                strangers.append(f"{module} imports {name}")
    assert strangers == []


def test_a_page_is_named_in_the_list_of_pages_and_nowhere_else():
    named = {page: {f"attnviz.app.{page}"} for page in PAGES}
    for path in FILES:
        here = _module(path)
        for page in PAGES - {here.split(".")[2] if here.startswith("attnviz.app.") else ""}:
            if any(name.startswith(f"attnviz.app.{page}") for name in imported_names(path.read_text(), _package(path))):
                named[page].add(here)
    assert len(PAGES) > 1
    assert named == {page: {f"attnviz.app.{page}", "attnviz.app.pages"} for page in PAGES}


def test_file_names_tell_rooms_apart():
    names = Counter(path.name for path in FILES if path.name not in OF_EVERY_PAGE and _module(path) not in DOORS)
    assert {name: n for name, n in names.items() if n > 1} == {}


def test_the_checker_catches():
    for module, source in (
        ("attnviz.core.trace.trace", "import torch"),
        ("attnviz.core.trace.trace", "import scipy.special"),
        ("attnviz.core.trace.trace", "from threadpoolctl import ThreadpoolController"),
        ("attnviz.core.threads", "import scipy.special"),
        ("attnviz.core.trace.trace", "from attnviz.models.load import load"),
        ("attnviz.core.threads", "from .. import models"),
        ("attnviz.core.trace.trace", "from attnviz import load"),
        ("attnviz.core.trace.trace", "def later():\n    from ...figures.theme import INDIGO"),
        ("attnviz.models.load", "import streamlit as st"),
        ("attnviz.models.load", "from attnviz.figures import theme"),
        ("attnviz.figures.maps", "import torch.nn"),
        ("attnviz.figures.maps", "import importlib\nimportlib.import_module('attnviz.models.load')"),
        ("attnviz.app.shell.cache", "from transformers import AutoModel"),
        ("attnviz.app.shell.cache", "import plotly.graph_objects as go"),
        ("attnviz.app.shell.cache", "from attnviz.app.explore import page"),
        ("attnviz.app.shell.cache", "from attnviz.app.show import charts"),
        ("attnviz.app.show.charts", "from attnviz.app.talk.buttons import buttons"),
        ("attnviz.app.talk.page", "from attnviz.app.explore.fields import FIELDS"),
        ("attnviz.app.talk.page", "__import__('plotly')"),
        ("attnviz.cli", "import streamlit"),
        ("attnviz.__main__", "from attnviz.app.shell import address"),
        ("app", "from attnviz.core.trace import Trace"),
        ("app", "from attnviz.app.talk.buttons import buttons"),
        ("attnviz.app.shell.cache", "import app"),
    ):
        with case((module, source)):
            assert len(forbidden_imports(source, module)) == 1
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_the_checker_lets_pass():
    for module, source in (
        (
            "attnviz.core.trace.trace",
            "import math\nimport numpy as np\nfrom .head import Head\nfrom attnviz.core import heads",
        ),
        ("attnviz.core.threads", "from threadpoolctl import ThreadpoolController"),
        ("attnviz.models.load", "import torch\nfrom attnviz.core.trace import Trace\nfrom . import catalogue"),
        ("attnviz.figures.maps", "import numpy\nimport plotly.graph_objects as go\nfrom ..core import heads"),
        ("attnviz.app.shell.cache", "import streamlit\nfrom attnviz.models.load import load"),
        ("attnviz.app.cost.page", "import attnviz\nimport streamlit as st\nfrom attnviz.app.show import charts"),
        ("attnviz.cli", "import typer\nfrom attnviz.models.load import load"),
        ("app", "import streamlit as st\nfrom attnviz.app.shell import address"),
    ):
        with case((module, source)):
            assert forbidden_imports(source, module) == []
    assert circles({"a": {"b"}, "b": set()}) == []


def test_files_and_functions_fit_a_reader():
    for path in FILES:
        with case(path):
            n_lines = len(path.read_text().splitlines())
            assert n_lines <= LINES.get(path.stem, MODULE_LINES)
            functions = _functions(path)
            lengths = function_lengths(path.read_text())
            assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES} == {}
            taken = {function.name: _n_parameters(function) for function in functions}
            assert {name: n for name, n in taken.items() if n > MOST_PARAMETERS and name not in MAY_TAKE_MORE} == {}


def test_nine_functions_in_ten_are_short():
    by_room: dict[str, list[int]] = {}
    for path in FILES:
        by_room.setdefault(room(_module(path)), []).extend(function_lengths(path.read_text()).values())
    assert {name: n for name, n in by_room.items() if tenth_longest(n) > NINE_IN_TEN} == {}


def test_lines_are_counted_without_the_docstring():
    source = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    # why\n\n    x = 1\n    return x\n'
    assert function_lengths(source) == {"f:1": 5}


def test_importing_attnviz_brings_no_heavy_library():
    script = "import sys, attnviz; print(*{'torch', 'transformers', 'streamlit', 'plotly'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
