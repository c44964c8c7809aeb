"""Scenes of a talk: saved so that they point at the same cell again, refused with a sentence where they don't fit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.core.deck import Deck, Scene
from attnviz.ui.talk.prepare import prepare
from attnviz.ui.talk.scenes import show_scene
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


@pytest.mark.parametrize(("query", "key"), [("3", "0"), ("7", "3")])  # not the last “the”; not the first one
def test_a_cell_that_its_words_do_not_name_is_left_out_and_said(open_app: Open, query: str, key: str) -> None:
    visitor = open_app(text=CATS, query=query, key=key)
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.query, scene.key) == ("", "")
    assert any("can't be found again" in note for note in visitor.notes())


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
        (Scene("T", "C", text=""), "scene 2: there is no visible character"),
    ],
)
def test_a_scene_that_cannot_be_worked_out_is_named(open_app: Open, scene: Scene, message: str) -> None:
    deck = Deck("D", (Scene("A", "B", picture="cost"), scene))
    with pytest.raises(ValueError, match=message):
        prepare(deck, "light", lambda done, of: None)


def test_notes_of_several_lines_stay_in_their_scene(open_app: Open) -> None:
    visitor = open_app(page="talk", deck="own")
    visitor.app.session_state["own_deck"] = Deck("D", (Scene("A", "B", picture="cost", notes="one\n\n# two\n- three"),))
    visitor.app.run()
    assert ":gray[one # two - three]" in visitor.says().replace("\\", "")


def test_an_answer_that_stands_in_the_text_twice_or_has_braces_makes_a_scene(open_app: Open) -> None:
    text = "John saw { Mary and John said that he ran"
    for answer, key in (("5", ""), ("2", "{")):
        visitor = open_app(page="pronouns", text=text, pronoun="8", candidates="0_2_5", answer=answer)
        visitor.press("save-scene")
        (scene,) = visitor["own_deck"].scenes
        assert (scene.query, scene.key) == ("he", key)
        assert f"“{key}”" in show_scene(scene, "light").caption or not key
