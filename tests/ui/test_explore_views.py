"""What the cells of the large map can show, against the numbers of the trace."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.app.explore.map_choice import FOR_ENCODERS
from attnviz.app.shell.fields import LANDING
from attnviz.core.text.words import item_of_tokens, merge_words, word_items
from attnviz.core.values.rollout import rollout
from attnviz.core.values.value_weighted import row_shares, value_weighted
from attnviz.figures.map_views import retell, size_map
from attnviz.models.scratch.residual import head_write
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
LONG_WORDS = "Unbelievably the antidisestablishmentarian\nbroke down"
CLS_AND_SEP = "[CLS] and [SEP] hidden"


def axis(visitor: Visitor, name: str) -> list[str]:
    """Return the labels along an axis of the large map, in order."""
    found = visitor.chart("head-map")["layout"][f"{name}axis"]["labelalias"]
    return [found[place] for place in sorted(found, key=int)]


def masked(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    return np.where(allowed, values, np.nan)


def table(visitor: Visitor) -> np.ndarray:
    """Open the table under the map and return its numbers, NaN where it has none."""
    visitor.app.session_state["head-map-table"] = True
    visitor.app.run()
    assert_quiet(visitor)
    (frame,) = (element.value for element in visitor.app.dataframe)
    return frame.iloc[:, 1:].to_numpy(float)


def written(trace: Any, layer: int, head: int) -> np.ndarray:
    model = attnviz.load(trace.model.name, engine="numpy").model
    values = trace.qkv(layer, head)[2]
    return value_weighted(trace.weights(layer, head), head_write(model, layer, head, values))


def assert_quiet(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


def test_words(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(shows="words", text=LONG_WORDS)
    assert_quiet(visitor)
    trace = smollm2.trace(LONG_WORDS)
    items = word_items(trace.tokens)
    places, words = item_of_tokens(items, len(trace.tokens)), [i for i, item in enumerate(items) if item.kind == "word"]
    merged = merge_words(trace.weights(13, 8), places, len(items))
    expected = masked(merged[np.ix_(words, words)], np.tri(5, dtype=bool))
    np.testing.assert_allclose(visitor.drawn(), expected, atol=1e-6)
    assert axis(visitor, "x")[0] == "Unbelievably" and axis(visitor, "y")[-1] == "down"
    space = merged[words][:, [i for i, item in enumerate(items) if item.kind == "space"]].sum(axis=1).mean()
    assert "sums over the tokens of a word" in visitor.says()
    assert f"white space belong to no word: {space:.0%} of the weight goes there" in visitor.says()
    assert "a word that looks" in visitor.chart("head-map")["layout"]["meta"]["how_to_read"]
    assert visitor.app.query_params["shows"] == ["words"] or visitor.app.query_params["shows"] == "words"


def test_special_tokens_hidden(open_app: Open, minilm: Any) -> None:
    visitor = open_app(model="minilm", layer="2", head="3")
    visitor.app.toggle(key="special").set_value(False).run()
    assert_quiet(visitor)
    weights = minilm.trace(LANDING).weights(2, 3)
    np.testing.assert_allclose(visitor.drawn(), weights[1:-1, 1:-1], atol=1e-6)
    share = weights[1:-1][:, [0, -1]].sum(axis=1).mean()
    assert f"{CLS_AND_SEP}: {share:.0%} of these rows' weight goes there." in visitor.says()
    assert visitor.chart("head-map")["data"][0]["x"]["bdata"]  # tokens keep their numbers:
    assert "1" in visitor.chart("head-map")["layout"]["xaxis"]["labelalias"]
    visitor.choose("shows", "words")
    assert_quiet(visitor)
    assert axis(visitor, "x")[-1] == "it" and CLS_AND_SEP in visitor.says()
    visitor.choose("colours", "without_first")
    assert_quiet(visitor)


def test_a_text_without_special_tokens_has_no_toggle(open_app: Open) -> None:
    assert [toggle.key for toggle in open_app().app.toggle if toggle.key == "special"] == []


@pytest.mark.parametrize("colours", ["linear", "sqrt", "without_first"])
def test_written(open_app: Open, smollm2: Any, colours: str) -> None:
    visitor = open_app(shows="written", colours=colours)
    assert_quiet(visitor)
    trace = smollm2.trace(LANDING)
    sizes = written(trace, 13, 8)
    first = 1 if colours == "without_first" else 0
    drawn, seen = visitor.drawn(), np.tri(11, dtype=bool)
    np.testing.assert_allclose(drawn[:, first:], masked(sizes, seen)[:, first:], rtol=1e-4)
    chart = visitor.chart("head-map")["data"][0]
    assert chart["zmax"] == pytest.approx(sizes[seen & (np.arange(11) >= first)].max(), rel=1e-4)
    assert chart["colorbar"]["title"]["text"] == "size of what is written"
    before, after = trace.weights(13, 8)[1:, 0].mean(), row_shares(sizes)[1:, 0].mean()
    assert after < before
    assert f"the first token has {before:.0%} of the weight and {after:.0%} of the size" in visitor.says()
    assert "doesn’t cure it" in visitor.says()


def test_the_table_shows_what_is_drawn(open_app: Open) -> None:
    for address in (
        {"shows": "written"},
        {"shows": "words", "text": LONG_WORDS},
        {"model": "minilm", "layer": "5", "special": "off"},
    ):
        visitor = open_app(**address)
        np.testing.assert_allclose(table(visitor), visitor.drawn(), atol=1e-5, rtol=1e-4)


def test_what_is_written_needs_the_weights_in_numpy(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnviz.app.shell import cache

    known = cache.get_engine

    def refuse(choice: Any, *say: Any) -> Any:
        if choice.engine == "numpy":
            raise ValueError("the from-scratch engine doesn't know this layout")
        return known(choice, *say)

    monkeypatch.setattr(cache, "get_engine", refuse)
    visitor = open_app(shows="written")
    assert_quiet(visitor)
    assert "can't be worked out here" in visitor.says() and "doesn't know this layout" in visitor.says()
    assert np.nanmax(visitor.drawn()) <= 1


def test_rollout_for_encoders(open_app: Open, minilm: Any) -> None:
    visitor = open_app(model="minilm", shows="rollout", layer="2", head="3")
    assert_quiet(visitor)
    trace = minilm.trace(LANDING)
    expected = rollout(trace.layer_weights(layer) for layer in range(6))
    np.testing.assert_allclose(visitor.drawn(), expected, atol=1e-6)
    assert "All heads, layers 0 to 5" in visitor.says() and "L2 H3: who" not in visitor.says()
    assert not visitor.has("query")  # no cell of one head under the glass
    visitor.choose("head", 4)
    np.testing.assert_allclose(visitor.drawn(), expected, atol=1e-6)


def test_rollout_is_not_offered_for_decoders(open_app: Open) -> None:
    visitor = open_app(shows="rollout")
    assert_quiet(visitor)
    assert FOR_ENCODERS in visitor.says()
    assert visitor["shows"] == "tokens" and "rollout over all layers" not in visitor.widget("shows").options
    assert "everything ends on the first token" in visitor.widget("shows").help
    visitor.choose("shows", "words")
    visitor.choose("shows", "tokens")
    assert FOR_ENCODERS not in visitor.says()


def test_a_rollout_that_the_next_model_does_not_have_says_so(open_app: Open) -> None:
    visitor = open_app(model="minilm", shows="rollout", layer="5")
    assert FOR_ENCODERS not in visitor.says()
    visitor.choose("model", "smollm2")
    assert visitor["shows"] == "tokens" and FOR_ENCODERS in visitor.says()
    visitor.choose("model", "minilm")
    assert FOR_ENCODERS not in visitor.says()


def test_a_difference_of_sizes_is_with_minus_without(open_app: Open) -> None:
    visitor, maps = open_app(shows="written", causal="off", acts="pass"), {}
    for view in ("before", "after", "difference"):
        visitor.choose("view", view)
        assert_quiet(visitor)
        maps[view] = np.nan_to_num(visitor.drawn())
    np.testing.assert_allclose(maps["difference"], maps["after"] - maps["before"], atol=1e-4)
    assert np.abs(maps["difference"]).max() > 1e-3


@pytest.mark.parametrize("zoom", ["-", "48"])
def test_a_long_text_in_words(open_app: Open, zoom: str) -> None:
    text = " ".join(f"word{i} and" for i in range(130))
    visitor = open_app(model="minilm", layer="5", text=text, shows="words", **({} if zoom == "-" else {"zoom": zoom}))
    assert_quiet(visitor)
    assert max(visitor.drawn().shape) <= 160
    assert ("Each square is the largest" in visitor.says()) == (zoom == "-")


def test_a_rollout_of_too_many_tokens_says_so(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnviz.app.explore import map_choice

    monkeypatch.setattr(map_choice, "MOST_ROLLED", 5)
    visitor = open_app(model="minilm", layer="5", shows="rollout")
    assert_quiet(visitor)
    assert "up to 5 tokens; these are 13" in visitor.says() and "L5 H8: who looks at whom" in visitor.says()


def test_a_map_of_sizes_describes_itself() -> None:
    figure = size_map([[3.0, 0.0], [1.0, 2.0]], ["a", "<b>"], ["a", "<b>"], allowed=np.tri(2), marked=[(1, 0)])
    assert (
        figure.layout.meta["alt"].startswith("size of what is written, 2 queries down")
        and "3." in figure.layout.meta["alt"]
    )
    assert "rows don't sum to 1" in figure.layout.meta["how_to_read"]
    assert "&lt;b&gt;" in str(figure.layout.xaxis.labelalias) and len(figure.layout.shapes) == 1
    retold = retell(figure, {"token": "word"})
    assert "token" not in retold.layout.meta["how_to_read"] and "word" in retold.layout.xaxis.title.text
    with pytest.raises(ValueError, match="0 or more"):
        size_map([[-1.0]], ["a"], ["a"])
    with pytest.raises(ValueError, match="as the labels say"):
        size_map([[1.0]], ["a"], ["a", "b"])
