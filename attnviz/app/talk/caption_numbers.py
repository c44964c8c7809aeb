"""The numbers that a caption may name, worked out from what its picture is drawn from."""

import math
from string import Formatter
from typing import Any

import numpy as np

from attnviz.app.shell import cache
from attnviz.app.show.deck import Scene
from attnviz.app.talk.stage import Stage
from attnviz.core.attention.products import fewest_products
from attnviz.core.heads.measures import first_token_weight, induction_score, previous_token_score
from attnviz.core.softmax.sharpness import saturation_report
from attnviz.core.trace.records import Float
from attnviz.core.trace.trace import Trace

STRIPED = ("map", "before_after")
COST_NAMES: dict[str, tuple[str, ...]] = {  # pictures without a model
    "cost": ("meeting", "d_model", "tokens", "attention", "projections", "mlp"),
    "step_cost": ("weights", "pair"),
    "scores_memory": ("one_layer", "all_layers", "tokens", "heads", "layers", "bytes"),
    "link": (),
}
CELL, WORDS, ALWAYS = "query and key lines", "word and rival lines", ""
NEEDS = {  # names of numbers in captions, and what a scene must have for them
    **dict.fromkeys(("first", "previous", "next", "chance", "chance_after", "rank_after"), ALWAYS),
    **dict.fromkeys(("weight", "weight_after", "product", "score", "few", "width"), CELL),
    **dict.fromkeys(("lead", "lead_after", "ratio", "ratio_after"), WORDS),
    **dict.fromkeys(("stripe", "stripe_after"), "the picture “map” or “before_after”"),
    **dict.fromkeys(("saturated", "saturated_after"), "the picture “saturation”"),
}


def check_caption(scene: Scene) -> None:
    """Check the names in a scene's caption without running its model.

    Raises:
        ValueError: it names a number that no such scene has; the text of the error says what the number needs.
    """
    met = {
        ALWAYS: True,
        CELL: bool(scene.query or scene.query_at is not None) and bool(scene.key or scene.key_at is not None),
        WORDS: bool(scene.word and scene.rival),
        NEEDS["stripe"]: scene.picture in STRIPED,
        NEEDS["saturated"]: scene.picture == "saturation",
    }
    known = COST_NAMES.get(scene.picture, tuple(NEEDS))
    for _, name, _, _ in Formatter().parse(scene.caption):
        if name is not None and name not in known:
            raise ValueError(f"there is no {{{name}}} in this picture, only {', '.join(known) or 'no number'}")
        if name in NEEDS and not met[NEEDS[name]]:
            raise ValueError(f"{{{name}}} needs {NEEDS[name]}")


def numbers(stage: Stage) -> dict[str, Any]:
    """Return what captions may name."""
    scene, rest = stage.scene, stage.rest
    found: dict[str, Any] = {}
    weights = stage.head_before.weights
    if len(weights) > 2:
        found["first"] = float(np.mean(first_token_weight(weights)[1:]))
        found["previous"] = float(np.nanmean(previous_token_score(weights)[2:]))
    if stage.cell is not None:
        found |= _of_cell(stage, stage.cell)
    before, after = rest.next_logits, stage.after.next_logits
    if before is not None and after is not None:
        found |= _of_next(rest, stage.after)
        if scene.word and scene.rival:
            found |= _lead(before, after, *word_ids(stage))
    if scene.picture in STRIPED:
        found |= _stripe(stage)
    if scene.picture == "saturation":
        report = saturation_report(rest)
        found["saturated"] = _percent(report.before.saturated().share)
        found["saturated_after"] = _percent(report.after.saturated().share)
    return found


def word_ids(stage: Stage) -> tuple[int, int]:
    """Return the first token of the scene's word and of its rival."""
    from attnviz.models.scratch.effects import next_word_token

    engine = cache.get_engine(stage.choice)
    words = (stage.scene.word, stage.scene.rival)
    one, other = (next_word_token(engine.tokenizer, word, after=stage.scene.text)[0] for word in words)
    return one, other


def _of_cell(stage: Stage, cell: tuple[int, int]) -> dict[str, Any]:
    (query, key), head = cell, stage.head_before
    found = {"weight": head.cell(*cell), "weight_after": stage.head_after.cell(*cell)}
    if "scores" in stage.rest.model.cannot:
        return found
    q, k, _ = head.qkv
    products = q[query].astype(np.float64) * k[key]
    return found | {
        "product": float(products.sum()),
        "score": float(head.scores[query, key]),
        "few": len(fewest_products(products)),
        "width": len(products),
    }


def _of_next(rest: Trace, after: Trace) -> dict[str, Any]:
    before, now = rest.next_probabilities(), after.next_probabilities()
    best = int(before.argmax())
    return {
        "next": rest.label_of(best).lstrip("·") or "a space",
        "chance": _percent(before[best]),
        "chance_after": _percent(now[best]),
        "rank_after": int((now > now[best]).sum()) + 1,
    }


def _lead(before: Float, after: Float, one: int, other: int) -> dict[str, float]:
    """Return the logit of one word minus that of its rival, at rest and under the switches.

    The exponentials are how many times as likely as its rival the word is.
    """
    leads = {"": float(before[one] - before[other]), "_after": float(after[one] - after[other])}
    return {f"lead{when}": lead for when, lead in leads.items()} | {
        f"ratio{when}": math.exp(lead) for when, lead in leads.items()
    }


def _stripe(stage: Stage) -> dict[str, float]:
    """Return the mean weight on what followed the same token before, at rest and under the switches.

    Nothing for a text that repeats no token.
    """
    ids = [token.id for token in stage.rest.tokens]
    heads = (stage.head_before, stage.head_after)
    scores = [np.asarray(induction_score(head.weights, ids)) for head in heads]
    if not np.isfinite(scores[0]).any():
        return {}
    return {name: float(np.nanmean(score)) for name, score in zip(("stripe", "stripe_after"), scores, strict=True)}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"
