"""The example notebook: its code cells run one after the other in one namespace, as Jupyter runs them."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

FILE = Path(__file__).resolve().parents[1] / "assets" / "attention.ipynb"
CELLS = json.loads(FILE.read_text(encoding="utf-8"))["cells"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return what its last line is worth if that is an expression, as Jupyter shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(FILE), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(FILE), "eval"), names) if last else None


@pytest.fixture(scope="module")
def ran() -> tuple[dict[str, Any], list[Any]]:
    """Return the names after the last cell, and what each cell shows."""
    names: dict[str, Any] = {}
    shown = [run_cell("".join(cell["source"]), names) for cell in CELLS if cell["cell_type"] == "code"]
    return names, shown


def test_no_outputs_are_stored():
    codes = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert 10 <= len(codes) <= 14 and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)


def test_it_runs_and_shows_what_its_text_says(ran):
    names, shown = ran
    row = next(value for value in shown if isinstance(value, dict))
    assert row["·car"] == max(row.values()) and row["·car"] == pytest.approx(0.81, abs=0.01)
    assert sum(isinstance(value, go.Figure) for value in shown) == 2
    pages = [
        value._repr_html_() for value in shown if hasattr(value, "_repr_html_") and not isinstance(value, go.Figure)
    ]
    assert len(pages) == 2 and all("<svg" in page for page in pages)
    best = next(value for value in shown if isinstance(value, list))
    assert {(layer, head) for layer, head, _ in best} >= {(18, 6)}
    assert np.abs(names["later"]).max() > 0 and names["table"].count("\n") == 1 + 11 * 11
    assert names["name"] == "attnviz-smollm2-L13-H8-mary-bought-a-car.csv"
    np.testing.assert_allclose(names["captured"].weights(1, 3).sum(axis=1), 1, atol=1e-6)
