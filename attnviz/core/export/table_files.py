"""The table behind a picture as a file: CSV, JSON, NPZ, each with what says where the numbers come from. NumPy only."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
"""Columns of one length by their names: numbers, where NaN or None is an empty cell, or text."""


def table_csv(columns: Columns, about: Mapping[str, Any]) -> str:
    """Return a line for each row; the last column, "about", holds JSON in the first line and nothing in the others.

    >>> print(table_csv({"word": ["a", "b"], "weight": [0.25, float("nan")]}, {"model": "m"}), end="")
    word,weight,about
    a,0.25,"{""model"": ""m""}"
    b,,
    """
    rows = zip(*map(_values, columns.values()), strict=True)
    said = chain([json.dumps(dict(about), ensure_ascii=False)], repeat(""))
    return csv_text([[*columns, "about"], *([*row, fact] for row, fact in zip(rows, said, strict=False))])


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    r"""Return rows as CSV, None as an empty cell.

    >>> csv_text([["a", "b"], [1, None]])
    'a,b\n1,\n'
    """
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
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
    return npz(arrays | {"names": np.array(list(columns))}, about)


def npz(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> bytes:
    """Return a compressed NPZ file of arrays, and of each fact as `npz_entry` has it."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays, **{name: npz_entry(about[name]) for name in about})
    return file.getvalue()


def npz_entry(value: Any) -> NDArray[Any]:
    """Return a fact as an array that `numpy.load` reads without pickle: text or a number, all else as JSON.

    >>> npz_entry(3).item(), npz_entry([1, None]).item()
    (3, '[1, null]')
    """
    plain = isinstance(value, str | int | float)
    return np.array(value if plain else json.dumps(value, ensure_ascii=False))


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
