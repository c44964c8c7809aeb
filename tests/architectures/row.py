"""What attnviz makes of one small model, compared with transformers alone: a row of docs/architectures.md."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import attnviz
from attnviz import Switches
from tests.architectures import oracle

TEXT = "w1 w2 w3 w4 w1 w2 w5 w7 w9 w1 w6 w3"
TARGET = "w4 w5 w6 w2"


@dataclass
class Row:
    """One class of one configuration.

    Attributes:
        outcome: "recorded" (q, k and v), "own maps" (finished ones), "refused", "unbuilt" or "traceback".
        reason: the sentence of a refusal, why only finished maps or no small model, or where the traceback ends.
        factor: the model's own, in front of q k^T in its first layer with attention; `d_head`: of q there.
        difference: largest, of any weight from eager; `oracle`: why there is none.
        switches: switch -> "acts", "refused: ..." or what is wrong.
        tokens: 16 greedy ones, by "cached", "uncached", "plain" (transformers without a cache) and "generate".
        cached_difference: largest, of the last step's weights with a cache from those without.
        scratch: what the engine "numpy" makes of it: "refused: ...", or "read" with the largest difference from eager.
    """

    model_type: str
    kind: str
    class_name: str
    outcome: str = ""
    reason: str = ""
    layers: str = ""
    factor: float | None = None
    d_head: int = 0
    difference: float | None = None
    oracle: str = ""
    switches: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Any] = field(default_factory=dict)
    cached_difference: float | None = None
    scratch: str = ""
    scratch_difference: float | None = None
    seconds: float = 0.0


def fill(row: Row, folder: Path) -> Row:
    """Look at the model of a folder and write into the row what came."""
    _from_scratch(row, folder)
    engine = _asked(row, lambda: attnviz.load(str(folder)))
    if engine is None:
        return row
    target = TARGET if len(engine.info.parts) > 1 else None
    trace = _asked(row, lambda: engine.trace(TEXT, target=target))
    if trace is None:
        return row
    row.outcome = "recorded" if engine.wiring.listens else "own maps"
    row.reason = engine.wiring.reason
    row.layers = ", ".join(f"{part} {len(trace.layers_of(part))}" for part in trace.parts)
    part, layer = trace.parts[0], trace.layers_of(trace.parts[0])[0]
    if row.outcome == "recorded":
        row.factor, row.d_head = trace.scale(layer, part=part), trace.qkv(layer, 0, part=part)[0].shape[1]
    row.switches = {name: _switch(engine, trace, target, name) for name in SWITCHES}
    own = oracle.eager(folder, row.class_name)
    try:
        row.difference = difference(trace, own)
    except oracle.NoOracle as error:
        row.oracle = str(error)
    _generate(row, engine, own, [token.id for token in trace.tokens])
    return row


def _from_scratch(row: Row, folder: Path) -> None:
    """Ask the other engine, which computes everything itself and refuses most architectures."""
    try:
        trace = attnviz.load(str(folder), engine="numpy").trace(TEXT)
        row.scratch = "read"
        row.scratch_difference = difference(trace, oracle.eager(folder, row.class_name))
    except ValueError as error:
        row.scratch = f"refused: {error}"
    except oracle.NoOracle as error:
        row.scratch = f"read, and transformers alone says nothing: {error}"
    except Exception as error:  # whatever it is, it is the finding
        row.scratch = _end_of(error)


def _asked(row: Row, ask: Callable[[], Any]) -> Any:
    """Return what came, or None with the outcome in the row."""
    try:
        return ask()
    except ValueError as error:
        row.outcome, row.reason = "refused", str(error)
    except Exception as error:  # whatever it is, it is the finding
        row.outcome, row.reason = "traceback", _end_of(error)
    return None


def _end_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "/attnviz/" in f.filename]
    last = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    return f"traceback: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]} ({ours[-1:]} {last})"


def difference(trace: Any, own: Any) -> float:
    """Return the largest difference of any weight, of every head of every layer, from the model's eager maps."""
    target = [token.id for token in trace.tokens_of("decoder")[0]] if len(trace.parts) > 1 else None
    found = oracle.maps(own, [token.id for token in trace.tokens], target)
    parts = dict(zip(trace.parts, found.values(), strict=True)) if target is None else found
    most = 0.0
    for part, layers in parts.items():
        for layer, theirs in zip(trace.layers_of(part), layers, strict=True):
            ours = np.stack([trace.weights(layer, head, part=part) for head in range(trace.heads(layer, part=part))])
            np.testing.assert_equal(ours.shape, theirs.shape)
            most = max(
                most,
                float(np.abs(ours - theirs).max()),
                float(np.abs(trace.layer_weights(layer, part=part) - theirs).max()),
            )
    return most


