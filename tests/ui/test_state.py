"""What a visitor chose, as text in the page's address and back again."""

import base64
import os
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.app.pages import FIELDS, PAGES
from attnviz.app.shell.address import (
    MOST_TEXT,
    PACKED_TEXT,
    PLAIN_TEXT,
    fits_address,
    pack_text,
    unpack_text,
)
from attnviz.app.shell.fields import LANDING, SHARED
from tests.cases import case, every
from tests.ui.address import Visit, chosen
from tests.ui.conftest import Visitor

VALUES = {  # one value or more a field, none of them the default
    "model": ["minilm", "a/b", "~/my models/é"],
    "precision": ["bfloat16", "float16"],
    "engine": ["numpy"],
    "text": ["東京 <b>&amp;=?#%", "two\nlines\tand a tab", ""],
    "part": ["encoder", "decoder", "cross"],
    "layer": [0, 29],
    "head": [0, 11],
    "causal": ["on", "off"],
    "temperature": ["off", "0.25", "8"],
    "off": [[(13, 8)], [(0, 0), (29, 8)]],
    "forbid": [[(13, 8, 10, 3)], [(None, None, 5, 0), (4, None, 2, 1)]],
    "acts": ["pass"],
    "colours": ["sqrt", "without_first"],
    "measure": ["entropy", "distance", "first_token", "previous_token", "largest"],
    "order": ["measure"],
    "view": ["before", "difference"],
    "strip": ["lines"],
    "histogram": ["head", "layer", "all"],
    "query": [0, 300],
    "key": [0, 300],
    "zoom": [0, 48],
    "step": ["scores", "matches"],
    "source": ["random"],
    "rows": [2, 32],
    "width": [1, 1024],
    "seed": [1, 999_999],
    "heads": [1, 64],
    "other": [0, 8],
    "curves": ["tokens"],
    "swap": ["badly", "ein Wort", ""],
    "heat": ["0.01", "100"],
    "digits": ["float16", "float64"],
    "overflow": ["row"],
    "topic": ["pair", "scores", "matters"],
    "pronoun": [0, 12],
    "candidates": [[], [0], [1, 4, 300]],
    "answer": [0, 7],
    "click": ["answer", "pronoun"],
    "lead": ["off"],
    "pair": ["Tom told Anna that he had", "<b>&"],
    "sentences": ["de", "own"],
    "kind": ["names"],
    "word": ["Mary", " =&"],
    "rival": ["John"],
    "instead": ["mean"],
    "written": [1, 64],
    "writing_topic": ["both", "models"],
    "warmth": ["0.3", "2"],
    "top_k": [1, 1000],
    "top_p": ["0.5", "0.95"],
    "bits": ["8 bits", "4 bits"],
    "deck": ["who_is_it", "own"],
    "cost_part": ["matrix", "flash", "measured"],
    "cost_model": ["GPT-2 small", "Llama 3.1 405B"],
    "cost_s": [16, 524_288],
    "cost_d": [8, 65_536],
    "cost_heads": [1, 1024],
    "cost_group": [2, 1024],
    "cost_layers": [1, 512],
    "cost_mlp": [False],
    "cost_skip": [True],
    "cost_axes": ["linear"],
    "cost_bytes": ["4"],
    "cost_block": [1, 4096],
    "cost_at": [0, 999],
    "shows": ["words", "written", "rollout"],
    "special": [False],
    "palette": ["viridis", "cividis", "grey"],
    "tool": ["compare", "find", "lines", "writes"],
    "find_by": ["like", "drawn", "feeds"],
    "pattern": ["previous", "broad"],
    "found_in": ["here"],
    "drawn": [[(3, 0)], [(1, 0), (12, 11)]],
    "lines_heads": [[], [0], [0, 8]],
    "versus": ["text", "model", "switches"],
    "b_text": ["東京 <b>&=?#%"],
    "b_model": ["minilm", "a/b"],
    "b_layer": [0, 29],
    "b_head": [0, 8],
}
NONSENSE = {
    "precision": ["float64", "Float32"],
    "engine": ["jax"],
    "part": ["tail"],
    "layer": ["-1", "1.5", "", "x", "٣", "1e9", "9999999"],
    "head": ["H4"],
    "causal": ["True"],
    "temperature": ["0", "-1", "nan", "inf", "warm", "1e-300"],
    "off": ["1", "1.2.3", "a.b", "all.3", "1.2_x"],
    "forbid": ["1.2.3", "1.2.all.3", "1.2.3.4.5", "everything"],
    "candidates": ["a", "1.2", "1__2"],
    "pronoun": ["-1", "x"],
    "written": ["65", "-1"],
    "warmth": ["3", "hot"],
    "top_k": ["1001"],
    "cost_model": ["GPT-9"],
    "cost_s": ["15", "524289"],
    "cost_mlp": ["True", ""],
    "cost_block": ["0", "none"],
    "acts": ["both"],
    "colours": ["rainbow"],
    "measure": ["beauty"],
    "order": ["random"],
    "view": ["both"],
    "strip": ["none"],
    "histogram": ["some"],
    "query": ["-1", "it"],
    "key": ["0x10"],
    "zoom": ["near"],
    "step": ["ten"],
    "source": ["made up"],
    "rows": ["1", "33", "-2", "many"],
    "width": ["0", "1025"],
    "seed": ["-1"],
    "heads": ["0", "65"],
    "other": ["H1"],
    "curves": ["heads"],
    "heat": ["3", "0"],
    "digits": ["int8"],
    "overflow": ["all"],
    "z": ["not a packed text", "é", "AAAA", "", "?"],
}
CASES = [(name, value) for name, values in VALUES.items() for value in values]
BAD_CASES = [(name, text) for name, texts in NONSENSE.items() for text in texts]

