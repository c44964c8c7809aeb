"""The examples of the page Pronouns: their words are there, and each shows on its model what its caption says."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from attnviz.app.pages import FIELDS
from attnviz.app.pronouns.pronoun_examples import Example, all_examples, example_named
from attnviz.app.shell.fields import LANDING
from attnviz.core.pronouns.mentions import align_words, changed_words, language_of
from attnviz.core.pronouns.one_sentence import all_heads_looks, word_tokens
from attnviz.core.pronouns.scoreboard import read_boards
from attnviz.core.text.words import split_words
from attnviz.models.load.by_name import load
from attnviz.models.load.catalogue import CATALOGUE
from attnviz.models.scan.sentences import lead_text
from attnviz.models.scratch.effects import direct_effects, logits_without, next_word_token
from tests.ui.conftest import Visitor

LANGUAGES = {"English": "en", "Deutsch": "de", "Svenska": "sv"}
every_example = pytest.mark.parametrize("example", all_examples(), ids=lambda example: example.name)


@cache
def loaded(model: str, engine: str = "torch") -> Any:
    return load(model, engine=engine)


def engine_of(example: Example) -> Any:
    return loaded(example.model)


def looks(example: Example, text: str = "") -> np.ndarray:
    """Return (layers, heads, candidates) of the example's sentence, or of another with its words in the same places."""
    text = text or example.text
    engine = engine_of(example)
    lead = lead_text(engine) if example.lead == "on" else ""
    pronoun, candidates, _ = example.question()
    there = align_words(example.text, text)
    trace = engine.trace(lead + text)
    tokens = word_tokens(trace.tokens, split_words(text), offset=len(lead))
    return all_heads_looks(trace, tokens[there[pronoun]][-1], [tokens[there[word]] for word in candidates])


def look(example: Example, word: str, *, layer: int | None = None, head: int | None = None, text: str = "") -> float:
    """Return what a head, the example's if none is named, gives to one of its candidates."""
    row = looks(example, text)[example.layer if layer is None else layer, example.head if head is None else head]
    return float(row[example.candidates.index(word)])


def numpy_model() -> Any:
    return loaded("smollm2", "numpy").model


def duel(example: Example, *off: tuple[int, int]) -> tuple[list[int], tuple[int, int], float]:
    """Return the text's tokens, the two words' tokens, and the lead of the first with some heads off."""
    engine = engine_of(example)
    first, second = (next_word_token(engine.tokenizer, w, after=example.text)[0] for w in (example.word, example.rival))
    lead = lead_text(engine) if example.lead == "on" else ""
    ids = [token.id for token in engine.trace(lead + example.text).tokens]
    logits = logits_without(numpy_model(), ids, list(off))
    return ids, (first, second), float(logits[first] - logits[second])


# --- the file ---


@pytest.mark.parametrize("what", ["name", "title", "text"])
def test_no_two_share_a_name_a_title_or_a_text(what: str) -> None:
    counts = Counter(getattr(example, what).casefold() for example in all_examples())
    assert [entry for entry, count in counts.items() if count > 1] == []


def test_all_three_languages_have_examples_and_they_are_in_them() -> None:
    assert {example.language for example in all_examples()} == set(LANGUAGES)
    wrong = [e.name for e in all_examples() if language_of(e.text) != LANGUAGES[e.language]]
    assert wrong == []


@every_example
def test_it_fits_the_page(example: Example) -> None:
    assert example.model in CATALOGUE
    assert 0 < len(example.title) <= 28
    assert example.caption.count("{weights}") == 1
    assert FIELDS["topic"].read(example.topic) and FIELDS["lead"].read(example.lead)
    assert bool(example.word) == bool(example.rival) == (example.topic == "matters")


@every_example
def test_its_words_are_in_the_text_and_the_answer_is_a_candidate(example: Example) -> None:
    pronoun, candidates, answer = example.question()
    words = [example.text[start:end] for start, end in split_words(example.text)]
    assert words[pronoun] == example.pronoun and example.pronoun not in words[pronoun + 1 :]
    assert [words[place] for place in candidates] == list(example.candidates)
    assert answer in candidates and pronoun not in candidates
    if engine_of(example).info.causal:
        assert all(place < pronoun for place in candidates)


