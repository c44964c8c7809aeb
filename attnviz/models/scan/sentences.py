"""What every head of a model gives to the candidates of many pronoun sentences, quickly.

Texts of equal length run together, so that nothing is padded; of each pass only the pronouns' rows are kept, and it
ends at the last layer's weights. What can't be run that way is traced text by text, with the same result.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnviz.core.pronouns.head_scores import Looks
from attnviz.core.pronouns.items import Item
from attnviz.core.pronouns.token_places import Places, candidate_weights, find_places
from attnviz.core.trace.records import Token
from attnviz.models.engine import Engine
from attnviz.models.listen.torch_engine import TorchEngine
from attnviz.models.scan import kept as scan_cache
from attnviz.models.scan.row_recorder import Finished, RowRecorder, Wanted
from attnviz.models.texts import cut
from attnviz.models.tokens import tokenize

NEUTRAL_LEAD = "\n"
BATCH_TOKENS = 1024  # in one pass: more is no faster on a CPU
LEAST_ROWS = 8  # pronouns of one long text that share a pass, whatever its length


Progress = Callable[[int, int], None]
Tokens = dict[str, tuple[Token, ...]]  # of each text
Row = tuple[str, Places]  # a text and where to look in it; items that ask the same share one


@dataclass(frozen=True, eq=False)
class Scan:
    """The result of a scan.

    Attributes:
        looks: of the items that could be measured.
        skipped: (id, reason) of the others.
        lead: what stood in front of every text; empty for nothing.
        from_cache: True if no model had to run.
    """

    looks: Looks
    skipped: tuple[tuple[str, str], ...]
    lead: str
    from_cache: bool = False


def scan(
    engine: Engine,
    items: Sequence[Item],
    *,
    lead: str | None = "auto",
    progress: Progress | None = None,
    cache: bool = True,
) -> Scan:
    """Measure what every head gives to the answer and to the best distractor of every item.

    Args:
        engine: made by `attnviz.load`.
        items: an item whose places have no token of their own, or lie beyond the model's limit, is skipped and named.
        lead: text to put in front of each, so that a first token that soaks up weight isn't a candidate. "auto" takes a
            line break for models whose tokenizer puts nothing in front itself; None nothing.
        progress: called with (measured, all) distinct items; what it raises ends the scan, and nothing is kept.
        cache: look the result up on disk, and keep it there, by model, revision, lead and items.

    Raises:
        ValueError: no item, or none that can be measured.
    """
    items = tuple(items)
    front = lead_text(engine, lead)
    if not items:
        raise ValueError("there is no item to scan")
    place = scan_cache.place(engine.info, items, front) if cache else None
    kept = scan_cache.read(place, items) if place else None
    if kept is not None:
        return Scan(*kept, front, from_cache=True)
    rows, skipped, tokens_of = _find_rows(engine, items, front)
    if not rows:
        item_id, reason = skipped[0]
        raise ValueError(f"none of the {len(items)} items can be measured; the first, {item_id}: {reason}")
    looks = _measure(engine, items, rows, tokens_of, progress or (lambda done, total: None))
    if place:
        scan_cache.write(place, list(rows), looks, skipped)
    return Scan(looks, skipped, front)


def lead_text(engine: Engine, lead: str | None = "auto") -> str:
    """Return what to put in front of a text: nothing, the given text, or what suits the model."""
    if lead is None:
        return ""
    if not isinstance(lead, str):
        raise ValueError(f'lead must be a text, "auto" or None, got {lead!r}')
    if lead != "auto":
        return lead
    return "" if starts_specially(engine) else NEUTRAL_LEAD


def starts_specially(engine: Engine) -> bool:
    """Return True if the model's tokenizer puts a token of its own in front, such as [CLS] or a BOS token."""
    tokens = tokenize(engine.tokenizer, "a")
    return bool(tokens) and tokens[0].special and not tokens[0].text


def _find_rows(
    engine: Engine, items: tuple[Item, ...], lead: str
) -> tuple[dict[int, Row], tuple[tuple[str, str], ...], Tokens]:
    """Return item number -> row, the skipped items with reasons, and each text's tokens."""
    rows: dict[int, Row] = {}
    skipped: list[tuple[str, str]] = []
    tokens_of: Tokens = {}
    n_cut: dict[str, int] = {}
    for number, item in enumerate(items):
        text = lead + item.text
        if text not in tokens_of:
            tokens_of[text], n_cut[text] = cut(tokenize(engine.tokenizer, text), engine.info.limit)
        try:
            places = find_places(tokens_of[text], item, offset=len(lead))
            _check_lead(tokens_of[text], places, lead)
        except ValueError as error:
            too_long = f"; only the first {engine.info.limit} tokens of its text are read" if n_cut[text] else ""
            skipped.append((item.id, f"{error}{too_long}"))
        else:
            rows[number] = (text, places)
    return rows, tuple(skipped), tokens_of


