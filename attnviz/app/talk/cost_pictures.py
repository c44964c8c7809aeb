"""Pictures of cost for slides, and the numbers that their captions may name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnviz.app.show.deck import Scene
from attnviz.app.talk.stage import HEIGHT, LARGE, WIDTH, Slide
from attnviz.core.cost.formulas import Shape, layer_cost, meeting_point, score_bytes, step_cost
from attnviz.core.cost.published import published_models
from attnviz.figures import Curve, Mark, cost_curves, on_slide, quantity

USUAL = "SmolLM2-135M"  # whose cost is drawn where a scene names no other
USUAL_SCORES = (32, 32)  # heads and layers
USUAL_TOKENS = 8_192
Numbers = dict[str, Any]


def shape_of(scene: Scene) -> tuple[str, Shape]:
    """Return the name and the sizes of the model whose cost a scene draws.

    Raises:
        ValueError: there is no such model, or the sizes don't fit each other.
    """
    if scene.sizes is not None:
        width, heads, group, layers = scene.sizes
        if width % heads or heads % group:
            raise ValueError(
                f"“{scene.title}”: sizes are width, heads, heads that share a key/value head, and layers, each of the "
                f"first two a multiple of the one behind it; got {list(scene.sizes)}"
            )
        own = Shape(width, heads, heads // group, width // heads, 4 * width, layers, gated=False)
        return f"a model of width {width:,}", own
    wanted = scene.sizes_of or USUAL
    found = {model.name: model.shape for model in published_models()}
    if wanted not in found:
        raise ValueError(f"“{scene.title}”: sizes_of is one of {', '.join(found)}; got {wanted}")
    return wanted, found[wanted]


def _cost(scene: Scene, theme: str) -> tuple[Slide, Numbers]:
    name, shape = shape_of(scene)
    meeting, tokens = meeting_point(shape), scene.tokens or USUAL_TOKENS
    lengths = _lengths(64, 65_536, scene.tokens, round(meeting))
    costs = [layer_cost(shape, int(s)) for s in lengths]
    others = [c.projections + c.mlp for c in costs]
    curves = [
        Curve("attention", lengths, [c.attention for c in costs]),
        Curve("projections and MLP together", lengths, others),
        Curve("projections", lengths, [c.projections for c in costs]),
        Curve("MLP", lengths, [c.mlp for c in costs]),
    ]
    one = layer_cost(shape, 1)
    mark = Mark(meeting, meeting * (one.projections + one.mlp), f"equal at {meeting:,.0f} tokens")
    at = layer_cost(shape, tokens)
    marks = [mark] + [Mark(tokens, at.attention, f"{tokens:,} tokens", above=False)] * bool(scene.tokens)
    slide = _curves(scene, theme, curves, y_name="multiply-adds", title=f"One layer of {name}", marks=marks)
    parts = {part: quantity(getattr(at, part)) for part in ("attention", "projections", "mlp")}
    return slide, {"meeting": meeting, "d_model": shape.d_model, "tokens": tokens, **parts}


def _step_cost(scene: Scene, theme: str) -> tuple[Slide, Numbers]:
    name, shape = shape_of(scene)
    lengths = _lengths(16, 8_192, scene.tokens)
    curves = [
        Curve(said, lengths, [step_cost(shape, int(t), cache=cached).total for t in lengths])
        for cached, said in ((False, "without the cache"), (True, "with the KV cache"))
    ]
    title = f"One more token of {name}"
    one = step_cost(shape, 1, cache=True)
    weights = one.total - one.attention
    equal = weights / one.attention
    inside = lengths[0] <= equal <= lengths[-1]
    marks = [Mark(equal, 2 * weights, f"half is attention at {equal:,.0f} tokens")] if inside else []
    slide = _curves(scene, theme, curves, x_name="tokens so far", y_name="multiply-adds", title=title, marks=marks)
    return slide, {"weights": quantity(weights), "pair": one.attention}


def _scores_memory(scene: Scene, theme: str) -> tuple[Slide, Numbers]:
    shape = shape_of(scene)[1] if scene.sizes is not None or scene.sizes_of else None
    heads, layers = (shape.n_heads, shape.n_layers) if shape else USUAL_SCORES
    tokens, size = scene.tokens or USUAL_TOKENS, scene.number_bytes
    lengths = _lengths(256, 131_072, scene.tokens)
    held = {f"{layers} layers, as in training": layers, "one layer": 1}
    curves = [Curve(said, lengths, [score_bytes(int(s), heads, n, size) for s in lengths]) for said, n in held.items()]
    title = f"Score matrices of {heads} heads, {size} bytes a number"
    marks = [
        Mark(tokens, score_bytes(tokens, heads, n, size), quantity(score_bytes(tokens, heads, n, size), "bytes"))
        for n in sorted({1, layers})
    ]
    slide = _curves(scene, theme, curves, unit="bytes", y_name="bytes", title=title, marks=marks)
    named = {"one_layer": 1, "all_layers": layers}
    sizes = {name: quantity(score_bytes(tokens, heads, n, size), "bytes") for name, n in named.items()}
    return slide, {**sizes, "tokens": tokens, "heads": heads, "layers": layers, "bytes": size}


def _lengths(lowest: int, highest: int, *named: int) -> np.ndarray:
    """Return lengths between two ends, evenly apart on a logarithmic axis, and those named that are not 0."""
    places = [length for length in named if length]
    ends = min(lowest, *places, highest), max(highest, *places, lowest)
    return np.unique([*np.geomspace(*ends, 21).round().astype(int), *places])


def _curves(scene: Scene, theme: str, curves: list[Curve], **settings: Any) -> Slide:
    look = settings | {"theme": theme, "label_size": LARGE, "height": HEIGHT}
    figure = cost_curves(curves, marked=scene.tokens or None, **look)
    figure.update_traces(line_width=4, selector={"mode": "lines"})
    return Slide((on_slide(figure, WIDTH, HEIGHT),))


COST_PICTURES: dict[str, Callable[[Scene, str], tuple[Slide, Numbers]]] = {
    "cost": _cost,
    "step_cost": _step_cost,
    "scores_memory": _scores_memory,
}
