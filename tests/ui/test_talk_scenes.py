"""Scenes of a talk: saved so that they point at the same cell again, refused with a sentence where they don't fit."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import segno

from attnviz.app.show.deck import Deck, Scene
from attnviz.app.show.places import name_token, pieces, place
from attnviz.app.talk.prepare import prepare
from attnviz.app.talk.scenes import show_scene
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
CATS = "the cat saw the dog and the cat ran"  # one token a word


def test_a_saved_scene_points_at_the_cell_that_was_on_the_screen(open_app: Open) -> None:
    visitor = open_app(text=CATS, layer="9", head="4", query="7", key="1")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.text, scene.layer, scene.head, scene.query, scene.key) == (CATS, 9, 4, "cat", "cat")
    weight = visitor.visit.rest.weights(9, 4)[7, 1]
    shown = show_scene(Scene("T", "{weight:.4f}", text=CATS, layer=9, head=4, query="cat", key="cat"), "light")
    assert shown.caption == f"{weight:.4f}"


@pytest.mark.parametrize(
    ("query", "key", "named"),
    [("3", "0", ("the", 1, "the", None)), ("7", "3", ("cat", None, "the", 1)), ("6", "6", ("the", None, "the", 2))],
)
def test_a_word_that_stands_there_twice_is_saved_with_its_place(
    open_app: Open, query: str, key: str, named: tuple
) -> None:
    visitor = open_app(text=CATS, layer="9", head="4", query=query, key=key)
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.query, scene.query_at, scene.key, scene.key_at) == named
    weight = visitor.visit.rest.weights(9, 4)[int(query), int(key)]
    assert show_scene(replace(scene, caption="{weight:.5f}"), "light").caption == f"{weight:.5f}"


@pytest.mark.parametrize("text", [CATS, "Undo unbelievable undoing, naïve 🙂🙂 can't  can\nt", "a cat, a cats cat"])
def test_every_token_is_found_again_by_its_name(smollm2: Any, minilm: Any, text: str) -> None:
    for engine in (smollm2, minilm):
        trace = engine.trace(text)
        for token in trace.tokens:
            for by_itself in (0, -1):
                word, at = name_token(trace, token.index, by_itself=by_itself)
                assert place(trace, word, at, by_itself=by_itself) == token.index


def test_the_words_of_a_cell_are_marked_in_the_text(smollm2: Any) -> None:
    trace = smollm2.trace(CATS)
    said = pieces(trace, 7, 3, "cat", "the")
    assert said == [("the cat saw ", ""), ("the", "key"), (" dog and the ", ""), ("cat", "query"), (" ran", "")]
    assert pieces(trace, None, None, "", "") == [(CATS, "")]
    assert pieces(trace, 7, 7, "", "") == [("the cat saw the dog and the ", ""), ("cat", "key"), (" ran", "")]


def test_what_does_not_fit_a_slide_is_said_with_its_weight(open_app: Open, smollm2: Any) -> None:
    text = " ".join(CATS.split() * 4)  # 36 tokens, of which 24 are drawn
    shown = show_scene(Scene("T", "C", text=text, layer=9, head=4), "light")
    weights = smollm2.trace(text).weights(9, 4)[12:, 12:]
    share = 1 - weights.sum(axis=1).mean()
    assert shown.left_out == f"shown: tokens 12 to 35 of 36; {share:.0%} of their weight lies outside"
    assert shown.sentence[0] == (f"[{shown.left_out}] ", "aside")
    early = Scene("T", "C", text=text, query="cat", query_at=1, key="cat", key_at=0)
    assert show_scene(early, "light").left_out.startswith("shown: tokens 1 to 24 of 36")


def test_a_slide_names_head_precision_and_engine(open_app: Open) -> None:
    scene = Scene("T", "C", text=CATS, layer=9, head=4, engine="numpy")
    assert (
        show_scene(scene, "light").about.startswith("L9 H4 of SmolLM2") and "NumPy" in show_scene(scene, "light").about
    )
    assert "L9 H4 and L9 H3" in show_scene(replace(scene, picture="rows", other=(9, 3), engine="torch"), "light").about


def test_a_link_is_drawn_as_the_code_that_segno_makes(open_app: Open) -> None:
    link = "https://example.org/attention"
    shown = show_scene(Scene("Try it", "C", picture="link", link=link), "light")
    figure = json.loads(shown.pictures[0])
    expected = np.pad(np.array([list(row) for row in segno.make(link, micro=False, error="m").matrix]), 4)
    z = figure["data"][0]["z"]
    drawn = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])
    assert np.array_equal(drawn, expected) and shown.sentence == ((link, ""),)


def test_models_of_several_parts_make_no_scene(open_app: Open, tiny_folder: Callable[..., Path]) -> None:
    folder = str(tiny_folder("t5"))
    visitor = open_app(model=folder, text="w1 w2", layer="1", head="0")
    assert visitor.widget("save-scene").disabled
    with pytest.raises(ValueError, match="several parts"):
        show_scene(Scene("T", "C", model=folder, text="w1 w2"), "light")


def test_finished_maps_make_a_scene_that_points(open_app: Open, tiny_folder: Callable[..., Path]) -> None:
    scene = Scene("T", "{weight:.2f}", model=str(tiny_folder("bloom")), text="w1 w2 w3", query="w3", key="w1")
    assert 0 <= float(show_scene(scene, "light").caption) <= 1


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (
            Scene("T", "{weight.__class__}", text=CATS, query="cat", key="the"),
            "scene 2: the caption of “T”: there is no",
        ),
        (Scene("T", "{stripe:.2f}", text="one two", query="two", key="one"), "there is no {stripe}"),
        (Scene("T", "C", text=CATS, query="zebra", key="cat"), "scene 2: “zebra” isn't in the text$"),
        (Scene("T", "C", model="minilm", text="word " * 600, query="word", key="word"), "was cut"),
        (Scene("T", "C", text=CATS, query="cat", query_at=2), "“cat” is in the text 2 times, so occurrence 2"),
        (Scene("T", "C", text=CATS, query_at=9), "the text has 9 tokens, so there is no token 9"),
        (Scene("T", "C", picture="cost", sizes_of="Eliza"), "sizes_of is one of"),
        (Scene("T", "C", picture="cost", sizes=(65, 4, 1, 1)), "sizes are width, heads"),
        (Scene("T", "C", text=""), "scene 2: there is no visible character"),
    ],
)
def test_a_scene_that_cannot_be_worked_out_is_named(open_app: Open, scene: Scene, message: str) -> None:
    deck = Deck("D", (Scene("A", "B", picture="cost"), scene))
    with pytest.raises(ValueError, match=message):
        prepare(deck, "light", "indigo", lambda done, of, doing: None)


def test_notes_of_several_lines_stay_in_their_scene(open_app: Open) -> None:
    visitor = open_app(page="talk", deck="own")
    visitor.app.session_state["own_deck"] = Deck("D", (Scene("A", "B", picture="cost", notes="one\n\n# two\n- three"),))
    visitor.app.run()
    assert ":gray[one # two - three]" in visitor.says().replace("\\", "")


def test_an_answer_that_stands_in_the_text_twice_or_has_braces_makes_a_scene(open_app: Open) -> None:
    text = "John saw { Mary and John said that he ran"
    for answer, key, at in (("5", "John", 1), ("2", "{", None)):
        visitor = open_app(page="pronouns", text=text, pronoun="8", candidates="0_2_5", answer=answer)
        visitor.press("save-scene")
        (scene,) = visitor["own_deck"].scenes
        assert (scene.query, scene.key, scene.key_at) == ("he", key, at)
        assert f"“{key}”" in show_scene(scene, "light").caption