def _switch(engine: Any, trace: Any, target: str | None, name: str) -> str:
    """Return "acts", the refusal, or what is wrong, of one switch inside the whole pass."""
    part = trace.parts[0]
    layer = trace.layers_of(part)[0]
    last = len(trace.tokens) - 1
    try:
        changed = engine.trace(TEXT, target=target, switches=SWITCHES[name](layer, last))
        wrong = CHECKS[name](trace.weights(layer, 0, part=part), changed.weights(layer, 0, part=part))
        if name == "ablate":
            wrong = wrong or _echo(trace, changed, part)
        elif not wrong:
            picture = trace.weights(layer, 0, part=part, switches=SWITCHES[name](layer, last))
            wrong = _close(picture, changed.weights(layer, 0, part=part)) and "pass and picture differ"
    except ValueError as error:
        return f"refused: {error}"
    except Exception as error:  # whatever it is, it is the finding
        return _end_of(error)
    return wrong or "acts"


def _echo(trace: Any, changed: Any, part: str) -> str:
    """Return what is wrong if a head that was switched off in the first layer left no trace in what comes after it."""
    pairs = [
        (trace.layer_weights(n, part=part), changed.layer_weights(n, part=part)) for n in trace.layers_of(part)[1:]
    ]
    if trace.model.predicts:
        pairs.append((trace.next_probabilities(), changed.next_probabilities()))
    return "changes nothing" if pairs and not any((a != b).any() for a, b in pairs) else ""


SWITCHES: dict[str, Callable[[int, int], Switches]] = {
    "causal on": lambda layer, last: Switches(causal=True),
    "causal off": lambda layer, last: Switches(causal=False),
    "scaling": lambda layer, last: Switches(scaled=False),
    "temperature": lambda layer, last: Switches(temperature=2.0),
    "ablate": lambda layer, last: Switches(ablate={(layer, 0)}),
    "forbid": lambda layer, last: Switches(forbid={(layer, 0, last, last - 1)}),
}


def _only_earlier(before: np.ndarray, after: np.ndarray) -> str:
    """On the first layer, rows are cut at the diagonal and share what was beyond it; a sink keeps its share."""
    kept = np.tril(before.astype(np.float64))
    divisor = kept.sum(axis=1, keepdims=True) + _missing(before)
    return _close(after * divisor, kept) or ("still looks ahead" if np.triu(after, 1).any() else "")


def _later_too(before: np.ndarray, after: np.ndarray) -> str:
    """Cutting the rows of the changed map at the diagonal must give those of a causal map, and something was beyond."""
    if not np.triu(after, 1).any():
        return "doesn't act"
    return "" if np.triu(before, 1).any() else _only_earlier(after, before)


def _unscaled(before: np.ndarray, after: np.ndarray) -> str:
    return "" if np.abs(before - after).max() > 1e-6 else "doesn't act"


def _square_root(before: np.ndarray, after: np.ndarray) -> str:
    """At temperature 2 rows are the roots of what they were; so is a sink."""
    roots = np.sqrt(before.astype(np.float64))
    return _close(after, roots / (roots.sum(axis=1, keepdims=True) + np.sqrt(_missing(before))))


def _same(before: np.ndarray, after: np.ndarray) -> str:
    return _close(after, before)


def _one_less(before: np.ndarray, after: np.ndarray) -> str:
    expected = before.astype(np.float64)
    expected[-1, -2] = 0
    expected[-1] /= expected[-1].sum() + _missing(before)[-1]
    return _close(after, expected)


CHECKS: dict[str, Callable[[np.ndarray, np.ndarray], str]] = {
    "causal on": _only_earlier,
    "causal off": _later_too,
    "scaling": _unscaled,
    "temperature": _square_root,
    "ablate": _same,
    "forbid": _one_less,
}


def _missing(weights: np.ndarray) -> np.ndarray:
    """Return (queries, 1): what a learned sink took of each row, exactly 0 where nothing did."""
    rest = 1 - weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return np.where(np.abs(rest) > 1e-5, rest, 0.0)


def _close(found: np.ndarray, expected: np.ndarray) -> str:
    off = float(np.abs(found - expected).max())
    return "" if off <= 2e-5 else f"off by {off:.1e}"


def _generate(row: Row, engine: Any, own: Any, ids: list[int]) -> None:
    """Continue the text with a cache, without one, by passes of transformers and by its `generate`."""
    traces = {}
    for name, cache in (("cached", True), ("uncached", False)):
        try:
            steps = list(engine.generate(TEXT, oracle.NEW_TOKENS, cache=cache))
            row.tokens[name], traces[name] = [step.token.id for step in steps], steps[-1].trace
        except ValueError as error:
            row.tokens[name] = f"refused: {error}"
        except Exception as error:  # whatever it is, it is the finding
            row.tokens[name] = _end_of(error)
    if "uncached" not in traces:
        return
    row.tokens["plain"] = oracle.greedy(own, ids)
    row.tokens["generate"] = oracle.generated(own, ids, cache=True)
    if row.tokens["generate"] != row.tokens["plain"]:
        row.tokens["generate uncached"] = oracle.generated(own, ids, cache=False)
    if row.tokens.get("generate uncached", row.tokens["plain"]) != row.tokens["plain"]:
        row.tokens["plain from 0"] = oracle.greedy(own, ids, from_0=True)
    if row.tokens["cached"] == row.tokens["uncached"]:
        one, other = traces["cached"], traces["uncached"]
        row.cached_difference = max(
            float(np.abs(one.layer_weights(layer) - other.layer_weights(layer)).max()) for layer in one.layers
        )
