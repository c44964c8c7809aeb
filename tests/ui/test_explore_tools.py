"""The tools on Explore that show a layer's heads as lines, and what a head writes in words, without a browser."""

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.app.components.head_lines.head_lines import head_lines
from attnviz.app.explore.writes import EXAMPLE
from attnviz.app.shell.fields import LANDING
from attnviz.core.heads.strong_lines import LEAST
from attnviz.core.trace.switches import Switches
from attnviz.models.scratch.residual import direct_logits, head_write, hidden_states
from tests.ui.conftest import Visitor, _unpacked

Open = Callable[..., Visitor]


def drawn(visitor: Visitor) -> np.ndarray:
    """Return (heads, queries, keys) the weights that the browser is sent."""
    data = visitor.component("head-lines")
    values = np.frombuffer(zlib.decompress(base64.b64decode(data["weights"])), "<u2") / 65535
    return values.reshape(-1, len(data["queries"]), len(data["keys"]))


def says(visitor: Visitor) -> dict[str, Any]:
    return visitor.component("head-lines-heads")["says"]


def bars(visitor: Visitor, side: str) -> tuple[list[str], np.ndarray]:
    """Return words and numbers of one of the charts, from the top down."""
    chart = visitor.chart(f"writes-{side}")
    places = np.concatenate([_unpacked_row(trace["y"]) for trace in chart["data"]])
    values = np.concatenate([_unpacked_row(trace["x"]) for trace in chart["data"]])
    order = np.argsort(places)
    aliases = chart["layout"]["yaxis"]["labelalias"]
    return [aliases[str(int(place))] for place in places[order]], values[order]


def _unpacked_row(values: Any) -> np.ndarray:
    if isinstance(values, list):
        return np.array(values)
    return _unpacked(values | {"shape": values.get("shape", "-1")})


def test_lines_are_the_layer_s_weights_that_are_large_enough(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="lines")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    weights = smollm2.trace(LANDING).layer_weights(13)
    np.testing.assert_allclose(drawn(visitor), np.where(weights >= LEAST, weights, 0), atol=1e-5)
    data = visitor.component("head-lines")
    thin = np.where(weights < LEAST, weights, 0).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    np.testing.assert_allclose(data["thin"], thin, atol=1e-3)
    assert (says(visitor)["shown"], says(visitor)["selected"]) == (None, 8)
    assert len(json.dumps(data)) < 6_000  # bytes on the way for 13 x 13 x 9 weights
    visitor.choose("layer", 4)
    np.testing.assert_allclose(drawn(visitor), _large(smollm2.trace(LANDING).layer_weights(4)), atol=1e-5)


def _large(weights: np.ndarray) -> np.ndarray:
    return np.where(weights >= LEAST, weights, 0)


def test_an_address_chooses_heads_and_drops_those_the_model_has_not(open_app: Open) -> None:
    assert says(open_app(tool="lines", lines_heads="2_8"))["shown"] == [2, 8]
    assert says(open_app(tool="lines", lines_heads="none"))["shown"] == []
    assert says(open_app(tool="lines", lines_heads="2_11"))["shown"] == [2]
    visitor = open_app(tool="lines", lines_heads="99_100")
    assert says(visitor)["shown"] is None
    assert "Layer 13 has heads 0 to 8: there is no head 99 or 100." in visitor.says()


def test_lines_follow_switches_and_the_view(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="lines", forbid="13.8.10.3")
    switches = Switches(forbid=frozenset({(13, 8, 10, 3)}))
    after = smollm2.trace(LANDING).layer_weights(13, switches=switches)
    np.testing.assert_allclose(drawn(visitor), _large(after), atol=1e-5)
    assert drawn(visitor)[8, 10, 3] == 0
    visitor.choose("view", "before")
    assert drawn(visitor)[8, 10, 3] == pytest.approx(0.81, abs=0.005)


def test_a_long_text_shows_the_chosen_part_and_what_lies_outside(open_app: Open, smollm2: Any) -> None:
    text = " ".join(f"word{i}" for i in range(90))
    visitor = open_app(tool="lines", text=text, zoom="96")
    trace = smollm2.trace(text)
    assert len(trace.tokens) > 192
    part = slice(96, 192)
    weights = trace.layer_weights(13, queries=part)[..., part]
    np.testing.assert_allclose(drawn(visitor), _large(weights), atol=1e-5)
    data = visitor.component("head-lines")
    assert (data["start"], data["first"]) == (96, None)  # the first token isn't among these
    assert (
        f"{100 * (1 - weights.sum(axis=-1).mean()):.0f} % of the layer's weight lies on tokens outside"
        in visitor.says()
    )
    assert visitor.component("strip-tokens")["start"] == 96  # of the sentence as text
    outside = trace.weights(13, 8, queries=part)[:, :96].sum(axis=1).mean()
    assert f"{outside:.0%} of these tokens' weight lies on tokens that aren't among them." in visitor.says()


