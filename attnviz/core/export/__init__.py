"""Numbers as files: CSV, JSON, NPZ, and a script that computes them again. NumPy only."""

from attnviz.core.export.head_files import (
    CSV_COLUMNS,
    HeadNumbers,
    about_trace,
    file_name,
    head_csv,
    head_json,
    head_npz,
    head_numbers,
    picture_file_name,
    script,
)
from attnviz.core.export.table_files import npz_entry

__all__ = [
    "CSV_COLUMNS",
    "HeadNumbers",
    "about_trace",
    "file_name",
    "head_csv",
    "head_json",
    "head_npz",
    "head_numbers",
    "npz_entry",
    "picture_file_name",
    "script",
]
