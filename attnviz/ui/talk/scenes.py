"""A scene worked out: its pictures as plotly figures, and its caption with the numbers of this very picture."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnviz.core.cost import layer_cost, meeting_point, score_bytes, step_cost
from attnviz.core.deck import Scene, fill_caption
from attnviz.core.measures import first_token_weight, induction_score, previous_token_score
from attnviz.core.mentions import split_words
from attnviz.core.products import fewest_products
from attnviz.core.pronouns import tokens_of_span
from attnviz.core.published import PublishedModel, published_models
from attnviz.core.saturation import histogram, saturation_report
from attnviz.core.switches import Switches
from attnviz.core.trace import Trace
from attnviz.figures import (
    Curve,
    component_bars,
    cost_curves,
    head_map,
    next_token_bars,
    quantity,
    row_bars,
    saturation_histogram,
)
from attnviz.ui import cache
from attnviz.ui.cache import ModelChoice
from attnviz.ui.examples import word_token

WIDTH, HEIGHT = 1216, 524  # px of the picture on a stage of 1280 x 720
LABEL = 18  # px: readable from the last row
MOST_LABELS = 28  # tokens a side of a map
EVEN = {1: (WIDTH,), 2: (WIDTH // 2 - 8, WIDTH // 2 - 8)}  # px of each picture of a scene
SHARES = {"map": (560, WIDTH - 576)}
N_GUESSES = 5
COSTS_OF = "SmolLM2-135M"


@dataclass(frozen=True)
class Shown:
    """A scene ready to be shown: its words and its pictures as plotly's JSON."""

    title: str
    caption: str
    question: str
    notes: str
    minutes: float
    text: str
    alt: str
    pictures: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """What a scene is drawn from: the text under the model at rest, and under the scene's switches."""

    scene: Scene
    rest: Trace
    after: Trace
    picture: Switches | None
    theme: str

    @property
    def part(self) -> slice:
        """The tokens that are shown."""
        n = len(self.rest.tokens)
        last = min(self.scene.last or n, MOST_LABELS)
        return slice(max(0, n - last), n)

    @property
    def cell(self) -> tuple[int, int] | None:
        """The cell that the scene points at."""
        if not (self.scene.query and self.scene.key):
            return None
        return word_place(self.rest, self.scene.query, -1), word_place(self.rest, self.scene.key, 0)

    @property
    def query(self) -> int:
        """The token that looks: the scene's, else the last."""
        return word_place(self.rest, self.scene.query, -1) if self.scene.query else len(self.rest.tokens) - 1

    @property
    def name(self) -> str:
        """Of the scene's head."""
        return f"L{self.scene.layer} H{self.scene.head}"


def word_place(trace: Trace, word: str, occurrence: int) -> int:
    """Return the last token of an occurrence of a word; of a part of a word where no whole one is like it.

    Raises:
        ValueError: it isn't there, or was cut off.
    """
    spans = [span for span in split_words(trace.text) if trace.text[slice(*span)] == word]
    if not spans:
        return word_token(trace, word, occurrence)
    tokens = tokens_of_span(trace.tokens, spans[occurrence])
    if not tokens:
        raise ValueError(f"the model doesn't see “{word}” there: the text is too long for it, and was cut")
    return tokens[-1]


def show_scene(scene: Scene, theme: str) -> Shown:
    """Work a scene out.

    Raises:
        ValueError: its text, its head or its words don't fit; the text of the error names what.
    """
    if scene.picture in COSTS:
        figures, numbers = COSTS[scene.picture](theme)
    else:
        stage = _stage(scene, theme)
        figures = PICTURES[scene.picture](stage)
        numbers = _numbers(stage)
    for figure, width in zip(figures, SHARES.get(scene.picture, EVEN[len(figures)]), strict=True):
        figure.update_layout(width=width, height=HEIGHT)
    try:
        caption = fill_caption(scene.caption, numbers)
    except ValueError as error:
        raise ValueError(f"the caption of “{scene.title}”: {error}") from error
    return Shown(
        title=scene.title,
        caption=caption,
        question=scene.question,
        notes=scene.notes,
        minutes=scene.minutes,
        text=scene.text,
        alt=" ".join(figure.layout.meta["alt"] for figure in figures),
        pictures=tuple(figure.to_json() for figure in figures),
    )


