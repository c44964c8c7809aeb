"""The sentences that ship: made again byte for byte, and each span is the word that it should be."""

from collections import Counter
from pathlib import Path

import pytest

from attnviz.core.pronouns.item_templates import Word, fill, items_text, make_items, read_templates
from attnviz.core.pronouns.items import LANGUAGES, SHIPPED, read_items

SHARED = Path(__file__).resolve().parents[2] / "shared" / "pronouns"
ARTICLES = {"en": {"the", "my"}, "de": {"der", "die", "das", "den", "dem"}, "sv": set()}


@pytest.fixture(params=LANGUAGES)
def lang(request):
    return request.param


@pytest.fixture
def items(lang):
    found, problems = read_items(SHIPPED / f"{lang}.jsonl")
    assert problems == ()
    return found


def test_the_files_come_out_of_the_templates_again(lang):
    assert (SHIPPED / f"{lang}.jsonl").read_bytes() == items_text(lang).encode()


def test_there_are_enough_items_kinds_and_groups(lang, items):
    assert len(items) >= 400 and {item.lang for item in items} == {lang}
    kinds = Counter(item.kind for item in items)
    assert len(kinds) >= 4 and min(kinds.values()) >= 50
    for kind in kinds:
        assert len({item.group for item in items if item.kind == kind}) >= 8


def test_thirty_pairs_of_names_stand_in_both_orders(items):
    pairs = {tuple(item.meta["words"]) for item in items if item.kind == "names"}
    assert len(pairs) >= 60 and all((b, a) in pairs for a, b in pairs)


def test_every_span_is_a_word_of_its_pair_or_its_pronoun(lang, items):
    told = read_templates()
    forms_of, pronoun_of = {}, {}
    for pairs in told["words"][lang].values():
        for word in (word for pair in pairs for word in pair):
            *forms, pronoun = word.split("/")
            forms_of.setdefault(forms[0], set()).update(forms)
            pronoun_of[forms[0]] = pronoun
    for item in items:
        spelled = [item.text[start:end] for start, end in item.candidates]
        words = list(item.meta["words"])
        answer = next(word for word in words if lower_first(spelled[0]) in map(lower_first, forms_of[word]))
        words.remove(answer)
        assert lower_first(spelled[1]) in map(lower_first, forms_of[words[0]])
        pronouns = told["pronouns"][lang]
        of_answer, of_other = (pronouns[pronoun_of[word]].split("/") for word in (answer, words[0]))
        start, end = item.pronoun
        assert item.text[start:end] in of_answer and item.text[start:end] not in of_other
        assert item.causal_ok and max(span[1] for span in item.candidates) <= start


def lower_first(word):
    return word[0].lower() + word[1:]


def test_spans_begin_and_end_with_their_words(items):
    for item in items:
        for start, end in (item.pronoun, *item.candidates):
            around = (" " + item.text + " ")[start], (" " + item.text + " ")[end + 1]
            assert not any(letter.isalnum() for letter in around), item.text
        assert item.text[0].isupper() and item.text.endswith(".") and "  " not in item.text


def test_answers_are_as_often_first_as_last(items):
    first = sum(item.answer < item.distractors[0] for item in items)
    assert first == len(items) / 2


def test_no_two_texts_are_equal_and_ids_neither():
    items = [item for lang in LANGUAGES for item in make_items(lang)]
    assert len({item.text for item in items}) == len({item.id for item in items}) == len(items)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the sets of pronoun sentences are not at {SHARED}")
def test_no_sentence_stands_in_the_sets_of_others():
    own = {item.text.lower() for lang in LANGUAGES for item in make_items(lang)}
    for file in SHARED.glob("*.jsonl"):
        assert not own & {item.text.lower() for item in read_items(file)[0]}


def test_a_template_that_is_not_well_formed_is_refused():
    words = {"A": Word(("Anna",), "she"), "B": Word(("Tom",), "he"), "P": Word(("she",), "she")}
    assert fill("{A} told {B} that {P} {P:was|were} late.", words)[0] == "Anna told Tom that she was late."
    for text in ("{A} told {B}.", "{A} told {A} and {B} that {P} was late.", "{A} told {B} that {P} was {late}."):
        with pytest.raises(ValueError, match="template"):
            fill(text, words)


def test_equal_texts_and_unknown_languages_are_refused():
    told = dict(read_templates())
    with pytest.raises(ValueError, match="no template in 'xx'"):
        make_items("xx")
    twice = told | {"template": [told["template"][0], dict(told["template"][0], id="again")]}
    with pytest.raises(ValueError, match="same text"):
        make_items("en", twice)