plain_texts = st.text(st.characters(exclude_categories=["Cs"]))  # lone surrogates can't be sent by a browser


def defaults() -> dict[str, Any]:
    return {name: field.default for name, field in FIELDS.items()}


def bomb(n_bytes: int) -> str:
    """Return a small packed text that unfolds to many bytes."""
    return base64.urlsafe_b64encode(zlib.compress(bytes(n_bytes), 9)).decode("ascii").rstrip("=")


def test_every_field_has_a_value_to_test_with_or_takes_its_own() -> None:
    assert VALUES.keys() <= FIELDS.keys()
    assert all(value != FIELDS[name].default for name, value in CASES)
    for name in FIELDS.keys() - VALUES.keys():
        with case(name):
            assert FIELDS[name].read(FIELDS[name].write(FIELDS[name].default)) == FIELDS[name].default


def test_no_two_pages_call_a_field_alike() -> None:
    names = [name for fields in (SHARED, *(page.fields for page in PAGES.values())) for name in fields]
    assert len(names) == len(set(names))


@every("name, value", CASES)
def test_a_choice_survives_writing_and_reading(name: str, value: Any) -> None:
    assert FIELDS[name].read(FIELDS[name].write(value)) == value


@every("name, value", CASES)
def test_a_link_opened_elsewhere_gives_the_same_choice_and_nothing_else(
    open_link: Callable[..., Visit], name: str, value: Any
) -> None:
    first = open_link()
    first.session_state[name] = value
    first.run()
    assert set(first.query_params) == {name}
    second = open_link(**first.query_params)
    assert chosen(second) == defaults() | {name: value}
    assert second.query_params == first.query_params
    assert second.seen == []


def test_all_choices_fit_into_one_link(open_link: Callable[..., Visit]) -> None:
    values = {name: values[-1] for name, values in VALUES.items()}
    first = open_link()
    for name, value in values.items():
        first.session_state[name] = value
    first.run()
    assert chosen(open_link(**first.query_params)) == defaults() | values


def test_the_page_at_rest_has_a_bare_address(open_link: Callable[..., Visit]) -> None:
    visit = open_link()
    assert visit.query_params == {}
    assert chosen(visit) == defaults()
    assert visit.session_state.draft == LANDING


@every("name, text", BAD_CASES)
def test_nonsense_falls_back_with_a_note_and_leaves_the_rest(
    open_link: Callable[..., Visit], name: str, text: str
) -> None:
    visit = open_link(**{name: text, "model": "minilm"})
    assert chosen(visit) == defaults() | {"model": "minilm"}
    (note,) = visit.seen
    assert f"“{'text' if name == 'z' else name}”" in note
    assert visit.query_params == {"model": "minilm"}
    visit.run()
    assert visit.seen == []  # said once


def test_words_that_mean_nothing_here_are_dropped(open_link: Callable[..., Visit]) -> None:
    visit = open_link(utm_source="mail")
    assert chosen(visit) == defaults()
    assert visit.query_params == {}


def test_the_address_is_read_again_only_when_somebody_else_changed_it(open_link: Callable[..., Visit]) -> None:
    visit = open_link(layer="4")
    visit.session_state.layer = 7
    visit.run()
    assert visit.session_state.layer == 7
    assert visit.query_params == {"layer": "7"}
    visit.query_params.from_dict({"layer": "9", "head": "1"})  # the browser's back button
    visit.run()
    assert (visit.session_state.layer, visit.session_state.head) == (9, 1)
    visit.query_params.from_dict({})
    visit.run()
    assert chosen(visit) == defaults()


