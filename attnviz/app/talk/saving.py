"""What a page shows, as a scene of a talk."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.pronouns.question import Question
from attnviz.app.scratch.numbers import real_numbers
from attnviz.app.shell.visit import Visit
from attnviz.app.talk.deck import Scene
from attnviz.app.talk.head_pictures import action
from attnviz.app.talk.places import name_token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

WITHOUT_PICTURE = "A talk has no picture of this part of the page."
SAME_MAP = (
    "A talk has nothing to show here: these switches leave the map of {name} as it is, "
    "and this model predicts no next token."
)


def scene_of_page(page: str, visit: Visit | None) -> Scene:
    """Return what is on the screen as a scene.

    Args:
        page: the page's name in the address.
        visit: what the visitor looks at; None if no text could be run.

    Raises:
        ValueError: what is on the screen has no picture in a talk; the text of the error is for the visitor.
    """
    if page == "cost":
        return cost_scene()
    if visit is None:
        raise ValueError("There is no text to make a scene of.")
    if page == "scratch":
        return lesson_scene(visit)
    if page == "generate":
        return generate_scene(visit)
    question = st.session_state.get("question")
    return pronoun_scene(visit, question) if page == "pronouns" and question is not None else explore_scene(visit)


def explore_scene(visit: Visit) -> Scene:
    """Return the visitor's picture as a scene: the map, before and after if something is switched.

    Switches that leave the map as it is, as a head that is off leaves its own, make a scene of the next tokens.

    Raises:
        ValueError: the map stays as it is, and the model predicts no next token.
    """
    switched = visit.switched
    if switched and _same_map(visit):
        if not visit.info.predicts:
            raise ValueError(SAME_MAP.format(name=visit.name))
        return replace(_next_scene(visit), title=f"What comes next: {action(visit.switches)}")
    query, key = st.session_state.query, st.session_state.key
    scene = replace(
        _scene(visit),
        title=f"{visit.name}: " + (f"before and after, {action(visit.switches)}" if switched else "who looks at whom"),
        caption=f"{visit.name}, before and after." if switched else "Where this head looks.",
        picture="before_after" if switched else "map",
        switches=visit.switches if switched else Switches(),
        whole_pass=visit.in_pass or not switched,
    )
    n_tokens = len(visit.rest.tokens)
    if query is None or key is None or max(query, key) >= n_tokens:
        return scene
    said = _weights_of(visit.rest, query, key) if switched else _weight_of(visit.rest, query, key)
    return replace(scene, **_cell(visit.rest, query, key), caption=said)


def _same_map(visit: Visit) -> bool:
    """Return whether a whole pass under the switches leaves the selected head's map as it is."""
    return visit.in_pass and np.allclose(visit.head_before.weights, visit.head_after.weights, atol=1e-6)


def pronoun_scene(visit: Visit, question: Question) -> Scene:
    """Return what the page Pronouns shows as a scene: the row of the word that looks, under the same lead."""
    answer = None if question.answer is None else question.groups[question.answer][-1]
    found = {}
    if answer is not None:
        found["key"], found["key_at"] = name_token(question.trace, answer, by_itself=0)
    found["query"], found["query_at"] = name_token(question.trace, question.query, by_itself=-1)
    named = "" if question.answer is None else question.word(question.candidates[question.answer][-1])
    of_answer = f"{{weight:.2f}} of its weight goes to “{_braced(named)}”." if named else "Where it looks."
    return replace(
        _scene(visit),
        title=f"What does “{question.spoken}” look at?",
        caption=f"{visit.name}: {of_answer}",
        picture="row",
        text=question.lead + question.text,
        **found,
    )


def lesson_scene(visit: Visit) -> Scene:
    """Return the step of From scratch that is open as a scene."""
    chosen = st.session_state
    made_up = chosen.source == "random" and chosen.step not in ("mask", "matches")
    if made_up or chosen.step not in LESSON or visit.info.cannot.get("scores"):
        raise ValueError("A talk shows no random numbers." if made_up else WITHOUT_PICTURE)
    numbers = real_numbers(visit)
    scene = replace(_scene(visit), **_cell(visit.rest, *numbers.cell))
    return replace(scene, **LESSON[chosen.step](scene, visit, _weight_of(visit.rest, *numbers.cell)))


def _mask_scene(visit: Visit) -> dict[str, Any]:
    """Point at the cell above the diagonal with the most weight without the mask: a row before the last."""
    switches = Switches(causal=not visit.rest.causal(visit.layer))
    free = Switches(causal=False)
    ahead = np.triu(visit.rest.weights(visit.layer, visit.head, switches=free), 1)
    query, key = (int(place) for place in np.unravel_index(ahead.argmax(), ahead.shape))
    return {
        "title": "With the causal mask, and without",
        "picture": "before_after",
        "caption": _weights_of(visit.rest, query, key) + " Each row shares its weight among the tokens it may see.",
        "switches": switches,
        "whole_pass": False,
        **_cell(visit.rest, query, key),
    }


