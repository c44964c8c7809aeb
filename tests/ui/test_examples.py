"""The example texts: each shows what its caption says, on the model that the caption names."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from attnviz.app.pages import FIELDS
from attnviz.app.shell.examples import Example, all_examples, example_of, examples, languages, word_token
from attnviz.app.shell.fields import LANDING
from attnviz.models.load.catalogue import CATALOGUE

STRIKING = 0.4
every_example = pytest.mark.parametrize("example", all_examples(), ids=lambda example: example.name)


@pytest.fixture(scope="module")
def traced(smollm2: Any) -> dict[str, Any]:
    """Return the trace of each example by its name."""
    return {example.name: smollm2.trace(example.text) for example in all_examples()}


def test_there_are_five_in_each_of_three_languages() -> None:
    assert languages() == ("English", "Deutsch", "Svenska")
    assert [len(examples(language)) for language in languages()] == [5, 5, 5]
    assert sum((examples(language) for language in languages()), ()) == all_examples()


@pytest.mark.parametrize("what", ["name", "title", "text"])
def test_no_two_share_a_name_a_title_or_a_text(what: str) -> None:
    counts = Counter(getattr(example, what).casefold() for example in all_examples())
    assert [entry for entry, count in counts.items() if count > 1] == []


@every_example
def test_it_names_a_model_of_the_catalogue_and_fits_a_button(example: Example) -> None:
    assert example.model in CATALOGUE
    assert 0 < len(example.title) <= 28
    assert "{weight}" in example.caption
    assert example.caption.format(weight="0.50").count("0.50") == 1


@every_example
def test_the_cell_is_where_the_words_are(example: Example, traced: dict[str, Any]) -> None:
    trace = traced[example.name]
    query, key = example.cell(trace)
    starts = [i for i in range(len(example.text)) if example.text.startswith(example.key, i)]
    last_of_query = example.text.rindex(example.query) + len(example.query) - 1
    last_of_key = starts[example.key_at] + len(example.key) - 1
    for index, letter in ((query, last_of_query), (key, last_of_key)):
        assert trace.tokens[index].start <= letter < trace.tokens[index].end
    assert key < query


@every_example
def test_the_weight_is_striking_and_the_largest_of_its_row(example: Example, traced: dict[str, Any]) -> None:
    trace = traced[example.name]
    query, key = example.cell(trace)
    row = trace.weights(example.layer, example.head)[query]
    assert example.weight(trace) == row[key] > STRIKING
    assert key == 1 + int(np.argmax(row[1:]))


def test_the_landing_page_shows_it_looking_at_the_car(smollm2: Any) -> None:
    landing = example_of(LANDING, *(FIELDS[name].default for name in ("model", "layer", "head")))
    assert landing is not None and landing.name == "it"
    trace = smollm2.trace(LANDING)
    query, key = landing.cell(trace)
    assert (trace.tokens[query].label, trace.tokens[key].label) == ("·it", "·car")
    assert landing.weight(trace) == pytest.approx(0.81, abs=0.005)


def test_an_example_is_known_by_text_model_and_head_together() -> None:
    for example in all_examples():
        shown = (example.text, example.model, example.layer, example.head)
        assert example_of(*shown) is example
        for place, other in enumerate(("another text", "minilm", example.layer + 1, example.head + 1)):
            assert example_of(*shown[:place], other, *shown[place + 1 :]) is None


@pytest.mark.parametrize(("occurrence", "expected"), [(0, 0), (1, 4), (-1, 7)])
def test_a_word_is_found_by_its_occurrence(smollm2: Any, occurrence: int, expected: int) -> None:
    trace = smollm2.trace("dog and cat, dog or my dog")
    index = word_token(trace, "dog", occurrence)
    assert index == expected
    assert trace.tokens[index].text.strip() == "dog"


@pytest.mark.parametrize(("word", "occurrence"), [("horse", 0), ("dog", 1)])
def test_a_word_that_is_not_there_is_an_error(smollm2: Any, word: str, occurrence: int) -> None:
    with pytest.raises(ValueError, match=f"“{word}”"):
        word_token(smollm2.trace("dog and cat"), word, occurrence)