def _check_lead(tokens: Sequence[Token], places: Places, lead: str) -> None:
    for of_candidate in places.candidates:
        shared = lead[tokens[of_candidate[0]].start :]
        if shared.strip(" "):  # a space belongs to the word after it
            raise ValueError(
                f"the lead text runs together with a candidate in one token: end it with a space, not {lead[-9:]!r}"
            )


def _measure(
    engine: Engine, items: tuple[Item, ...], rows: dict[int, Row], tokens_of: Tokens, progress: Progress
) -> Looks:
    distinct = {row: number for number, row in enumerate(dict.fromkeys(rows.values()))}
    layers: tuple[int, ...] = ()
    run: Callable[..., Any] = _run_batch if _runs_in_batches(engine) else _trace_batch
    found: list[Any] = [None] * len(distinct)  # (2, layers, heads) each: answer, best distractor
    done = 0
    progress(0, len(distinct))
    for batch in _batches(list(distinct), tokens_of, one_text=run is _trace_batch):
        layers, values = run(engine, batch, tokens_of)  # (items, 2, layers, heads)
        for row, value in zip(batch, values, strict=True):
            found[distinct[row]] = value
        done += len(batch)
        progress(done, len(distinct))
    both = np.stack([found[distinct[row]] for row in rows.values()], axis=1)  # (2, items, layers, heads)
    return Looks(tuple(items[number] for number in rows), tuple(layers), both[0], both[1])


def _runs_in_batches(engine: Engine) -> bool:
    if not isinstance(engine, TorchEngine):
        return False
    return engine.wiring.listens and not engine.wiring.extras and len(engine.info.parts) == 1


def _batches(rows: list[Row], tokens_of: Tokens, *, one_text: bool) -> Iterator[list[Row]]:
    """Yield rows whose texts have as many tokens each, few enough for one pass; the longest texts come first."""
    rows = sorted(rows, key=lambda row: (-len(tokens_of[row[0]]), row[0]))
    batch: list[Row] = []
    texts: set[str] = set()
    for row in rows:
        length = len(tokens_of[row[0]])
        if batch:
            most = max(1, BATCH_TOKENS // length)
            full = len(texts | {row[0]}) > (1 if one_text else most) or len(batch) >= max(LEAST_ROWS, most)
            if full or length != len(tokens_of[batch[0][0]]):
                yield batch
                batch, texts = [], set()
        batch.append(row)
        texts.add(row[0])
    if batch:
        yield batch


def _run_batch(engine: TorchEngine, batch: list[Row], tokens_of: Tokens) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the layers and (items, 2, layers, heads) of a batch, from one pass that is listened to."""
    texts = list(dict.fromkeys(text for text, _ in batch))
    wanted = Wanted([texts.index(text) for text, _ in batch], [places for _, places in batch])
    layers = engine.info.layers
    recorder = RowRecorder(engine.wiring.wires, wanted, len(layers))
    with suppress(Finished):
        engine.run_batch([[token.id for token in tokens_of[text]] for text in texts], recorder)
    return layers, _stack([np.stack(recorder.rows[layer]) for layer in layers])


def _trace_batch(engine: Engine, batch: list[Row], tokens_of: Tokens) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the layers and (items, 2, layers, heads) of the rows of one text, from a trace of it."""
    trace = engine.trace(batch[0][0])
    part = trace.parts[0]  # the encoder, where there is a decoder beside it
    found = []
    for layer in trace.layers_of(part):
        rows = []
        for _, places in batch:
            query = slice(places.query, places.query + 1)
            weights = candidate_weights(trace.layer_weights(layer, part=part, queries=query)[:, 0], places.candidates)
            rows.append([weights[:, 0], weights[:, 1:].max(axis=-1)])  # (2, heads)
        found.append(np.array(rows, np.float32).transpose(1, 0, 2))  # (2, items, heads)
    return trace.layers_of(part), _stack(found)


def _stack(layers: list[np.ndarray]) -> np.ndarray:
    """Return (items, 2, layers, heads) from one (2, items, heads) a layer, NaN where a layer has fewer heads."""
    most = max(layer.shape[-1] for layer in layers)
    padded = [np.pad(x, ((0, 0), (0, 0), (0, most - x.shape[-1])), constant_values=np.nan) for x in layers]
    return np.stack(padded).transpose(2, 1, 0, 3).astype(np.float32)
