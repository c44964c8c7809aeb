"""What a page shows, in few numbers that can be stored, and how what is stored differs from what is shown."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from attnviz.app.talk.scenes import Shown
from tests.ui.charts import unpacked
from tests.ui.conftest import Visitor

NUMBER = re.compile(r"[−-]?\d+(?:,\d{3})*(?:\.\d+)?")
AXES = ("z", "x", "y", "customdata")
NEAR = 2e-3  # of the largest of numbers that stand together: another machine rounds otherwise
WIDE = ("weights",)  # what components are told as numbers of two bytes
LISTED = 8  # values that are stored one by one; of more, what sums them up
WORDS = ("caption", "markdown", "subheader")
ROUNDING = re.compile(r"\d\.?\d*e[−-]0[5-9]")  # how far two ways to compute differ: elsewhere it is another number
NAMED = re.compile(r" (?:Largest|Strongest): [^.]*(?:\.\d[^.]*)*\.")  # the sentence of a description that names a cell
TIES = {"flash-output", "lesson-apart"}  # charts of which another machine may name another cell
OF_THIS_MACHINE = re.compile(r"\d (?:ms|s)\b|seconds|memory that is free")


def shown(visitor: Visitor) -> dict[str, Any]:
    """Return what a page shows: its address, its head, its charts and the numbers of its sentences."""
    app = visitor.app
    charts = {chart.key: _chart(json.loads(chart.proto.spec), chart.proto.alt) for chart in app.get("plotly_chart")}
    for key in TIES & charts.keys():
        charts[key]["alt"] = NAMED.sub("", charts[key]["alt"])
    told = {part.key: part.proto.json for part in app.get("bidi_component") if part.key and part.proto.json}
    parts = {key: _summed_up(json.loads(text)) for key, text in told.items()}
    return {
        "address": {name: str(value) for name, value in app.query_params.items()},
        "head": f"{visitor['model']} L{visitor['layer']} H{visitor['head']}",
        "charts": charts,
        "components": {key: part for key, part in parts.items() if part},
        "tables": [_table(frame.value) for frame in app.dataframe],
        "numbers": " ".join(_numbers(visitor)),
        "said": {"notes": visitor.notes(), "warnings": visitor.warnings(), "errors": visitor.errors()},
        "crashes": visitor.crashes(),
    }


def scene_shown(scene: Shown) -> dict[str, Any]:
    """Return what a scene of a talk shows."""
    words = {name: text for name, text in asdict(scene).items() if name not in ("pictures", "sentence", "minutes")}
    return words | {"pictures": [_chart(json.loads(picture), "") for picture in scene.pictures]}


def differences(stored: Any, now: Any, where: str = "") -> list[str]:
    """Return a line for each place where what is shown isn't what is stored, but for the last digits."""
    if isinstance(stored, dict) and isinstance(now, dict):
        if stored.keys() != now.keys():
            return [f"{where}: {sorted(stored.keys() ^ now.keys())} on one side only"]
        return [line for name in stored for line in differences(stored[name], now[name], f"{where} {name}")]
    if _is_text_list(stored) and isinstance(now, list) and len(stored) == len(now):
        pairs = zip(stored, now, strict=True)
        return [line for n, pair in enumerate(pairs) for line in differences(*pair, f"{where} {n}")]
    same = _same_text(stored, now) if isinstance(stored, str) else _near(stored, now)
    return [] if same else [f"{where}: {stored} is stored, {now} is shown"]


def _is_text_list(entry: Any) -> bool:
    return isinstance(entry, list) and bool(entry) and not all(isinstance(each, int | float) for each in entry)


def _same_text(stored: str, now: Any) -> bool:
    if not isinstance(now, str) or NUMBER.sub("#", stored) != NUMBER.sub("#", now):
        return False
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(now), strict=True)
    return all(_nearly(one, other) for one, other in pairs)