def _stage(scene: Scene, theme: str) -> Stage:
    choice = ModelChoice(scene.model)
    rest = cache.get_trace(choice, scene.text, Switches())
    if len(rest.parts) > 1:
        raise ValueError(f"“{scene.title}”: {rest.model.title} has several parts, and a scene shows models of one")
    if scene.layer not in rest.layers or scene.head >= rest.heads(scene.layer, part=rest.parts[0]):
        raise ValueError(f"“{scene.title}”: {rest.model.title} has no L{scene.layer} H{scene.head}")
    whole = scene.whole_pass or bool(scene.switches.ablate)
    after = cache.get_trace(choice, scene.text, scene.switches) if whole and not scene.switches.at_rest else rest
    return Stage(scene, rest, after, None if whole else scene.switches, theme)


def _numbers(stage: Stage) -> dict[str, Any]:
    """Return what captions may name."""
    scene, rest, after = stage.scene, stage.rest, stage.after
    found: dict[str, Any] = {}
    weights = rest.weights(scene.layer, scene.head)
    if len(weights) > 2:
        found["first"] = float(np.mean(first_token_weight(weights)[1:]))
        found["previous"] = float(np.nanmean(previous_token_score(weights)[2:]))
    if stage.cell is not None:
        found |= _cell_numbers(stage)
    if rest.next_logits is not None:
        found |= _next_numbers(rest, after)
        if scene.word and scene.rival:
            found |= _lead(stage)
    if scene.picture in ("map", "before_after") and stage.cell is not None:
        found |= _stripe(stage)
    if scene.picture == "saturation":
        report = saturation_report(rest, "all", None, None, part=rest.parts[0])
        found["saturated"] = _percent(report.before.saturated().share)
        found["saturated_after"] = _percent(report.after.saturated().share)
    return found


def _cell_numbers(stage: Stage) -> dict[str, Any]:
    scene, (query, key) = stage.scene, stage.cell
    found = {
        "weight": float(stage.rest.weights(scene.layer, scene.head)[query, key]),
        "weight_after": float(stage.after.weights(scene.layer, scene.head, switches=stage.picture)[query, key]),
    }
    if "scores" in stage.rest.model.cannot:
        return found
    q, k, _ = stage.rest.qkv(scene.layer, scene.head)
    products = q[query].astype(np.float64) * k[key]
    return found | {
        "product": float(products.sum()),
        "score": float(stage.rest.scores(scene.layer, scene.head)[query, key]),
        "few": len(fewest_products(products)),
        "width": len(products),
    }


def _next_numbers(rest: Trace, after: Trace) -> dict[str, Any]:
    before, now = rest.next_probabilities(), after.next_probabilities()
    best = int(before.argmax())
    return {
        "next": rest.label_of(best).lstrip("·"),
        "chance": _percent(before[best]),
        "chance_after": _percent(now[best]),
        "rank_after": int((now > now[best]).sum()) + 1,
    }


def _lead(stage: Stage) -> dict[str, float]:
    """Return the logit of the scene's word minus that of its rival, at rest and under the switches."""
    one, other = _word_ids(stage)
    before, after = (trace.next_logits for trace in (stage.rest, stage.after))
    return {"lead": float(before[one] - before[other]), "lead_after": float(after[one] - after[other])}


def _word_ids(stage: Stage) -> tuple[int, int]:
    """Return the first token of the scene's word and of its rival."""
    from attnviz.models.effects import next_word_token  # here, since it brings transformers

    engine = cache.get_engine(ModelChoice(stage.scene.model), lambda sentence: None)
    words = (stage.scene.word, stage.scene.rival)
    one, other = (next_word_token(engine.tokenizer, word, after=stage.scene.text)[0] for word in words)
    return one, other