def test_a_click_sent_before_the_browser_heard_of_the_new_address_counts(open_link: Callable[..., Visit]) -> None:
    visit = open_link(layer="4")
    visit.session_state.layer = 7
    visit.run()
    visit.query_params.from_dict({"layer": "4"})  # still there in the browser
    visit.session_state.head = 1
    visit.run()
    assert (visit.session_state.layer, visit.session_state.head) == (7, 1)
    assert visit.query_params == {"layer": "7", "head": "1"}


@every("sign", ["save-scene", "own run"])  # a button that changes no choice; a click after which the page runs again
def test_a_button_pressed_before_the_browser_heard_of_the_new_address_undoes_nothing(
    open_link: Callable[..., Visit], sign: str
) -> None:
    visit = open_link(layer="4")
    visit.session_state.layer = 7
    visit.run()
    visit.query_params.from_dict({"layer": "4"})
    visit.session_state[sign] = True
    visit.run()
    assert visit.session_state.layer == 7
    assert visit.query_params == {"layer": "7"}


def test_back_and_back_again_at_once_shows_what_was_there(open_link: Callable[..., Visit]) -> None:
    visit = open_link(layer="0")
    for layer in (1, 2):
        visit.session_state.layer = layer
        visit.run()
    visit.query_params.from_dict({"layer": "1"})
    visit.run()
    assert visit.session_state.layer == 1
    visit.session_state.layer = 2  # the browser's box has not heard yet
    visit.query_params.from_dict({"layer": "0"})
    visit.run()
    assert visit.session_state.layer == 0
    assert visit.query_params == {"layer": "0"}


def from_address(address: dict[str, str]) -> str:
    return address["text"] if "text" in address else unpack_text(address["z"])


@given(plain_texts, st.integers(1, 400))
def test_a_text_that_fits_the_address_comes_back_whole(text: str, times: int) -> None:
    address = pack_text(text * times)
    assert fits_address(text * times) == bool(address)
    assert not address or from_address(address) == text * times


@every("letter", ["a", "é", "東"])
@every("length", [600_000, MOST_TEXT, MOST_TEXT + 1])
def test_a_text_at_the_limit_comes_back_whole_or_does_not_go_into_the_address(letter: str, length: int) -> None:
    address = pack_text(letter * length)
    length_back = len(from_address(address)) if address else length
    assert length_back == length


def test_a_short_text_stays_readable_and_a_long_one_is_packed() -> None:
    assert pack_text("a" * PLAIN_TEXT) == {"text": "a" * PLAIN_TEXT}
    assert set(pack_text("a" * (PLAIN_TEXT + 1))) == {"z"}
    assert set(pack_text("é" * (PLAIN_TEXT // 2 + 1))) == {"z"}  # an address counts bytes


def test_a_text_too_long_for_an_address_is_left_out_whole(open_link: Callable[..., Visit]) -> None:
    noise = os.urandom(PACKED_TEXT).hex()
    assert not fits_address(noise)
    visit = open_link()
    visit.session_state.text = noise
    visit.session_state.layer = 3
    visit.run()
    assert visit.query_params == {"layer": "3"}
    assert visit.session_state.text == noise


def test_a_packed_text_that_unfolds_too_far_is_refused_and_takes_little_memory() -> None:
    packed = bomb(200_000_000)
    assert len(packed) < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            unpack_text(packed)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@every("missing", [1, 8, 100])
def test_a_packed_text_that_was_cut_is_refused(missing: int) -> None:
    packed = pack_text(" ".join(f"word{number}" for number in range(500)))["z"]
    with pytest.raises(ValueError):
        unpack_text(packed[:-missing])


def test_a_packed_text_that_is_no_text_is_refused() -> None:
    packed = base64.urlsafe_b64encode(zlib.compress(b"\xff\xfe\xfa")).decode("ascii")
    with pytest.raises(ValueError, match="not a packed text"):
        unpack_text(packed)


@pytest.mark.parametrize("page", PAGES)
def test_a_choice_without_a_value_is_the_default_again(open_app: Callable[..., Visitor], page: str) -> None:
    visitor = open_app(page=page)
    rows = [row.key for row in visitor.app.get("button_group") if row.key in FIELDS]
    assert rows and all(FIELDS[name].default is not None for name in rows)
    for name in rows:
        visitor.app.session_state[name] = None
    visitor.app.run()
    assert visitor.crashes() == []
    assert {name: visitor[name] for name in rows} == {name: FIELDS[name].default for name in rows}


def test_a_choice_that_comes_without_a_value_stays_as_the_visitor_left_it(open_app: Callable[..., Visitor]) -> None:
    visitor = open_app(histogram="layer")
    visitor.choose("strip", "lines")
    for name in ("strip", "histogram"):
        visitor.app.session_state[name] = None
    visitor.app.run()
    assert visitor.crashes() == [] and (visitor["strip"], visitor["histogram"]) == ("lines", "layer")
