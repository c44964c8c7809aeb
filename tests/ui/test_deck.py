"""Decks: read, refused with the scene named, written back; the shipped ones are sound."""

import pytest

from attnviz.app.show.deck import PICTURES, Deck, Scene, deck_text, fill_caption, read_deck
from attnviz.app.talk.shipped import shipped_decks
from attnviz.core.trace.switches import Switches

FULL = """
title = "A talk"
[[scene]]
title = "Say \\"it\\""
caption = "{weight:.2f}"
picture = "before_after"
text = "to be\\nor not"
layer = 3
head = 1
other = [9, 3]
query = "be"
query_at = 0
key = "to"
key_at = 1
precision = "bfloat16"
engine = "numpy"
sizes_of = "GPT-2 small"
sizes = [64, 4, 2, 3]
tokens = 100
number_bytes = 4
link = "https://example.org/?a=1"
causal = "off"
temperature = 2.0
off = [[1, 2]]
forbid = [["all", 0, 1, 0]]
whole_pass = false
minutes = 1.5
"""


def test_a_scene_is_read_as_it_is_written():
    scene = read_deck(FULL).scenes[0]
    switches = Switches(False, True, 2.0, frozenset({(1, 2)}), frozenset({(None, 0, 1, 0)}))
    assert scene.switches == switches and scene.other == (9, 3) and not scene.whole_pass
    assert (scene.query_at, scene.key_at, scene.precision, scene.engine) == (0, 1, "bfloat16", "numpy")
    assert (scene.sizes, scene.tokens, scene.number_bytes) == ((64, 4, 2, 3), 100, 4)
    assert (scene.title, scene.text, scene.minutes) == ('Say "it"', "to be\nor not", 1.5)


@pytest.mark.parametrize(
    "deck",
    [*shipped_decks().values(), read_deck(FULL), Deck("Ü\t“x”", (Scene("a\\b", "c\u0007", text="#]=\n\x7f"),))],
)
def test_what_is_written_reads_back_the_same(deck):
    assert read_deck(deck_text(deck)) == deck


def test_what_is_as_usual_is_not_written():
    assert deck_text(Deck("A", (Scene("B", "C"),))) == 'title = "A"\n\n[[scene]]\ntitle = "B"\ncaption = "C"\n'


def test_the_lines_that_a_speaker_changes_are_written_for_every_text():
    lines = deck_text(Deck("A", (Scene("B", "C", text="it"), Scene("D", "E", picture="cost")))).splitlines()
    assert {'picture = "map"', "layer = 0", "head = 0"} <= set(lines) and lines.count("layer = 0") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "isn't a deck"),
        ("title = 'x'", "1 to 100 scenes"),
        ("[[scene]]\ntitle = 'a'", "scene 1: a scene needs a caption"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\npicture = 'film'", "scene 1: picture is one of map"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\ncolour = 1", "scene 1: a scene has no colour"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nlayer = -1", "scene 1: layer must be a whole number"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\ncausal = 'no'", "scene 1: causal is one of own, on, off"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\ntext = 3", "scene 1: text must be a text"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\noff = [1]", "scene 1: "),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\noff = [[inf, 0]]", "scene 1: "),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nminutes = 'x'", "scene 1: minutes must be a number"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nminutes = inf", "scene 1: minutes must be a number"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nlayer = true", "scene 1: layer must be a whole number"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nscaled = 'no'", "scene 1: scaled must be true or false"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nwhole_pass = 'no'", "scene 1: whole_pass must be true or false"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\npicture = ['map']", "scene 1: picture is one of map"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nswitches = 1", "scene 1: a scene has no switches"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nquery_at = -1", "scene 1: query_at must be a whole number from 0"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nkey_at = '1'", "scene 1: key_at must be a whole number from 0"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nengine = 'jax'", "scene 1: engine is one of torch, numpy"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nother = [1]", "scene 1: other must be a list of 2 numbers"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nsizes = [8, 2, 0, 1]", "scene 1: each number of sizes must be"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\nlink = 'javascript:x'", "scene 1: link must be an address"),
        ("[[scene]]\ntitle = 'a'\ncaption = 'b'\npicture = 'link'", "scene 1: the picture “link” needs a link"),
        ("a = " + "[" * 5000, "too deep"),
        ("[[scene]]\ntitle='a'\ncaption='b'\n[[scene]]\ntitle = 'a'\ncaption = 'b'\ntemperature = 0", "scene 2: "),
    ],
)
def test_what_is_no_deck_is_refused_with_the_scene_named(text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read_deck(text)


def test_a_caption_gets_its_numbers():
    numbers = {"weight": 0.8149, "rank_after": 12847, "next": "art"}
    said = fill_caption("{weight:.2f} {weight:.0%} {rank_after:,} “{next}” {{x}} <b> $", numbers)
    assert said == "0.81 81% 12,847 “art” {x} <b> $"


@pytest.mark.parametrize(
    "caption",
    ["{0}", "{}", "{other}", "{weight.__class__}", "{weight.real}", "{weight[0]}", "{next[0]}", "{weight!r}", "{",
     "{next:>99999999}", "{weight:.99999f}", "{weight:9999}", "{weight:d}", "{weight:{next}}"],
)  # fmt: skip
def test_a_caption_reaches_nothing_but_the_numbers(caption):
    with pytest.raises(ValueError):
        fill_caption(caption, {"weight": 0.8149, "next": "art"})


def test_three_decks_ship_and_their_pictures_are_known():
    decks = shipped_decks()
    assert set(decks) == {"ten_minutes", "who_is_it", "what_it_costs"}
    assert {scene.picture for deck in decks.values() for scene in deck.scenes} <= set(PICTURES)
    assert decks["ten_minutes"].minutes == 10
