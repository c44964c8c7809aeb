"""Words, pronouns and candidates: by hand, on the sentences that ship, and properties that hold for any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.core.pronouns.items import LANGUAGES, SHIPPED, Item, read_items
from attnviz.core.pronouns.mentions import (
    MOST_CANDIDATES,
    align_words,
    changed_words,
    find_pronouns,
    guess_answer,
    language_of,
    runs,
    suggest_candidates,
    swap_pronoun,
)
from attnviz.core.text.words import split_words

PIECES = ["a", "her", "Tom's", ",", ".", "猫", "ที่", "é", "👩\u200d💻", "e\u0301", "\u0301"]
ANY_TEXT = st.text(max_size=60) | st.lists(st.sampled_from(PIECES)).map(" ".join)
WORDS = st.lists(st.sampled_from(["he", "she", "saw", "it", "too"]), max_size=8)


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


def covered(text: str, span: tuple[int, int]) -> list[int]:
    """Return the words that share characters with a span, by looking at each of them."""
    return [i for i, (start, end) in enumerate(split_words(text)) if start < span[1] and span[0] < end]


def shipped(lang: str) -> tuple[Item, ...]:
    return read_items(SHIPPED / f"{lang}.jsonl")[0]


# --- words ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tom didn't stop.", ["Tom", "didn't", "stop", "."]),
        ("Tom’s well-known “dog”", ["Tom’s", "well-known", "“", "dog", "”"]),
        ("it's 'it'", ["it's", "'", "it", "'"]),
        ("a–b ... 3.5", ["a", "–", "b", ".", ".", ".", "3", ".", "5"]),
        ("猫坐在，because", ["猫", "坐", "在", "，", "because"]),
        ("ねこはnot", ["ね", "こ", "は", "not"]),
        ("قابلت ليلى", ["قابلت", "ليلى"]),
        ("قَالَ لَهُ.", ["قَالَ", "لَهُ", "."]),  # vowels are marks of their own
        ("राम ने सीता से", ["राम", "ने", "सीता", "से"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("cafe\u0301s, noir", ["cafe\u0301s", ",", "noir"]),
        ("👩\u200d💻 and 👍🏽 ❤\ufe0f!", ["👩\u200d💻", "and", "👍🏽", "❤\ufe0f", "!"]),
        ("\n <b>x</b> ", ["<", "b", ">", "x", "<", "/", "b", ">"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_a_text_falls_into_words_and_marks(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@settings(max_examples=40)
@given(ANY_TEXT)
def test_words_cover_all_that_is_no_white_space_once(text: str) -> None:
    seen = [0] * len(text)
    last = 0
    for start, end in split_words(text):
        assert last <= start < end
        last = end
        for place in range(start, end):
            seen[place] += 1
    assert [count for count, sign in zip(seen, text, strict=True) if not sign.isspace()] == [
        1 for sign in text if not sign.isspace()
    ]
    assert not any(sign.isspace() for word in words_of(text) for sign in word)


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Laura met Peter before he left", "en"),
        ("Der Hund sah die Katze", "de"),
        ("Anna ringde Erik när hon kom", "sv"),
    ],
)
def test_small_words_tell_the_language(text: str, lang: str) -> None:
    assert language_of(text) == lang


@pytest.mark.parametrize("text", ["", "w1 w2", "猫", "Kubernetes"])
def test_without_a_known_word_it_is_english(text: str) -> None:
    assert language_of(text) == "en"


# --- pronouns and candidates ---


@pytest.mark.parametrize(
    ("text", "pronouns"),
    [
        ("She saw Tom, and Tom saw HER.", ["She", "HER"]),
        ("Hermione hit itself", ["itself"]),
        ("Den gamla bilen var röd, och den gick sönder", ["den"]),  # the first one is an article
        ("Der Hund sah die Katze, weil er sie mochte.", ["er", "sie"]),
        ("No such word", []),
        ("", []),
    ],
)
def test_pronouns_are_found(text: str, pronouns: list[str]) -> None:
    assert [words_of(text)[place] for place in find_pronouns(text)] == pronouns


@pytest.mark.parametrize(
    ("text", "pronoun", "candidates"),
    [
        ("Mary bought a car, although she could not drive it", "it", ["Mary", "car"]),
        ("Yesterday the old wooden clock hit Zoltan, and it broke", "it", ["clock", "Zoltan"]),
        ("When he came, the waiter saw Zoe", "he", ["waiter", "Zoe"]),  # none before it, so those behind
        ("Who was it", "it", []),
        ("Als Zoltan kam, sah er den Turm", "er", ["Zoltan"]),
    ],
)
def test_candidates_are_names_and_words_after_an_article(text: str, pronoun: str, candidates: list[str]) -> None:
    place = words_of(text).index(pronoun)
    assert [words_of(text)[word] for word in suggest_candidates(text, place)] == candidates


def test_of_many_candidates_those_nearest_to_the_pronoun_are_taken() -> None:
    names = ["Ann", "Ben", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
    text = f"we saw {' '.join(names)} and he left"
    found = suggest_candidates(text, words_of(text).index("he"))
    assert [words_of(text)[word] for word in found] == names[-MOST_CANDIDATES:]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_sentences_that_ship_are_understood(lang: str) -> None:
    items = shipped(lang)
    found = {"language": 0, "pronoun": 0, "candidates": 0, "answer": 0}
    for item in items:
        (pronoun,) = covered(item.text, item.pronoun)
        heads = [covered(item.text, span)[-1] for span in item.candidates]  # the answer first
        found["language"] += language_of(item.text) == lang
        found["pronoun"] += pronoun in find_pronouns(item.text)
        found["candidates"] += set(heads) <= set(suggest_candidates(item.text, pronoun))
        found["answer"] += guess_answer(item.text, pronoun, sorted(heads)) == heads[0]
    shares = {name: count / len(items) for name, count in found.items()}
    least = {"language": 1.0, "pronoun": 0.93, "candidates": 1.0, "answer": 0.99}
    assert {name: share for name, share in shares.items() if share < least[name]} == {}


@given(ANY_TEXT)
def test_suggestions_are_words_of_the_text_and_never_the_pronoun(text: str) -> None:
    n_words = len(split_words(text))
    assert find_pronouns(text) == sorted(set(find_pronouns(text)) & set(range(n_words)))
    for place in range(n_words):
        found = suggest_candidates(text, place)
        assert found == sorted(set(found) & set(range(n_words)) - {place})
        assert len(found) <= MOST_CANDIDATES
        assert guess_answer(text, place, found) in [*found, None]


@pytest.mark.parametrize(
    ("text", "pronoun", "answer"),
    [
        ("Laura met Peter, and he left", "he", "Peter"),
        ("Peter met Laura, and he left", "he", "Peter"),
        ("Then Zoltan met Laura, and he left", "he", "Zoltan"),  # unknown, but Laura is known to be a woman
        ("Then Zoltan met Zork, and he left", "he", None),  # nobody known
        ("The horse passed the gate because it was tired", "it", None),
        ("Mary saw the lamp, and they left", "they", None),  # neither fits
        ("Thomas stritt mit Anna, bis man ihm half", "ihm", "Thomas"),
        ("Anna stritt mit Thomas, bis man ihr half", "ihr", "Anna"),
        ("Erik såg Anna, och hennes bil", "hennes", "Anna"),
    ],
)
def test_gender_picks_the_answer(text: str, pronoun: str, answer: str | None) -> None:
    words = words_of(text)
    place = words.index(pronoun)
    found = guess_answer(text, place, suggest_candidates(text, place))
    assert (None if found is None else words[found]) == answer


def test_without_candidates_there_is_no_answer() -> None:
    assert guess_answer("it is", 0, []) is None


# --- pairs of sentences ---


@pytest.mark.parametrize(
    ("text", "pronoun", "other"),
    [
        ("Then he left", "he", "Then she left"),
        ("He left", "He", "She left"),
        ("I saw him", "him", "I saw her"),
        ("I saw her.", "her", "I saw him."),
        ("I saw her dog", "her", "I saw his dog"),
        ("I saw his dog", "his", "I saw her dog"),
        ("I drove it", "it", None),  # "they" would not be right everywhere
        ("Anna kam, weil sie Hunger hatte", "sie", "Anna kam, weil er Hunger hatte"),
        ("Er sah ihn", "ihn", "Er sah sie"),
        ("Anna såg att hon kom", "hon", "Anna såg att han kom"),
        ("Then Tom left", "Tom", None),
        ("a猫b", "猫", None),
    ],
)
def test_a_pronoun_is_turned(text: str, pronoun: str, other: str | None) -> None:
    assert swap_pronoun(text, words_of(text).index(pronoun)) == other


@pytest.mark.parametrize(
    ("one", "other", "changed"),
    [
        ("too tired", "too wide", ([1], [1])),
        ("it is hot", "it is too hot", ([], [2])),
        ("it is too hot", "it is hot", ([2], [])),
        ("the cat saw a dog", "one saw a dog", ([0, 1], [0])),
        ("same", "same", ([], [])),
        ("", "x", ([], [0])),
    ],
)
def test_what_differs_is_found(one: str, other: str, changed: tuple[list[int], list[int]]) -> None:
    assert changed_words(one, other) == changed


@given(WORDS, WORDS)
def test_words_are_matched_one_to_one_and_in_order(first: list[str], second: list[str]) -> None:
    pairs = align_words(" ".join(first), " ".join(second))
    assert list(pairs) == sorted(pairs) and list(pairs.values()) == sorted(set(pairs.values()))
    assert all(a < len(first) and b < len(second) for a, b in pairs.items())
    changed = changed_words(" ".join(first), " ".join(second))
    kept, kept_there = (
        [word for i, word in enumerate(words) if i not in gone]
        for words, gone in zip((first, second), changed, strict=True)
    )
    assert kept == kept_there  # what didn't change is the same text
    if first == second:
        assert pairs == {i: i for i in range(len(first))} and changed == ([], [])


@given(st.lists(st.integers(0, 20)))
def test_runs_hold_every_word_once_and_have_gaps_between(words: list[int]) -> None:
    found = runs(words)
    assert [word for group in found for word in group] == sorted(set(words))
    assert all(group == tuple(range(group[0], group[-1] + 1)) for group in found)
    assert all(before[-1] + 1 < after[0] for before, after in zip(found, found[1:], strict=False))