def _stripe(stage: Stage) -> dict[str, float]:
    """Return the mean weight on what followed the same token before, at rest and under the switches.

    Nothing for a text that repeats no token.
    """
    ids = [token.id for token in stage.rest.tokens]
    scene = stage.scene
    before = stage.rest.weights(scene.layer, scene.head)
    after = stage.after.weights(scene.layer, scene.head, switches=stage.picture)
    scores = [np.asarray(induction_score(weights, ids)) for weights in (before, after)]
    if not np.isfinite(scores[0]).any():
        return {}
    return {name: float(np.nanmean(score)) for name, score in zip(("stripe", "stripe_after"), scores, strict=True)}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


# Pictures of a head


def _map(stage: Stage) -> list[Any]:
    """Draw the map, and beside it the row of the token that looks."""
    return [_one_map(stage, stage.rest, None, ""), _one_row(stage, stage.scene.layer, stage.scene.head)]


def _before_after(stage: Stage) -> list[Any]:
    return [
        _one_map(stage, stage.rest, None, "before"),
        _one_map(stage, stage.after, stage.picture, _action(stage.scene)),
    ]


def _action(scene: Scene) -> str:
    off = ", ".join(f"L{layer} H{head}" for layer, head in sorted(scene.switches.ablate))
    return f"{off} off" if off else "after"


def _one_map(stage: Stage, trace: Trace, switches: Switches | None, said: str) -> Any:
    part, scene = stage.part, stage.scene
    labels = [token.label for token in trace.tokens[part]]
    where = {"queries": part, "keys": part, "switches": switches}
    cell = stage.cell
    inside = cell is not None and all(part.start <= place < part.stop for place in cell)
    return head_map(
        trace.weights(scene.layer, scene.head, **where),
        labels,
        labels,
        allowed=trace.allowed(scene.layer, scene.head, **where),
        query_start=part.start,
        key_start=part.start,
        marked=[cell] if inside else (),
        title=f"{stage.name}, {said}" if said else stage.name,
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )


def _row(stage: Stage) -> list[Any]:
    return [_one_row(stage, stage.scene.layer, stage.scene.head)]


def _rows(stage: Stage) -> list[Any]:
    if stage.scene.other is None:
        raise ValueError(f"“{stage.scene.title}”: the picture “rows” needs `other`, a second head")
    return [_one_row(stage, stage.scene.layer, stage.scene.head), _one_row(stage, *stage.scene.other)]


def _one_row(stage: Stage, layer: int, head: int) -> Any:
    trace, query = stage.rest, stage.query
    row = slice(query, query + 1)
    n = query + 1 if trace.causal(layer, part=trace.parts[0]) else len(trace.tokens)
    return row_bars(
        trace.weights(layer, head, queries=row)[0, :n],
        [token.label for token in trace.tokens[:n]],
        query_label=trace.tokens[query].label,
        title=f"L{layer} H{head}: what “{trace.tokens[query].label}” looks at",
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )


def _products(stage: Stage) -> list[Any]:
    if stage.cell is None:
        raise ValueError(f"“{stage.scene.title}”: the picture “products” needs a query and a key")
    query, key = stage.cell
    q, k, _ = stage.rest.qkv(stage.scene.layer, stage.scene.head)
    products = q[query].astype(np.float64) * k[key]
    names = [stage.rest.tokens[place].label for place in (query, key)]
    few = fewest_products(products)
    figure = component_bars(
        products,
        highlighted=[int(place) for place in few],
        names=("nine tenths of the sum", "all others"),
        title=f"{stage.name}: q of “{names[0]}” times k of “{names[1]}”, number by number",
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    return [figure]


def _next(stage: Stage) -> list[Any]:
    changed = stage.after is not stage.rest
    figure = next_token_bars(
        stage.rest.next_tokens(N_GUESSES),
        stage.after.next_tokens(N_GUESSES) if changed else None,
        names=("as the model is", _switched(stage.scene)),
        title=f"{stage.scene.text} …",
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    return [figure]


def _two_words(stage: Stage) -> list[Any]:
    """Draw how likely the scene's word and its rival are as the next one, before and after."""
    if not (stage.scene.word and stage.scene.rival):
        raise ValueError(f"“{stage.scene.title}”: the picture “words” needs `word` and `rival`")
    ids = _word_ids(stage)
    names = (stage.scene.word, stage.scene.rival)
    before, after = (
        [(name, float(trace.next_probabilities()[i])) for name, i in zip(names, ids, strict=True)]
        for trace in (stage.rest, stage.after)
    )
    figure = next_token_bars(
        before,
        after if stage.after is not stage.rest else None,
        names=("as the model is", _switched(stage.scene)),
        title=f"{stage.scene.text} …",
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    return [figure]


def _switched(scene: Scene) -> str:
    if scene.switches.ablate:
        return _action(scene)
    if not scene.switches.scaled:
        return "without 1/√d"
    return "without the mask" if scene.switches.causal is False else "switched"


def _saturation(stage: Stage) -> list[Any]:
    report = saturation_report(stage.rest, "all", None, None, part=stage.rest.parts[0])
    a, b = histogram(report.before.maxima), histogram(report.after.maxima)
    figure = saturation_histogram(
        a.counts,
        b.counts,
        a.edges,
        title="The largest weight of every row, in every head",
        theme=stage.theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    return [figure]


PICTURES: dict[str, Callable[[Stage], list[Any]]] = {
    "map": _map,
    "before_after": _before_after,
    "row": _row,
    "rows": _rows,
    "products": _products,
    "next": _next,
    "words": _two_words,
    "saturation": _saturation,
}


# Pictures of cost


def _model() -> PublishedModel:
    return next(model for model in published_models() if model.name == COSTS_OF)


def _cost(theme: str) -> tuple[list[Any], dict[str, Any]]:
    shape = _model().shape
    lengths = np.unique(np.geomspace(64, 65_536, 21).round().astype(int))
    costs = [layer_cost(shape, int(s)) for s in lengths]
    curves = [
        Curve("attention", lengths, [c.attention for c in costs]),
        Curve("projections", lengths, [c.projections for c in costs]),
        Curve("MLP", lengths, [c.mlp for c in costs]),
    ]
    figure = cost_curves(curves, title=f"One layer of {COSTS_OF}", theme=theme, label_size=LABEL, height=HEIGHT)
    return [figure], {"meeting": meeting_point(shape), "d_model": shape.d_model}


def _step_cost(theme: str) -> tuple[list[Any], dict[str, Any]]:
    shape = _model().shape
    lengths = np.unique(np.geomspace(16, 8_192, 19).round().astype(int))
    curves = [
        Curve(name, lengths, [step_cost(shape, int(t), cache=cached).total for t in lengths])
        for cached, name in ((False, "without the cache"), (True, "with the KV cache"))
    ]
    figure = cost_curves(
        curves,
        x_name="tokens so far",
        y_name="multiply-adds of one more token",
        title=f"One more token of {COSTS_OF}",
        theme=theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    one = step_cost(shape, 1, cache=True)
    return [figure], {"weights": quantity(one.total - one.attention), "pair": one.attention}


def _scores_memory(theme: str) -> tuple[list[Any], dict[str, Any]]:
    lengths = np.unique(np.geomspace(256, 131_072, 19).round().astype(int))
    curves = [
        Curve(name, lengths, [score_bytes(int(s), 32, layers, 2) for s in lengths])
        for layers, name in ((32, "32 layers, as in training"), (1, "one layer"))
    ]
    figure = cost_curves(
        curves,
        unit="bytes",
        y_name="bytes of score matrices",
        title="Score matrices of 32 heads, 2 bytes a number",
        theme=theme,
        label_size=LABEL,
        height=HEIGHT,
    )
    sizes = [quantity(score_bytes(8_192, 32, layers, 2), "bytes") for layers in (1, 32)]
    return [figure], {"one_layer": sizes[0], "all_layers": sizes[1]}


COSTS: dict[str, Callable[[str], tuple[list[Any], dict[str, Any]]]] = {
    "cost": _cost,
    "step_cost": _step_cost,
    "scores_memory": _scores_memory,
}