@pytest.mark.parametrize("part", ["encoder", "cross"])
def test_lines_of_encoders_and_of_cross_attention(open_app: Open, tiny_folder: Callable[..., Path], part: str) -> None:
    model = str(tiny_folder("t5"))
    visitor = open_app(tool="lines", model=model, part=part, layer="1", head="2", text="w1 w2 w3")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    trace = attnviz.load(model).trace("w1 w2 w3")
    np.testing.assert_allclose(drawn(visitor), _large(trace.layer_weights(1, part=part)), atol=1e-5)
    queries, keys = trace.tokens_of(part)
    data = visitor.component("head-lines")
    assert data["queries"] == [token.label for token in queries] and data["keys"] == [token.label for token in keys]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": np.zeros((2, 3, 2))}, r"shape \(heads, 2, 2\), got \(2, 3, 2\)"),
        ({"weights": np.full((2, 2, 2), 2.0)}, "between 0 and 1, got 2 to 2"),
        ({"selected": 2}, "heads are 0 to 1, got 2"),
        ({"shown": [-1]}, "heads are 0 to 1, got -1"),
    ],
)
def test_the_component_says_what_does_not_fit(change: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"weights": np.full((2, 2, 2), 0.5), "selected": 0, "on_shown": print, "key": "lines"}
    with pytest.raises(ValueError, match=words):
        head_lines(["a", "b"], ["a", "b"], **(arguments | change))


def test_try_it_shows_the_example_and_its_words(open_app: Open) -> None:
    visitor = open_app(tool="writes", query="3")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert "needn't mean anything" in visitor.says()  # L13 H8 writes for later layers
    visitor.press("writes-example")
    model, text, layer, head = EXAMPLE
    assert (visitor["model"], visitor["text"], visitor["layer"], visitor["head"]) == (model, text, layer, head)
    words, values = bars(visitor, "raised")
    assert words[:4] == ["·are", "·were", "·aren", "·weren"]
    assert values[0] == pytest.approx(3.08, abs=0.02)
    for sentence in ("“·are” most (+3.08 logits)", "·keys** (1): weight 0.73, 88 % of what", "this list stands out"):
        assert sentence in visitor.says()


def test_the_bars_are_the_head_s_direct_logits_at_the_chosen_query(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="writes", layer="26", head="2", query="8")
    model, trace = attnviz.load("smollm2", engine="numpy").model, smollm2.trace(LANDING)
    last = hidden_states(model, [token.id for token in trace.tokens])[-1, 8]
    written = head_write(model, 26, 2, trace.weights(26, 2)[8] @ trace.qkv(26, 2)[2])
    logits = direct_logits(model, last, written)
    logits -= logits.mean()
    for side, order in (("raised", np.argsort(-logits)), ("lowered", np.argsort(logits))):
        words, values = bars(visitor, side)
        np.testing.assert_allclose(values, logits[order[:8]], atol=2e-3)
        assert words[0] == trace.label_of(int(order[0]))


def test_a_pass_under_switches_is_the_one_that_is_read(open_app: Open) -> None:
    model, text, layer, head = EXAMPLE
    at = {"tool": "writes", "text": text, "layer": str(layer), "head": str(head)}
    own, words = bars(open_app(**at), "raised")[1], open_app(**at, temperature="8", acts="picture")
    np.testing.assert_allclose(bars(words, "raised")[1], own, atol=1e-6)
    assert "in the model's own pass" in words.says()
    switched = open_app(**at, temperature="8", acts="pass")
    assert "in the pass under the switches" in switched.says()
    assert abs(bars(switched, "raised")[1][0] - own[0]) > 0.5
    off = open_app(**at, off=f"{layer}.{head}")
    assert "switched off in this pass" in off.says() and not off.has("writes-raised")


def test_models_that_write_no_words_say_why(open_app: Open, tiny_folder: Callable[..., Path]) -> None:
    visitor = open_app(tool="writes", model="minilm", layer="1", head="1")
    assert visitor.crashes() == [] and "predicts no word" in visitor.says()
    visitor = open_app(tool="writes", model=str(tiny_folder("opt")), layer="1", head="1", text="w1 w2 w3")
    assert visitor.crashes() == [] and "needs the model's weights in NumPy" in visitor.says()
    visitor = open_app(tool="writes", model=str(tiny_folder("t5")), part="cross", layer="1", head="1", text="w1 w2 w3")
    assert visitor.crashes() == [] and "encoder-decoder" in visitor.says()
    visitor = open_app(tool="writes", model=str(tiny_folder("gpt2")), layer="1", head="1", text="w1 w2 w3")
    assert (visitor.crashes(), visitor.errors()) == ([], []) and visitor.has("writes-lowered")
