"""What charts draw and tables print, as numbers, and a small model's address to draw them at."""

import base64
from typing import Any

import numpy as np

from tests.ui.conftest import Visitor

TINY = {"model": "untrained", "text": "a b c a b c.", "layer": "2", "head": "1"}


def unpacked(packed: Any) -> np.ndarray:
    if isinstance(packed, list):
        return np.array(packed)
    flat = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    return flat.reshape([int(n) for n in str(packed.get("shape", len(flat))).split(",")])


def values(visitor: Visitor, chart: str, trace: int = 0, axis: str = "z") -> np.ndarray:
    """Return what a chart draws."""
    return unpacked(visitor.chart(chart)["data"][trace][axis])


def bars(visitor: Visitor, chart: str, axis: str = "y") -> np.ndarray:
    """Return the heights of a chart's bars in the order of their places, over all its traces."""
    other = "x" if axis == "y" else "y"
    data = visitor.chart(chart)["data"]
    places = np.concatenate([unpacked(trace[other]) for trace in data])
    return np.concatenate([unpacked(trace[axis]) for trace in data])[np.argsort(places)]


def printed(cells: Any) -> np.ndarray:
    """Return the numbers of a column that prints them with true minus signs."""
    return np.array([float(cell.replace("−", "-")) for cell in cells])


def unfold(visitor: Visitor, *boxes: str) -> None:
    """Open expanders of the page."""
    for box in boxes:
        visitor.app.session_state[box] = True
    visitor.app.run()