@every_example
def test_its_head_exists(example: Example) -> None:
    info = engine_of(example).info
    assert example.layer in info.layers and 0 <= example.head < info.n_heads


@pytest.mark.parametrize("example", [e for e in all_examples() if e.pair], ids=lambda example: example.name)
def test_the_other_sentence_differs_little_and_has_all_words_asked_about(example: Example) -> None:
    changed, _ = changed_words(example.text, example.pair)
    assert 1 <= len(changed) <= 5 and len(split_words(example.text)) == len(split_words(example.pair))


# --- what the captions say ---


def _station() -> None:
    station = example_named("station")
    assert look(station, "Peter") > 0.4 > 0.1 > look(station, "Laura")
    assert look(station, "Laura", text=station.pair) > 3 * look(station, "Peter", text=station.pair)  # she
    assert look(station, "Laura", layer=9, head=3) > 0.5 > look(station, "Peter", layer=9, head=3)  # the other person


def _house() -> None:
    house = example_named("house")
    assert look(house, "prince") > 0.5 > 0.1 > look(house, "princess")
    assert look(house, "princess", layer=9, head=4) > 0.5 > look(house, "prince", layer=9, head=4)
    board = next(b for b in read_boards() if (b.model, b.lang, b.kind) == ("smollm2", "en", "names"))
    assert board.scores.accuracy[9, 3] < 0.1 < 0.88 < board.scores.accuracy[9, 4]  # "does so nearly always"


def _car() -> None:
    car = example_named("car")
    assert look(car, "car") > 0.5 > 0.1 > look(car, "Mary")


def _many() -> None:
    many = example_named("many")
    assert look(many, "chairs") > 5 * look(many, "lamp")
    assert look(many, "lamp", text=many.pair) > 5 * look(many, "chairs", text=many.pair)


def _tired() -> None:
    tired = example_named("tired")
    narrow = {word: look(tired, word, text=tired.pair) for word in ("horse", "gate")}
    assert look(tired, "horse") > 0.5 and narrow["gate"] - look(tired, "gate") > 0.1  # moves weight to the gate
    assert narrow["horse"] > narrow["gate"]  # and still no flip


def _pictures() -> None:
    pictures = example_named("pictures")
    assert look(pictures, "pictures") > 0.5
    ids, pair, lead = duel(pictures)
    assert lead > 1 and duel(pictures, (26, 0))[2] < 0.5 * lead  # most of the lead is gone
    assert direct_effects(numpy_model(), ids, pair).heads[26, 0] > 1
    # The head that the page names beside it: it looks as well, and changes next to nothing.
    assert look(pictures, "pictures", layer=13, head=8) > 0.3
    assert abs(duel(pictures, (13, 8))[2] - lead) < 0.05 * lead


def _sugar() -> None:
    sugar = example_named("sugar")
    assert look(sugar, "Sarah") > 0.4 and look(sugar, "Sarah") > 2 * look(sugar, "Daniel")
    ids, pair, lead = duel(sugar)
    assert direct_effects(numpy_model(), ids, pair).heads[24, 4] < -0.5
    assert duel(sugar, (24, 4))[2] > lead > 0  # without it Sarah is ahead by more


def _hunger() -> None:
    hunger = example_named("hunger")
    assert look(hunger, "Anna") > 0.4 > 0.1 > look(hunger, "Regen")
    _no_reference("de")


def _hund() -> None:
    hund = example_named("hund")
    best = next(b for b in read_boards() if (b.model, b.lang, b.kind) == ("smollm2", "en", "")).chosen[0]
    assert (best.layer, best.head) == (hund.layer, hund.head)  # "the best on English"
    assert abs(look(hund, "Hund") - look(hund, "Katze")) < 0.1


