"""The numbers that a caption may name, worked out from what its picture is drawn from."""

from typing import Any

import numpy as np

from attnviz.core.measures import first_token_weight, induction_score, previous_token_score
from attnviz.core.products import fewest_products
from attnviz.core.saturation import saturation_report
from attnviz.core.trace import Trace
from attnviz.ui import cache
from attnviz.ui.talk.stage import Stage


def numbers(stage: Stage) -> dict[str, Any]:
    """Return what captions may name."""
    scene, rest = stage.scene, stage.rest
    found: dict[str, Any] = {}
    weights = rest.weights(scene.layer, scene.head)
    if len(weights) > 2:
        found["first"] = float(np.mean(first_token_weight(weights)[1:]))
        found["previous"] = float(np.nanmean(previous_token_score(weights)[2:]))
    if stage.cell is not None:
        found |= _of_cell(stage, stage.cell)
    if rest.next_logits is not None:
        found |= _of_next(rest, stage.after)
        if scene.word and scene.rival:
            found |= _lead(stage)
    if scene.picture in ("map", "before_after") and stage.cell is not None:
        found |= _stripe(stage)
    if scene.picture == "saturation":
        report = saturation_report(rest, "all", None, None, part=rest.parts[0])
        found["saturated"] = _percent(report.before.saturated().share)
        found["saturated_after"] = _percent(report.after.saturated().share)
    return found


def word_ids(stage: Stage) -> tuple[int, int]:
    """Return the first token of the scene's word and of its rival."""
    from attnviz.models.effects import next_word_token  # here, since it brings transformers

    engine = cache.get_engine(stage.choice, lambda sentence: None)
    words = (stage.scene.word, stage.scene.rival)
    one, other = (next_word_token(engine.tokenizer, word, after=stage.scene.text)[0] for word in words)
    return one, other


def _of_cell(stage: Stage, cell: tuple[int, int]) -> dict[str, Any]:
    scene, (query, key) = stage.scene, cell
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


def _of_next(rest: Trace, after: Trace) -> dict[str, Any]:
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
    one, other = word_ids(stage)
    before, after = (trace.next_logits for trace in (stage.rest, stage.after))
    return {"lead": float(before[one] - before[other]), "lead_after": float(after[one] - after[other])}


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
