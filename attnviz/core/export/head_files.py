"""One head's numbers as files: CSV, JSON, NPZ, and a Python script that computes them again. NumPy only.

Tables of other pictures: `table_files`.

Every file says what it is of: text, tokens, model, revision, engine, switches, layer, head and the version of attnviz.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.core.export.table_files import npz, table_csv
from attnviz.core.trace.head import Head
from attnviz.core.trace.maps import Maps
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

CSV_COLUMNS = ("query_index", "query", "key_index", "key", "allowed", "weight", "score", "about")
MOST_WORDS = 4  # of the text in a file's name
MOST_LETTERS = 40


@dataclass(frozen=True, eq=False)
class HeadNumbers:
    """What the picture of one head holds.

    Attributes:
        weights: (queries, keys) float32.
        scores: (queries, keys) float32, -inf where the mask forbids; None for a model that gives finished maps only.
        allowed: (queries, keys), True where the query may see the key.
        queries: the tokens that look; `keys`: the tokens they look at.
        about: where the numbers come from, as JSON can hold it.
    """

    weights: NDArray[np.float32]
    scores: NDArray[np.float32] | None
    allowed: NDArray[np.bool_]
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    about: Mapping[str, Any]


def head_numbers(
    trace: Trace,
    layer: int,
    head: int,
    *,
    version: str,
    part: str | None = None,
    switches: Switches | None = None,
    queries: slice | None = None,
    keys: slice | None = None,
) -> HeadNumbers:
    """Return weights, scores and mask of one head, or of one tile of it, with all that says where they come from.

    Args:
        trace: a text as a model saw it.
        layer: number of the layer.
        head: number of the query head.
        version: of attnviz.
        part: which part of a model that has several.
        switches: on the picture alone, instead of those of the pass.
        queries: rows to keep; None: all.
        keys: columns to keep; the softmax is over all keys still.

    Raises:
        ValueError: no such part, layer or head, or a switch that can't act.
    """
    return numbers_of(trace.head(layer, head, part=part, switches=switches).tile(queries, keys), version=version)


def numbers_of(head: Head, *, version: str) -> HeadNumbers:
    """Return the same of a head of a trace, or of the tile of it that is shown.

    Raises:
        ValueError: a switch that can't act.
    """
    return HeadNumbers(
        weights=head.weights,
        scores=None if head.finished else head.scores,
        allowed=head.allowed,
        queries=head.tokens[0],
        keys=head.tokens[1],
        about=about_head(head, version=version),
    )


def about_head(head: Head, *, version: str) -> dict[str, Any]:
    """Return where a head's numbers come from, as JSON can hold it."""
    said = about_trace(head.trace, version=version, part=head.part, switches=head.switches)
    return said | {"layer": int(head.layer), "head": int(head.head)}


def about_trace(
    trace: Maps, *, version: str, part: str | None = None, switches: Switches | None = None
) -> dict[str, Any]:
    """Return which model, text and switches numbers come from, as JSON can hold it.

    Args:
        trace: a text as a model saw it.
        version: of attnviz.
        part: which part of a model that has several.
        switches: on the picture alone, instead of those of the pass.
    """
    model = trace.model
    return {
        "attnviz": version,
        "model": model.name,
        "title": model.title,
        "revision": model.revision,
        "dtype": model.dtype,
        "engine": model.engine,
        "part": part or trace.parts[0],
        "text": trace.text,
        **({"target": trace.target} if trace.target is not None else {}),
        "n_cut": trace.n_cut,
        "switches": _plain(trace.switches if switches is None else switches),  # what the numbers were computed with
        "switches_of_the_pass": _plain(trace.switches),  # what ran inside the model
    }


def head_csv(numbers: HeadNumbers) -> str:
    """Return a line for each query and key, in the columns CSV_COLUMNS.

    Numbers are written so that float32 reads them back exactly; a forbidden cell has weight 0 and no score. The column
    "about" holds JSON in the first line, which says where the numbers come from, and nothing in the others.
    """
    cells = list(product(numbers.queries, numbers.keys))
    scores = np.full(numbers.weights.shape, -np.inf) if numbers.scores is None else numbers.scores
    columns = (
        [query.index for query, _ in cells],
        [query.label for query, _ in cells],
        [key.index for _, key in cells],
        [key.label for _, key in cells],
        numbers.allowed.ravel().astype(int),
        [str(weight) for weight in numbers.weights.ravel()],
        [str(score) if np.isfinite(score) else "" for score in scores.ravel()],
    )
    return table_csv(dict(zip(CSV_COLUMNS, columns, strict=False)), numbers.about)


