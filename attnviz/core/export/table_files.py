"""The table behind a picture as a file: CSV, JSON, NPZ, each with what says where the numbers come from. NumPy only."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.export.head_files import npz_entry

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
"""Columns of one length by their names: numbers, where NaN or None is an empty cell, or text."""


def table_csv(columns: Columns, about: Mapping[str, Any]) -> str:
    """Return a line for each row; the last column, "about", holds JSON in the first line and nothing in the others.

    >>> print(table_csv({"word": ["a", "b"], "weight": [0.25, float("nan")]}, {"model": "m"}), end="")
    word,weight,about
    a,0.25,"{""model"": ""m""}"
    b,,
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*columns, "about"])
    said = json.dumps(dict(about), ensure_ascii=False)
    for row in zip(*map(_values, columns.values()), strict=True):
        writer.writerow(["" if value is None else value for value in (*row, said)])
        said = ""
    return table.getvalue()


def table_json(columns: Columns, about: Mapping[str, Any]) -> str:
    r"""Return one JSON object: what `about` says, and "columns" with a list for each name; an empty cell is null.

    >>> table_json({"weight": [0.25, float("nan")]}, {"model": "m"})
    '{"model": "m", "columns": {"weight": [0.25, null]}}\n'
    """
    lists = {name: _values(values) for name, values in columns.items()}
    return json.dumps(dict(about) | {"columns": lists}, ensure_ascii=False) + "\n"


def table_npz(columns: Columns, about: Mapping[str, Any]) -> bytes:
    """Return a compressed NPZ file, which `numpy.load` reads without pickle.

    It holds column_0, column_1 and so on (numbers with NaN for an empty cell, or text), their names as "names", and
    each entry of `about` under its own name; what isn't text or a number there is JSON.
    """
    arrays = {f"column_{place}": _array(values) for place, values in enumerate(columns.values())}
    arrays |= {"names": np.array(list(columns))} | {name: npz_entry(value) for name, value in about.items()}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _values(column: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return a column as JSON can hold it, None where a cell is empty."""
    values = [value.item() if isinstance(value, np.generic) else value for value in column]
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]


def _array(column: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Return a column as numbers if all of its cells are, else as text."""
    array = np.asarray(column)
    if array.dtype.kind in "biufU":
        return array
    values = list(column)
    if all(value is None or isinstance(value, int | float | np.number) for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.array(["" if value is None else str(value) for value in values])
