"""The glossary: every term is whole, its link leads to a page of the app with choices that can be read."""

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qsl, urljoin, urlsplit

from attnviz.app.guide.glossary import Term, find_terms, terms
from attnviz.app.pages import FIELDS, PAGES
from tests.cases import every
from tests.ui.address import Visit, chosen

PATHS = sorted(f"/{path}" for path in PAGES)
EVERY = every("term", terms())


def test_there_are_some_thirty_terms_and_none_twice() -> None:
    counts = Counter(term.name.casefold() for term in terms())
    assert len(counts) == len(terms()) >= 30
    assert len({term.formula for term in terms()}) == len(terms())


@EVERY
def test_a_term_has_a_sentence_and_a_formula_with_shapes(term: Term) -> None:
    assert term.text.endswith(".") and 1 <= len(re.findall(r"[.:;](?:\s|$)", term.text)) <= 4
    assert "—" not in term.text and len(term.text) < 260
    assert term.formula.strip() and term.formula.count("{") == term.formula.count("}")
    shape = r"\\times|T|V|one number"
    assert re.search(shape, term.formula)


@EVERY
@every("page", PATHS)
def test_a_link_leads_to_a_page_of_the_app_from_every_page(term: Term, page: str) -> None:
    there = urlsplit(urljoin(f"http://host/base{page}", term.link))
    assert there.path.removeprefix("/base") in PATHS


@EVERY
def test_a_link_is_restored_without_a_note(term: Term, open_link: Callable[..., Visit]) -> None:
    address = dict(parse_qsl(urlsplit(term.link).query, strict_parsing=True))
    assert address and address.keys() <= FIELDS.keys()
    visit = open_link(**address)
    assert visit.seen == []
    assert visit.query_params == {name: text for name, text in address.items() if _differs(name, text)}
    assert any(value != FIELDS[name].default for name, value in chosen(visit).items()) or "step" in address


def _differs(name: str, text: str) -> bool:
    return FIELDS[name].read(text) != FIELDS[name].default


def test_terms_are_found_by_all_words_and_names_come_first() -> None:
    assert find_terms("") == terms()
    assert [term.name for term in find_terms("CACHE kv")] == ["KV cache"]
    assert find_terms("sink")[0].name == "Attention sink"
    assert "Weights" in [term.name for term in find_terms("sink")]
    assert find_terms("no such word") == ()


def test_nothing_says_what_is_easily_said_wrong() -> None:
    texts = {term.name: term.text for term in terms()}
    assert "independent" in texts["Scale 1/√d"] and "mean 0" in texts["Scale 1/√d"]
    assert "vanish" not in texts["Saturation"]
    assert "a third of the cache remains" in texts["Grouped queries"]
    assert "doesn't vanish" in texts["Value-weighted attention"]
    assert "backward it is more" in texts["FlashAttention"]
    assert "own map stays" in texts["Ablation"]
    assert "learned sink" in texts["Weights"]