def head_json(numbers: HeadNumbers) -> str:
    """Return one JSON object: what `about` says, the tokens, and the arrays as lists of rows.

    Forbidden scores are null, and so is what isn't a finite number; "scores" is null where a model gives none.
    """
    content = dict(numbers.about) | {
        "queries": [asdict(token) for token in numbers.queries],
        "keys": [asdict(token) for token in numbers.keys],
        "weights": _lists(numbers.weights),
        "scores": None if numbers.scores is None else _lists(numbers.scores),
        "allowed": numbers.allowed.tolist(),
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def head_npz(numbers: HeadNumbers) -> bytes:
    """Return a compressed NPZ file, which `numpy.load` reads without pickle.

    It holds the arrays weights, scores (left out where a model gives none) and allowed, the tokens' labels and ids as
    query_labels, query_ids, key_labels and key_ids, and each entry of `about` under its own name; switches as JSON.
    """
    arrays: dict[str, Any] = {"weights": numbers.weights, "allowed": numbers.allowed}
    if numbers.scores is not None:
        arrays["scores"] = numbers.scores
    for side, tokens in (("query", numbers.queries), ("key", numbers.keys)):
        arrays[f"{side}_labels"] = np.array([token.label for token in tokens])
        arrays[f"{side}_ids"] = np.array([token.id for token in tokens])
    return npz(arrays, numbers.about)


def file_name(
    trace: Trace, layer: int, head: int, ending: str, *, part: str | None = None, switches: Switches | None = None
) -> str:
    """Return a file name that says what is inside: model, part, head, switches and the first words of the text.

    Args:
        trace: a text as a model saw it.
        layer: number of the layer.
        head: number of the query head.
        ending: such as "csv", without a dot.
        part: named if the model has several.
        switches: on the picture, instead of those of the pass.

    Raises:
        ValueError: no such part, layer or head.

    >>> trace = Trace.from_arrays(["Mary", " bought", " a car"], weights=[[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]])
    >>> file_name(trace, 0, 0, "csv", switches=Switches(scaled=False))
    'attnviz-captured-L0-H0-unscaled-mary-bought-a-car.csv'
    """
    return file_name_of(trace.head(layer, head, part=part, switches=switches), ending)


def file_name_of(head: Head, ending: str) -> str:
    """Return the same for a head of a trace."""
    trace = head.trace
    words = [_slug(trace.model.name.replace("\\", "/").rstrip("/").rpartition("/")[2]) or "model"]
    words += [head.part] if len(trace.parts) > 1 else []
    words += [f"L{head.layer}", f"H{head.head}", *_short(head.acting, trace.switches)]
    return _joined(words, trace.text, ending)


def picture_file_name(name: str, ending: str, *, text: str = "", switches: Switches | None = None) -> str:
    """Return a file name for a picture that isn't one head's map, or for its table.

    Args:
        name: what the picture shows, in a few words.
        ending: such as "csv", without a dot.
        text: what the picture is of; its first words are named.
        switches: named if any is on.

    >>> picture_file_name("row maxima", "csv", text="Mary bought a car today", switches=Switches(scaled=False))
    'attnviz-row-maxima-unscaled-mary-bought-a-car.csv'
    """
    shown = switches or Switches()
    return _joined([_slug(name) or "picture", *_short(shown, shown)], text, ending)


def script(
    trace: Trace,
    layer: int,
    head: int,
    *,
    version: str,
    part: str | None = None,
    switches: Switches | None = None,
    queries: slice | None = None,
    keys: slice | None = None,
) -> str:
    """Return a short Python script that computes the weights of this head again and prints them.

    Args:
        trace: a text as a model saw it.
        layer: number of the layer.
        head: number of the query head.
        version: of attnviz.
        part: which part of a model that has several.
        switches: on the picture alone, instead of those of the pass.
        queries: rows to keep; None: all.
        keys: columns to keep; None: all.

    Raises:
        ValueError: no such part, layer or head, a switch that can't act, or arrays that were captured elsewhere, so
            that there is no model to run.
    """
    return script_of(trace.head(layer, head, part=part, switches=switches).tile(queries, keys), version=version)


def script_of(head: Head, *, version: str) -> str:
    """Return the same for a head of a trace, or for the tile of it that is shown.

    Raises:
        ValueError: a switch that can't act, or arrays that were captured elsewhere.
    """
    trace, model = head.trace, head.trace.model
    head.allowed  # noqa: B018 - raises what weights would
    if model.engine not in ("torch", "numpy"):
        raise ValueError(f"{model.title} was captured elsewhere, so no script can run its model again")
    load = {"engine": model.engine, "dtype": model.dtype, "revision": model.revision}
    run: dict[str, Any] = {"target": trace.target} if trace.target is not None else {}
    run |= {"switches": trace.switches} if not trace.switches.at_rest else {}
    longest = max(len(side) for sides in trace.part_tokens.values() for side in sides)
    run |= {"max_tokens": longest} if trace.n_cut else {}
    asked = (("switches", head.switches), ("queries", head.queries), ("keys", head.keys))
    ask: dict[str, Any] = {"part": head.part} if len(trace.parts) > 1 else {}
    ask |= {name: value for name, value in asked if value is not None}
    return f'''"""Layer {head.layer}, head {head.head} of {_one_line(model.title)}, as attnviz {version} computed it.

It runs in the folder of attnviz, or anywhere after `pip install -e .` there.
"""

import attnviz

engine = attnviz.load({_arguments(model.name, **load)})
trace = engine.trace({_arguments(trace.text, **run)})
weights = trace.weights({_arguments(head.layer, head.head, **ask)})  # (queries, keys)

print([token.label for token in trace.tokens])
print(weights.round(3))
'''


def _joined(words: list[str], text: str, ending: str) -> str:
    said = _slug(" ".join(text.split()[:MOST_WORDS]))[:MOST_LETTERS].strip("-")
    return "-".join(["attnviz", *words, *([said] if said else [])]) + f".{ending}"


def _plain(switches: Switches) -> dict[str, Any]:
    entries = asdict(switches)
    for name in ("ablate", "forbid"):
        found = sorted(entries[name], key=lambda entry: tuple(-1 if n is None else n for n in entry))
        entries[name] = [list(entry) for entry in found]
    return entries


def _lists(array: NDArray[np.float32]) -> list[list[float | None]]:
    """Return rows of numbers as short as float32 needs them; None for what isn't finite."""
    return [[float(str(x)) if np.isfinite(x) else None for x in row] for row in array]


def _short(shown: Switches, of_the_pass: Switches) -> list[str]:
    """Return a short word for each switch that isn't at rest."""
    words = [] if shown.causal is None else ["causal-on" if shown.causal else "causal-off"]
    words += [] if shown.scaled else ["unscaled"]
    words += [] if shown.temperature == 1 else [f"temperature-{shown.temperature:g}"]
    words += ["forbid"] if shown.forbid else []
    return words + ([f"{len(of_the_pass.ablate)}-off"] if of_the_pass.ablate else [])


def _slug(text: str) -> str:
    """Return letters and digits of any script in lower case, with a hyphen for what lies between.

    >>> _slug("SmolLM2 (4-bit)"), _slug("Über  <b>"), _slug("..")
    ('smollm2-4-bit', 'über-b', '')
    """
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")


def _one_line(text: str) -> str:
    """Return text that is safe inside a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _arguments(*values: Any, **named: Any) -> str:
    return ", ".join([*map(_written, values), *(f"{name}={_written(value)}" for name, value in named.items())])


def _written(value: Any) -> str:
    if not isinstance(value, Switches):
        return repr(value)
    rest = Switches()
    changed = {
        name: _plain(value)[name] for name in asdict(value) if getattr(value, name) != getattr(rest, name)
    }  # entries are lists there, which Switches takes
    return f"attnviz.Switches({_arguments(**changed)})"