def _ringde() -> None:
    ringde = example_named("ringde")
    assert abs(look(ringde, "Anna") - look(ringde, "Erik")) < 0.1
    _no_reference("sv")


def _no_reference(lang: str) -> None:
    """Check that no head of a language's board gives the answer visibly more than the other candidate."""
    board = next(b for b in read_boards() if (b.model, b.lang, b.kind) == ("smollm2", lang, ""))
    assert board.chosen and all(chosen.answer - chosen.distractor < 0.05 for chosen in board.chosen)


CLAIMS: dict[str, Callable[[], None]] = {
    "station": _station,
    "house": _house,
    "car": _car,
    "many": _many,
    "tired": _tired,
    "pictures": _pictures,
    "sugar": _sugar,
    "hunger": _hunger,
    "hund": _hund,
    "ringde": _ringde,
}


@every_example
def test_its_caption_is_true(example: Example) -> None:
    CLAIMS[example.name]()


# --- on the page ---


@every_example
def test_a_click_shows_it_with_its_numbers(open_app: Callable[..., Visitor], example: Example) -> None:
    visitor = open_app(page="pronouns", text="Something else", pronoun="0", off="1.2", word="x", kind="things")
    visitor.press(f"pronouns-{example.name}")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    arcs, (pronoun, candidates, answer) = visitor.component("arcs"), example.question()
    assert (arcs["pronoun"], arcs["candidates"]) == (pronoun, [[word] for word in candidates])
    assert arcs["candidates"][arcs["answer"]] == [answer]
    assert (visitor["model"], visitor.name) == (example.model, f"L{example.layer} H{example.head}")
    assert (visitor["topic"], visitor["off"], visitor["word"]) == (example.topic, [], example.word or visitor["word"])
    opening = re.split(r"\{", example.caption)[0].strip()
    (caption,) = [
        t for t in visitor.says().split("\n") if t.startswith(opening) and t.count("**") >= 2 * len(candidates)
    ]
    for word in example.candidates:
        assert f"{word} **{look(example, word):.2f}**" in caption
    assert "{" not in caption and "  " not in caption
    if example.name in ("station", "hund", "pictures"):  # of each language and topic
        _is_the_same_from_its_link(open_app, visitor, caption)


def _is_the_same_from_its_link(open_app: Callable[..., Visitor], visitor: Visitor, caption: str) -> None:
    again = open_app(page="pronouns", **visitor.app.query_params)  # a copied link
    assert again.component("arcs") == visitor.component("arcs") and caption in again.says()


def test_the_landing_page_is_an_example() -> None:
    car = example_named("car")
    assert car.text == LANDING
    assert (car.model, car.layer, car.head) == tuple(FIELDS[name].default for name in ("model", "layer", "head"))


def test_the_first_example_shows_a_head_with_its_number_and_interval(open_app: Callable[..., Visitor]) -> None:
    visitor = open_app(page="pronouns")
    visitor.press(f"pronouns-{all_examples()[0].name}")
    board = next(b for b in read_boards() if (b.model, b.lang, b.kind) == ("smollm2", "en", "names"))
    chosen = next(c for c in board.chosen if (c.layer, c.head) == (9, 4))
    right, low, high = (f"{100 * share:.0f} %" for share in (chosen.rate.value, chosen.rate.low, chosen.rate.high))
    assert board.scores.accuracy[9, 4] >= 0.88 and chosen.rate.value >= 0.88
    said = f"it is right in {right} [{low}, {high}] of the other {chosen.n}."
    assert f"Chosen on one half of the sentences about names, {said}" in visitor.says()


def test_a_caption_needs_its_candidates_its_pronoun_and_its_head(open_app: Callable[..., Visitor]) -> None:
    opening = "*it* looks back at the thing"
    assert opening in open_app(page="pronouns").says()
    for address in ({"candidates": "none"}, {"pronoun": "6"}, {"layer": "9"}, {"text": f"{LANDING}."}):
        visitor = open_app(page="pronouns", **address)
        assert visitor.crashes() == [] and opening not in visitor.says()
