"""Texts that are empty, tiny, long or too long, as the Explore page shows them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnviz.app.explore.fields import ALL
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
LONG = " ".join(f"word {number}" for number in range(60))  # 230 tokens of smollm2: each digit is one
BYTES = "The quick brown fox jumps over the lazy dog. " * 7  # 315 tokens of the untrained model
CHOICES = {"colours": "sqrt", "measure": "entropy", "order": "measure", "strip": "lines", "histogram": "head"}


def n_tokens(visitor: Visitor) -> int:
    return len(visitor.visit.rest.tokens)


def shown_tokens(visitor: Visitor) -> list[str]:
    """Return the labels of the tokens in the strip, those that the page shows one by one."""
    return visitor.component("strip-tokens")["labels"]


@pytest.mark.parametrize(
    ("model", "text"),
    [("smollm2", ""), ("smollm2", "   "), ("smollm2", "\n"), ("smollm2", "\u200b"), ("minilm", ""), ("minilm", " ")],
)
def test_a_text_without_a_letter_gets_one_sentence_and_no_map(open_app: Open, model: str, text: str) -> None:
    visitor = open_app(model=model)
    visitor.type(text)
    assert visitor.crashes() == []
    (sentence,) = visitor.errors()
    assert "no visible character" in sentence and "Traceback" not in sentence
    components = {component.key for component in visitor.app.get("bidi_component")}
    assert visitor.app.get("plotly_chart") == [] and not components & {"overview", "strip-tokens", "pick-cell"}
    visitor.type("Here again")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.has("head-map") and np.isfinite(visitor.drawn()).any()


def test_choices_outlive_an_empty_text(open_app: Open) -> None:
    visitor = open_app(**CHOICES)
    visitor.type("")
    visitor.type("Here again")
    assert visitor.crashes() == []
    assert {name: visitor[name] for name in CHOICES} == CHOICES
    assert visitor.app.query_params == CHOICES | {"text": "Here again"}


def test_one_token_gives_equal_maps_in_charts_of_their_own(open_app: Open) -> None:
    visitor = open_app(histogram="all")
    visitor.type("a")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    trace = visitor.visit.rest
    assert all((trace.layer_weights(layer) == 1).all() for layer in trace.layers)
    np.testing.assert_array_equal(visitor.drawn(), [[1.0]])
    for name, values in (
        ("measure", "entropy"),
        ("order", "measure"),
        ("layer", 3),
        ("strip", "lines"),
        ("mask", False),
    ):
        visitor.choose(name, values)
        assert visitor.crashes() == [], name
    for colours in ("sqrt", "without_first"):
        visitor.choose("colours", colours)
        assert visitor.crashes() == [], colours
    for view in ("before", "difference"):
        visitor.choose("view", view)
        assert visitor.crashes() == [], view


def test_a_long_text_is_pooled_at_first(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    visitor.type(LONG)
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    n = n_tokens(visitor)
    assert n == len(smollm2.trace(LONG).tokens) > 200
    drawn = visitor.drawn()
    block = -(-n // len(drawn))
    assert len(drawn) <= 160 and f"the largest weight of {block} x {block} tokens" in visitor.says()
    weights = smollm2.trace(LONG).weights(13, 8)
    for row, column in ((0, 0), (50, 20), (len(drawn) - 1, len(drawn) - 1), (100, 99)):
        tile = weights[row * block : (row + 1) * block, column * block : (column + 1) * block]
        assert drawn[row, column] == pytest.approx(tile.max(), abs=1e-6)


def test_a_part_of_a_long_text_shows_the_tokens_that_its_name_says(open_app: Open) -> None:
    visitor = open_app(model="untrained", layer="2", head="1")
    visitor.type(BYTES)
    trace = visitor.visit.rest
    weights, labels = trace.weights(2, 1), [token.label for token in trace.tokens]
    wrong = []
    for name in visitor.widget("zoom").options[1:]:
        visitor.app.selectbox(key="zoom").select_index(visitor.widget("zoom").options.index(name)).run()
        part = slice(*_bounds(name))
        right = shown_tokens(visitor) == labels[part]
        right &= np.allclose(np.nan_to_num(visitor.drawn()), weights[part, part], atol=1e-6) if right else False
        outside = 1 - weights[part, part].sum(axis=1).mean()
        right &= part.start == 0 or f"{outside:.0%} of these rows' weight lies on tokens outside" in visitor.says()
        wrong += [] if right else [name]
        assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert wrong == []


def test_every_token_of_a_long_text_is_in_some_part(open_app: Open) -> None:
    visitor = open_app(model="untrained", text=BYTES)
    _, *names = visitor.widget("zoom").options
    covered = {number for name in names for number in range(*_bounds(name))}
    assert covered == set(range(n_tokens(visitor)))


def _bounds(name: str) -> tuple[int, int]:
    first, last = name.split(" to ")
    return int(first), int(last) + 1


def test_controls_work_on_a_long_text(open_app: Open) -> None:
    visitor = open_app(model="untrained", layer="2", head="1", text=BYTES)
    for name, value in (
        ("colours", "sqrt"),
        ("colours", "without_first"),
        ("strip", "lines"),
        ("mask", False),
        ("view", "before"),
        ("view", "difference"),
        ("zoom", 96),
        ("query", 100),
        ("key", 99),
        ("colours", "sqrt"),
        ("view", "after"),
        ("zoom", ALL),
        ("histogram", "head"),
        ("zoom", 192),
    ):
        visitor.choose(name, value)
        assert (visitor.crashes(), visitor.errors()) == ([], []), f"{name} {value}"


def test_from_a_long_text_to_a_short_one_and_back(open_app: Open) -> None:
    visitor = open_app(model="untrained", layer="2", head="1")
    for text in (BYTES, "A short one", BYTES):
        visitor.type(text)
        assert (visitor.crashes(), visitor.errors()) == ([], []), text[:20]
    visitor.choose("histogram", "head")
    visitor.choose("zoom", 48)
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    visitor.press("example-letters")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.drawn().shape == (9, 9)


def test_a_text_that_is_long_for_one_model_alone(open_app: Open) -> None:
    text = "unbelievability " * 38  # a piece or two a word for smollm2, five for minilm
    visitor = open_app(text=text)
    assert n_tokens(visitor) <= 160
    for model in ("minilm", "smollm2", "minilm"):
        visitor.choose("model", model)
        assert (visitor.crashes(), visitor.errors()) == ([], []), model
        assert (n_tokens(visitor) > 160) == visitor.has("zoom") == (model == "minilm")


def test_what_exceeds_the_model_is_cut_and_counted(open_app: Open, minilm: Any) -> None:
    visitor = open_app(model="minilm", layer="0", head="0")
    visitor.type("word " * 600)
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert n_tokens(visitor) == 512
    assert any("512 of 602 tokens" in note for note in visitor.notes())
    tokens = visitor.visit.rest.tokens
    assert (tokens[0].label, tokens[-1].label) == ("[CLS]", "[SEP]")
    visitor.choose("head", 3)
    assert any("512 of 602 tokens" in note for note in visitor.notes())  # as long as it is on the screen


@pytest.mark.parametrize(
    "text",
    [
        "if a<b and c>d <b>bold</b> cost $5 and $6 $x$",
        "naïve café 東京 👍",
        "a\n\n\tb  c",
        "1 2 2 1 2024",
        "<|im_end|> hi",
        ":material/home: :red[x] [a](http://b.c) `code` *it* _it_ ~s~ # h",
    ],
)
def test_any_text_is_named_as_it_is(open_app: Open, text: str) -> None:
    visitor = open_app(text=text, query="1", key="0", causal="off", acts="pass")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    labels = [token.label for token in visitor.visit.rest.tokens]
    assert shown_tokens(visitor) == labels
    assert visitor.drawn().shape == (len(labels), len(labels))
    assert visitor.widget("query").options == [f"{label} ({index})" for index, label in enumerate(labels)]
    assert f"{labels[1]} (1) → {labels[0]} (0)" in visitor.says()
