"""Pictures of heads for slides: maps, rows, products, next words."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnviz.app.show.scenes import action
from attnviz.app.talk.caption_numbers import word_ids
from attnviz.app.talk.stage import GAP, HEIGHT, LABEL, LARGE, MOST_MAPPED, WIDTH, Slide, Stage
from attnviz.core.attention.products import fewest_products
from attnviz.core.maps.choice import MapChoice
from attnviz.core.maps.shown import shown_map
from attnviz.core.softmax.row_sharpness import histogram
from attnviz.core.softmax.sharpness import saturation_report
from attnviz.core.trace.head import Head
from attnviz.figures import (
    component_bars,
    map_on_slide,
    next_token_bars,
    on_slide,
    row_bars,
    saturation_histogram,
)
from attnviz.figures.shown_map import shown_figure

HALF = (WIDTH - GAP) // 2
NARROWEST = 360  # px: with less, no bars stand beside a map
N_GUESSES = 5
N_COMPARED = 3  # before and after side by side: more bars would be lower than their numbers
COMMON: dict[str, Any] = {"label_size": LARGE, "height": HEIGHT}


def _map(stage: Stage) -> Slide:
    """Draw the map and, where there is room beside it, the row of the token that looks."""
    part = stage.window(len(stage.rest.tokens), MOST_MAPPED)
    whole = _one_map(stage, stage.head_before, part)
    figures = [whole]
    beside = WIDTH - GAP - whole.layout.width
    left_out = _outside_map(stage, part)
    if beside >= NARROWEST:
        figures.append(_one_row(stage, stage.head_before, beside)[0])
    return Slide(tuple(figures), left_out)


def _before_after(stage: Stage) -> Slide:
    part = stage.window(len(stage.rest.tokens), MOST_MAPPED)
    before = _one_map(stage, stage.head_before, part, "before")
    after = _one_map(stage, stage.head_after, part, action(stage.scene.switches))
    return Slide((before, after), _outside_map(stage, part))


def _one_map(stage: Stage, head: Head, part: slice, title: str = "") -> Any:
    query, key = stage.cell or (None, None)
    shown = shown_map(head, head, MapChoice(tokens=part, query=query, key=key))
    figure = shown_figure(shown, title=title or stage.name, theme=stage.theme, label_size=LABEL, height=HEIGHT)
    return map_on_slide(figure, shown.columns.labels, HEIGHT, titled=bool(title))


def _outside_map(stage: Stage, part: slice) -> str:
    n = len(stage.rest.tokens)
    if part.stop - part.start == n:
        return ""
    rows = stage.head_before.tile(part).weights
    share = float(1 - rows[:, part].sum(axis=1).mean() / rows.sum(axis=1).mean())
    return f"tokens {part.start} to {part.stop - 1} of {n}; {share:.0%} of their weight lies outside"


def _row(stage: Stage) -> Slide:
    figure, left_out = _one_row(stage, stage.head_before, WIDTH)
    return Slide((figure,), left_out)


def _rows(stage: Stage) -> Slide:
    if stage.scene.other is None:
        raise ValueError(f"“{stage.scene.title}”: the picture “rows” needs `other`, a second head")
    one, left_out = _one_row(stage, stage.head_before, HALF)
    other, _ = _one_row(stage, stage.rest.head(*stage.scene.other), HALF)
    return Slide((one, other), left_out)


def _one_row(stage: Stage, head: Head, width: int) -> tuple[Any, str]:
    """Draw one row as bars, as many of its keys as have room for their labels, and say what that leaves out."""
    tokens, query = stage.rest.tokens, stage.query
    n = query + 1 if head.causal else len(tokens)
    keys = stage.window(n, (width - 90) // LABEL)
    weights = head.row(query)
    labels = [token.label for token in tokens[keys]]
    name = tokens[query].label
    figure = row_bars(
        weights[keys],
        labels,
        query_label=name,
        key_start=keys.start,
        title=f"{head.name}: what “{name}” looks at",
        theme=stage.theme,
        label_size=LARGE if len(labels) * 2 * LARGE <= width else LABEL,
        height=HEIGHT,
    )
    share = 1 - weights[keys].sum() / weights.sum()
    left_out = f"keys {keys.start} to {keys.stop - 1} of {n}; {share:.0%} of the weight lies outside"
    return on_slide(figure, width, HEIGHT, labels), left_out if keys.stop - keys.start < n else ""


def _products(stage: Stage) -> Slide:
    if stage.cell is None:
        raise ValueError(f"“{stage.scene.title}”: the picture “products” needs a query and a key")
    query, key = stage.cell
    q, k, _ = stage.head_before.qkv
    products = q[query].astype(np.float64) * k[key]
    names = [stage.rest.tokens[place].label for place in (query, key)]
    figure = component_bars(
        products,
        highlighted=[int(place) for place in fewest_products(products)],
        names=("nine tenths of the sum", "all others"),
        title=f"q of “{names[0]}” times k of “{names[1]}”, number by number",
        theme=stage.theme,
        **COMMON,
    )
    return Slide((on_slide(figure, WIDTH, HEIGHT),))


def _next(stage: Stage) -> Slide:
    changed = stage.after is not stage.rest
    n = N_COMPARED if changed else N_GUESSES
    return _next_words(stage, stage.rest.next_tokens(n), stage.after.next_tokens(n) if changed else None)


def _two_words(stage: Stage) -> Slide:
    """Draw how likely the scene's word and its rival are as the next one, before and after."""
    if not (stage.scene.word and stage.scene.rival):
        raise ValueError(f"“{stage.scene.title}”: the picture “words” needs `word` and `rival`")
    ids = word_ids(stage)
    names = (stage.scene.word, stage.scene.rival)
    before, after = (
        [(name, float(trace.next_probabilities()[i])) for name, i in zip(names, ids, strict=True)]
        for trace in (stage.rest, stage.after)
    )
    return _next_words(stage, before, after if stage.after is not stage.rest else None)


def _next_words(stage: Stage, before: list[tuple[str, float]], after: list[tuple[str, float]] | None) -> Slide:
    figure = next_token_bars(
        _seen(before),
        None if after is None else _seen(after),
        names=("as the model is", action(stage.scene.switches)),
        title="What comes next",
        theme=stage.theme,
        **COMMON,
    )
    return Slide((on_slide(figure, WIDTH, HEIGHT, titled=False),))


def _seen(candidates: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Say of labels that are dots alone that they are spaces, since nobody in the last row would know."""
    names = {"·": "· (space)"}
    return [(names.get(label, label), probability) for label, probability in candidates]


def _saturation(stage: Stage) -> Slide:
    report = saturation_report(stage.rest)
    a, b = histogram(report.before.maxima), histogram(report.after.maxima)
    figure = saturation_histogram(
        a.counts,
        b.counts,
        a.edges,
        title="The largest weight of every row, in every head",
        theme=stage.theme,
        **COMMON,
    )
    return Slide((on_slide(figure, WIDTH, HEIGHT),))


HEAD_PICTURES: dict[str, Callable[[Stage], Slide]] = {
    "map": _map,
    "before_after": _before_after,
    "row": _row,
    "rows": _rows,
    "products": _products,
    "next": _next,
    "words": _two_words,
    "saturation": _saturation,
}