def _other_head(visit: Visit) -> int:
    other = st.session_state.get("other-box", st.session_state.other)
    return other if other is not None and other != visit.head else (visit.head + 1) % visit.info.n_heads


LESSON: dict[str, Callable[[Scene, Visit, str], dict[str, Any]]] = {
    "scores": lambda scene, visit, weight: {
        "title": "One score, product by product",
        "picture": "products",
        "caption": "q·k = {product:.1f}, times the model's own factor {score:.1f}, after the softmax {weight:.2f}.",
    },
    "scaling": lambda scene, visit, weight: {
        "title": "With the factor 1/√d, and without",
        "picture": "saturation",
        "caption": "Above 0.99: {saturated} of rows, without the factor {saturated_after}.",
    },
    "mask": lambda scene, visit, weight: _mask_scene(visit),
    "softmax": lambda scene, visit, weight: {"title": "The softmax makes shares", "picture": "row", "caption": weight},
    "several_heads": lambda scene, visit, weight: {
        "title": "Two heads, one query",
        "picture": "rows",
        "other": (visit.layer, _other_head(visit)),
        "caption": f"{visit.name}: {weight}",
    },
    "matches": lambda scene, visit, weight: {
        "title": f"{visit.name}: who looks at whom",
        "picture": "map",
        "caption": weight,
    },
}


def generate_scene(visit: Visit) -> Scene:
    """Return the choice that the page shows as a scene: the text up to it, and what may come next."""
    writing = st.session_state.get("continuation")
    if st.session_state.writing_topic != "steps" or writing is None or not visit.info.predicts:
        raise ValueError(WITHOUT_PICTURE)
    n_before = max(0, st.session_state.written - 1)  # the choice on the screen is the one that wrote the last token
    return _next_scene(visit, "".join(step.token.text for step in writing.steps[:n_before]))


def _next_scene(visit: Visit, written: str = "") -> Scene:
    """Return what comes next after the visitor's text and what was written behind it, as a scene."""
    switched = visit.switched and visit.in_pass
    return replace(
        _scene(visit),
        title="What comes next?",
        caption="“{next}”: {chance}" + (", under the switches {chance_after}." if switched else "."),
        picture="next",
        text=visit.text + written,
        switches=visit.switches if switched else Switches(),
    )


def cost_scene() -> Scene:
    """Return the curves of the page Cost as a scene, with the sizes and the length that are set there."""
    chosen = st.session_state
    sizes: dict[str, Any] = {"sizes_of": chosen.cost_model}
    if not chosen.cost_model:
        sizes = {"sizes": (chosen.cost_d, chosen.cost_heads, chosen.cost_group, chosen.cost_layers)}
    if chosen.cost_part == "grows" and chosen.cost_mlp and not chosen.cost_skip:
        title, picture = "What grows how", "cost"
        caption = "At {tokens:,} tokens attention takes {attention} multiply-adds of a layer, the MLP {mlp}."
    elif chosen.cost_part == "matrix":
        title, picture = "The score matrix", "scores_memory"
        sizes["number_bytes"] = int(chosen.cost_bytes)
        caption = "{tokens:,} tokens, {heads} heads: {one_layer} for one layer, {all_layers} for all {layers}."
    else:
        raise ValueError(WITHOUT_PICTURE)
    return Scene(title, caption, picture=picture, tokens=chosen.cost_s, **sizes)


def _scene(visit: Visit) -> Scene:
    """Return a scene of the visitor's text, model and head."""
    choice = visit.choice
    return Scene(
        "",
        "",
        text=visit.text,
        model=choice.name,
        precision=choice.dtype,
        engine=choice.engine,
        layer=visit.layer,
        head=visit.head,
    )


def _cell(trace: Trace, query: int, key: int) -> dict[str, Any]:
    """Return the attributes of a scene by which it finds a cell again."""
    names = (name_token(trace, query, by_itself=-1), name_token(trace, key, by_itself=0))
    return dict(zip(("query", "query_at", "key", "key_at"), (*names[0], *names[1]), strict=True))


def _weight_of(trace: Trace, query: int, key: int) -> str:
    one, other = (_braced(trace.tokens[token].text.strip() or trace.tokens[token].label) for token in (query, key))
    return f"{{weight:.2f}} of the attention of “{one}” goes to “{other}”."


def _weights_of(trace: Trace, query: int, key: int) -> str:
    return _weight_of(trace, query, key).replace("{weight:.2f}", "{weight:.2f} → {weight_after:.2f}")


def _braced(word: str) -> str:
    """Return a word whose braces are no names of numbers."""
    return word.replace("{", "{{").replace("}", "}}")