def _nearly(one: str, other: str) -> bool:
    """Return True for two printed numbers that differ by little more than their last digit."""
    a, b = (float(word.replace("−", "-").replace(",", "")) for word in (one, other))
    digits = len(one.partition(".")[2])
    return abs(a - b) <= (1.01 * 10.0**-digits if digits else 0) + NEAR * abs(a) * (digits > 0)


def _near(stored: Any, now: Any) -> bool:
    if np.shape(stored) != np.shape(now) or not np.size(stored):
        return np.shape(stored) == np.shape(now)
    wanted = np.array(stored, dtype=float)
    return bool(np.allclose(np.array(now, dtype=float), wanted, rtol=0, atol=NEAR * max(1e-3, np.abs(wanted).max())))


def _chart(figure: dict[str, Any], alt: str) -> dict[str, Any]:
    layout = figure["layout"]
    title = layout.get("title", {}).get("text", "")
    traces = [_trace(trace) for trace in figure["data"]]
    return {name: part for name, part in (("alt", alt), ("title", title), ("traces", traces)) if part}


def _trace(trace: dict[str, Any]) -> dict[str, Any]:
    drawn = {axis: unpacked(trace[axis]) for axis in AXES if trace.get(axis) is not None}
    places = {axis for axis, values in drawn.items() if np.array_equal(values, np.arange(values.size))}
    return {"kind": trace["type"]} | {axis: _digest(values) for axis, values in drawn.items() if axis not in places}


def _digest(values: np.ndarray) -> Any:
    """Return shape and a few numbers of an array: mean, mean size, a mean that knows places, smallest and largest."""
    if values.dtype.kind in "OUS":
        flat = [value for value in values.ravel().tolist() if value is not None]
        if not all(isinstance(value, int | float) for value in flat):
            return {"shape": list(values.shape)}
        values = np.array(values, dtype=float)
    there = np.asarray(values, dtype=float)
    n_there = int(np.isfinite(there).sum())
    flat = np.where(np.isfinite(there), there, 0.0).ravel()
    if flat.size <= LISTED:
        return {"shape": list(there.shape), "n": n_there, "of": [_short(value) for value in flat]}
    wave = np.cos(np.arange(flat.size))  # so that numbers which change places are noticed
    sums = [_short(number) for number in (flat.mean(), np.abs(flat).mean(), (wave * flat).mean())]
    ends = [_short(flat.min()), _short(flat.max())]
    return {"shape": list(there.shape), "n": n_there, "sums": sums, "range": ends}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _table(table: Any) -> dict[str, Any]:
    """Return the columns of a table and the numbers in its cells."""
    words = [str(cell) for cell in table.to_numpy().ravel()]
    numbers = " ".join(number for word in words for number in NUMBER.findall(word))
    return {"shape": list(table.shape), "columns": list(map(str, table.columns)), "numbers": numbers}


def _summed_up(part: Any, name: str = "") -> Any:
    """Return the numbers of what a component is told, lists of them as a digest; words are left out."""
    if isinstance(part, dict):
        found = {name: _summed_up(value, name) for name, value in part.items()}
        return {name: value for name, value in found.items() if value is not None}
    if isinstance(part, list):
        return _summed_up_list(part)
    if isinstance(part, str):
        packed = _unpacked(part)
        return None if packed is None else _digest(np.frombuffer(packed, dtype="<u2" if name in WIDE else np.uint8))
    return part


def _summed_up_list(part: list[Any]) -> Any:
    try:
        return _digest(np.array(part, dtype=float))
    except (TypeError, ValueError):
        found = [_summed_up(value) for value in part]
        return [value for value in found if value is not None][:LISTED] or {"n": len(part)}


def _unpacked(text: str) -> bytes | None:
    """Return what `bridge.pack` packed, or None for a word."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, zlib.error):
        return None


def _numbers(visitor: Visitor) -> Iterator[str]:
    """Yield the numbers in the sentences of a page, but for those of this machine's speed and memory."""
    for kind in WORDS:
        for text in visitor.words(kind):
            if "<style" not in text and not OF_THIS_MACHINE.search(text):
                yield from NUMBER.findall(ROUNDING.sub("", text))
