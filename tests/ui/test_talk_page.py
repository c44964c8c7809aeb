"""The page Talk: shipped decks worked out, scenes saved from other pages, a deck of one's own edited."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from attnviz.app.show import own_deck as own
from attnviz.app.show.deck import Deck, Scene, deck_text, read_deck
from attnviz.app.talk.caption_numbers import COST_NAMES, check_caption
from attnviz.app.talk.cost_pictures import COST_PICTURES
from attnviz.app.talk.scenes import show_scene
from attnviz.app.talk.shipped import shipped_decks
from attnviz.core.trace.switches import Switches
from tests.ui.conftest import Visitor
from tests.ui.shown import differences, scene_shown
from tests.ui.store_addresses import read_store

Open = Callable[..., Visitor]
DECKS = shipped_decks()


SCENES = read_store()["scenes"]


def test_the_shipped_decks_have_the_scenes_that_are_stored() -> None:
    titles = {name: [scene["title"] for scene in scenes] for name, scenes in SCENES.items()}
    assert titles == {name: [scene.title for scene in deck.scenes] for name, deck in DECKS.items()}


@pytest.mark.parametrize(
    ("scene", "stored"),
    [
        pytest.param(scene, stored, id=f"{name}: {scene.title}")
        for name, deck in DECKS.items()
        for scene, stored in zip(deck.scenes, SCENES[name], strict=True)
    ],
)
def test_every_shipped_scene_shows_what_it_showed(open_app: Open, scene: Scene, stored: dict[str, Any]) -> None:
    shown = show_scene(scene, "dark")
    assert shown.pictures and shown.alt and "{" not in shown.caption
    assert differences(stored, scene_shown(shown)) == []


def test_numbers_of_captions_are_those_of_the_model(open_app: Open, smollm2: Any) -> None:
    captions = {scene.title: show_scene(scene, "light").caption for scene in DECKS["ten_minutes"].scenes}
    scene = DECKS["ten_minutes"].scenes[0]
    trace = smollm2.trace(scene.text)
    labels = [token.label for token in trace.tokens]
    weight = trace.weights(13, 8)[labels.index("·it"), labels.index("·car")]
    assert f"{weight:.2f}" == "0.81" and "0.81" in captions["What does “it” mean?"]
    assert "“Paris”: 77.3 %" in captions["… and what becomes of the next word"]
    assert "rank 338" in captions["… and what becomes of the next word"]
    assert "rank 12,847" in captions["The causal mask"]
    assert "5.9 % of rows, without the factor in 80.7 %" in captions["Why divide by the root of d?"]


def test_the_mask_is_shown_at_a_cell_that_it_forbids(open_app: Open) -> None:
    visitor = open_app(page="scratch", step="mask")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    free = visitor.visit.rest.weights(13, 8, switches=Switches(causal=False))
    largest = max(free[query, key] for query in range(len(free)) for key in range(query + 1, len(free)))
    shown = show_scene(scene, "light")
    assert scene.picture == "before_after" and f"0.00 → {largest:.2f} of the attention" in shown.caption


def test_a_map_before_and_after_names_switch_and_numbers(open_app: Open) -> None:
    visitor = open_app(text="The pictures on the wall", layer="26", head="0", off="16.0", query="4", key="1")
    own, other = visitor.visit.rest, visitor.visit.after
    visitor.press("save-scene")
    (changed,) = visitor["own_deck"].scenes
    before, after = (trace.weights(26, 0)[4, 1] for trace in (own, other))
    assert changed.title == "L26 H0: before and after, L16 H0 off" and changed.picture == "before_after"
    assert show_scene(changed, "light").caption.startswith(f"{before:.2f} → {after:.2f} of")


def test_a_head_off_itself_makes_bars_or_a_note(open_app: Open) -> None:
    visitor = open_app(text="The pictures on the wall", layer="26", head="0", off="26.0")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.picture, scene.title) == ("next", "What comes next: L26 H0 off") and scene.switches.ablate
    visitor = open_app(model="minilm", text="It was too tired.", layer="3", head="1", off="3.1")
    visitor.press("save-scene")
    assert any("nothing to show" in note for note in visitor.notes())


@pytest.mark.parametrize("scene", [scene for deck in DECKS.values() for scene in deck.scenes], ids=lambda s: s.title)
def test_captions_of_shipped_decks_pass_the_check(scene: Scene) -> None:
    check_caption(scene)


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (Scene("T", "{weight:.2f}", query="it"), "{weight} needs query and key lines"),
        (Scene("T", "{ratio:.1f}", word="is"), "{ratio} needs word and rival lines"),
        (Scene("T", "{stripe:.1f}", picture="row"), "{stripe} needs the picture “map” or “before_after”"),
        (Scene("T", "{wait}", picture="link"), "there is no {wait} in this picture, only no number"),
        (Scene("T", "{", picture="link"), "Single"),
    ],
)
def test_a_caption_says_what_it_lacks(scene: Scene, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_caption(scene)


@pytest.mark.parametrize("picture", ["cost", "step_cost", "scores_memory"])
def test_the_names_known_for_a_cost_are_those_of_its_picture(picture: str) -> None:
    assert set(COST_PICTURES[picture](Scene("T", "C", picture=picture), "light")[1]) == set(COST_NAMES[picture])


def test_ratios_are_those_of_the_probabilities(open_app: Open) -> None:
    scene = next(scene for scene in DECKS["ten_minutes"].scenes if scene.picture == "words")
    shown = show_scene(replace(scene, caption="{ratio:.3f} {ratio_after:.3f}"), "light")
    before, after = (json.loads(shown.pictures[0])["data"][i]["text"] for i in (0, 1))
    for said, bars in zip(shown.caption.split(), (before, after), strict=True):
        one, other = (float(text.split()[0]) for text in bars)
        assert float(said) == pytest.approx(one / other, rel=0.02)


def test_scenes_are_saved_from_explore_and_from_pronouns(open_app: Open) -> None:
    visitor = open_app(layer="9", head="4", query="6", key="0")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.picture, scene.layer, scene.head, scene.query, scene.key) == ("map", 9, 4, "she", "Mary")
    visitor = open_app(page="pronouns", text="Anna told Tom that she had left.", layer="9", head="4")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.picture, scene.query, scene.key) == ("row", "she", "Anna")
    assert scene.text == "\nAnna told Tom that she had left."
    assert show_scene(scene, "light").caption.startswith("L9 H4: 0.")


def test_a_deck_of_ones_own_is_edited_as_toml(open_app: Open) -> None:
    visitor = open_app()
    visitor.press("save-scene")
    deck = visitor["own_deck"]
    visitor = open_app(page="talk", deck="own")
    assert "Your deck has no scene yet" in visitor.says()
    visitor.app.session_state["own_deck"] = deck
    visitor.app.run()
    text = deck_text(deck).replace(deck.scenes[0].title, "My scene")
    area = next(area for area in visitor.app.text_area if area.label == "The deck as TOML")
    area.set_value(text)
    visitor.press("Apply")
    assert visitor["own_deck"] == read_deck(text) and "My scene" in visitor.says() and "Applied" in visitor.says()
    wrong = text.replace(deck.scenes[0].caption, "{weight:.2f}")
    next(area for area in visitor.app.text_area if area.label == "The deck as TOML").set_value(wrong)
    visitor.press("Apply")
    assert "{weight} needs query and key lines" in visitor.says().replace("\\", "") and "Applied" not in visitor.says()
    next(area for area in visitor.app.text_area if area.label == "The deck as TOML").set_value("[[scene]]")
    visitor.press("Apply")
    assert "Scene 1: a scene needs a title" in visitor.says() and visitor["own_deck"] == read_deck(text)


@pytest.mark.parametrize(
    ("step", "picture"),
    [
        ("scores", "products"), ("scaling", "saturation"), ("softmax", "row"),
        ("several_heads", "rows"), ("matches", "map"),
    ],
)  # fmt: skip
def test_steps_of_the_lesson_are_saved(open_app: Open, step: str, picture: str) -> None:
    visitor = open_app(page="scratch", step=step)
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.picture, scene.layer, scene.head, scene.query) == (picture, 13, 8, "it")
    assert "{" not in show_scene(scene, "light").caption


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("scratch", {"step": "position"}),
        ("scratch", {"step": "weighted_sum"}),
        ("scratch", {"step": "scores", "source": "random"}),
        ("generate", {"writing_topic": "memory"}),
        ("cost", {"cost_part": "flash"}),
        ("cost", {"cost_skip": "on"}),
    ],
)
def test_what_has_no_picture_in_a_talk_is_said(open_app: Open, page: str, address: dict[str, str]) -> None:
    visitor = open_app(page=page, **address)
    visitor.press("save-scene")
    assert any("A talk" in note for note in visitor.notes()) and "own_deck" not in visitor.app.session_state


def test_what_was_written_is_saved(open_app: Open) -> None:
    visitor = open_app(page="generate", text="The capital of France is", written="1")
    visitor.press("save-scene")
    (scene,) = visitor["own_deck"].scenes
    assert (scene.picture, scene.text) == ("next", "The capital of France is")  # the choice that the page shows
    assert show_scene(scene, "light").caption == "“Paris”: 77.3 %."
    visitor = open_app(page="generate", text="The capital of France is", written="2")
    visitor.press("save-scene")
    assert visitor["own_deck"].scenes[-1].text == "The capital of France is Paris"


def test_costs_are_saved_with_the_sizes_of_the_page(open_app: Open) -> None:
    visitor = open_app(page="cost", cost_model="GPT-2 small", cost_s="2048")
    visitor.press("save-scene")
    visitor.choose("cost_part", "matrix")
    visitor.choose("cost_model", "")
    visitor.choose("cost_bytes", "4")
    visitor.press("save-scene")
    grows, matrix = visitor["own_deck"].scenes
    assert (grows.picture, grows.sizes_of, grows.tokens) == ("cost", "GPT-2 small", 2048)
    assert show_scene(grows, "light").caption == (
        "At 2,048 tokens attention takes 6.4\u00a0×\u00a010⁹ multiply-adds of a layer, the MLP 9.7\u00a0×\u00a010⁹."
    )  # 2 · 2,048² · 768 and 2 · 2,048 · 768 · 3,072
    assert (matrix.picture, matrix.sizes, matrix.number_bytes) == ("scores_memory", (768, 12, 1, 12), 4)
    assert "201\u00a0MB for one layer" in show_scene(matrix, "light").caption  # 12 · 2,048² · 4 bytes


def test_a_talk_and_costs_need_no_text(open_app: Open) -> None:
    for page, widget in (("talk", "prepare"), ("cost", "cost-curves")):
        visitor = open_app(page=page, text=" ")
        assert visitor.has(widget) and not visitor.errors() and not visitor.crashes()
    visitor.choose("cost_part", "flash")
    assert "needs a text" in visitor.says() and not visitor.crashes()


def test_a_talk_is_worked_out_while_the_page_looks_and_what_fails_is_named(open_app: Open) -> None:
    cost = Scene("A", "B", picture="cost")
    for scene, widget in ((cost, "start-talk"), (replace(cost, sizes_of="Eliza"), "prepare")):
        visitor = open_app(page="talk", deck="own")
        visitor.app.session_state["own_deck"] = Deck("D", (cost, scene))
        visitor.app.run()
        visitor.press("prepare")
        visitor.wait_for(widget)
    assert "got Eliza" in visitor.says()
    assert not visitor.crashes()


def test_a_deck_is_emptied(open_app: Open) -> None:
    visitor = open_app(page="talk", deck="own")
    visitor.app.session_state["own_deck"] = read_deck(deck_text(DECKS["what_it_costs"]))
    visitor.app.run()
    assert visitor.component("own-deck")["text"] == deck_text(DECKS["what_it_costs"])
    visitor.press("empty-deck")
    assert visitor.component("own-deck")["text"] == "" and "Your deck has no scene yet" in visitor.says()


class Session(dict[str, Any]):
    """A visitor's session, outside a page."""

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def test_a_deck_that_the_browser_tells_of_late_stays_emptied(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own.st, "session_state", Session())
    own.set_own_deck(Deck("My talk", DECKS["who_is_it"].scenes[:1]))  # saved before the browser told
    kept = deck_text(DECKS["what_it_costs"])
    own._take_back(kept)
    assert own.own_deck().scenes == (*DECKS["what_it_costs"].scenes, *DECKS["who_is_it"].scenes[:1])
    own.set_own_deck(own.EMPTY)
    own._take_back(kept)
    assert own.own_deck() == own.EMPTY
