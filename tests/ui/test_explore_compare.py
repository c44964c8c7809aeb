"""Compare on the Explore page: A and B side by side, what is subtracted, and what can't be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.app.explore.compare.text_pairs import all_pairs
from attnviz.app.shell.fields import LANDING
from attnviz.core.text.words import word_of_tokens
from attnviz.core.trace.switches import Switches
from attnviz.models.load.by_name import load
from tests.ui.conftest import Passes, Visitor, _unpacked

Open = Callable[..., Visitor]
Folder = Callable[..., Path]
CAUSAL = np.tri(11, dtype=bool)  # of the landing text
TIRED, BIG, HE = all_pairs()
KEY = "compare-difference"


def shown(visitor: Visitor, key: str) -> np.ndarray:
    """Return the numbers of one of the maps, NaN where it draws none."""
    return _unpacked(visitor.chart(key)["data"][0]["z"])


def masked(weights: np.ndarray, allowed: np.ndarray = CAUSAL) -> np.ndarray:
    return np.where(allowed, weights, np.nan)


def assert_shows(visitor: Visitor, a: np.ndarray, b: np.ndarray) -> None:
    """Fail unless both maps are these, NaN where masked, in the same colours, and no error is on the page."""
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    np.testing.assert_allclose(shown(visitor, "compare-a"), a, atol=1e-5)
    np.testing.assert_allclose(shown(visitor, "compare-b"), b, atol=1e-5)
    ranges = {
        tuple(visitor.chart(key)["data"][0][end] for end in ("zmin", "zmax")) for key in ("compare-a", "compare-b")
    }
    assert len(ranges) == 1


def title(visitor: Visitor, key: str) -> str:
    return visitor.chart(key)["layout"]["title"]["text"]


def test_two_heads(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="compare")
    trace = smollm2.trace(LANDING)
    a, b = trace.weights(13, 8), trace.weights(9, 3)
    assert_shows(visitor, masked(a), masked(b))
    assert (title(visitor, "compare-a"), title(visitor, "compare-b")) == ("A: L13 H8", "B: L9 H3")
    np.testing.assert_allclose(shown(visitor, "compare-difference"), masked(b - a), atol=1e-6)
    scale = visitor.chart("compare-difference")["data"][0]
    assert scale["zmin"] == pytest.approx(-scale["zmax"]) and scale["zmax"] == pytest.approx(np.abs(b - a).max())
    assert f"·it (10) → ·car (3), {a[10, 3]:.2f} in A and {b[10, 3]:.2f} in B" in visitor.says()
    assert f"| ·car (3) | {a[10, 3]:.2f} | Mary (0) | {b[10, 0]:.2f} |" in visitor.says()
    assert "Likeliest next token: A" not in visitor.says()  # one pass has one prediction
    visitor.choose("b_layer", 0)
    visitor.choose("b_head", 2)
    assert_shows(visitor, masked(a), masked(trace.weights(0, 2)))
    assert visitor.app.query_params == {"tool": "compare", "b_layer": "0", "b_head": "2"}


def test_the_other_head_is_the_next_one_of_the_layer(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="compare", layer="5", head="8", query="4", colours="without_first")
    a, b = smollm2.trace(LANDING).weights(5, 8), smollm2.trace(LANDING).weights(5, 0)
    bars = [visitor.chart(key)["data"][0] for key in ("compare-a", "compare-b")]
    assert (visitor["b_layer"], visitor["b_head"]) == (5, 0)
    largest = max(float(each[:, 1:].max()) for each in (a, b))
    assert [bar["zmax"] for bar in bars] == pytest.approx([largest, largest])
    best = int(b[4, :5].argmax())
    token = smollm2.trace(LANDING).tokens[best]
    assert f"| {token.label} ({best}) | {b[4, best]:.2f} |" in visitor.says()


def test_a_head_that_is_not_there_is_said(open_app: Open) -> None:
    visitor = open_app(tool="compare", b_layer="40", b_head="2")
    assert visitor.crashes() == []
    assert "L40 H2 isn't there" in visitor.says() and "so L29 H2 is shown." in visitor.says()
    assert title(visitor, "compare-b") == "B: L29 H2"


def test_a_pair_takes_both_texts_and_what_they_are_about(open_app: Open, minilm: Any) -> None:
    visitor = open_app(tool="compare", versus="text", causal="off")
    assert not visitor.has("compare-a")
    visitor.press("compare-pair-0")
    assert (visitor["text"], visitor["b_text"], visitor.name) == (TIRED.text, TIRED.b_text, "L3 H1")
    a, b = (minilm.trace(text).weights(3, 1) for text in (TIRED.text, TIRED.b_text))
    assert_shows(visitor, a, b)
    apart = [i for i, token in enumerate(minilm.trace(TIRED.text).tokens) if token.label == "tired"]
    expected = b - a
    expected[apart] = expected[:, apart] = np.nan
    np.testing.assert_allclose(shown(visitor, "compare-difference"), expected, atol=1e-5)
    kept = [i for i in range(len(a)) if i not in apart]
    shares = [each[kept][:, apart].sum(axis=1).mean() for each in (a, b)]
    assert f"A's tired ({shares[0]:.0%} of the other rows' weight)" in visitor.says()
    assert f"B's wide ({shares[1]:.0%} of the other rows' weight)" in visitor.says()
    assert "“it” gives “animal” **0.68**" in visitor.says() and "gives “animal” **0.28**" in visitor.says()
    assert "fails in this model" in visitor.says()
    assert "Up to" not in visitor.says()  # this model sees both sides


@pytest.mark.parametrize("pair", all_pairs(), ids=lambda pair: pair.title)
def test_what_a_pair_s_caption_says_is_so(pair: Any, smollm2: Any, minilm: Any) -> None:
    engine = {"smollm2": smollm2, "minilm": minilm}[pair.model]
    traces = engine.trace(pair.text), engine.trace(pair.b_text)
    looks = np.array(
        [
            [trace.weights(pair.layer, pair.head)[query, place(trace, key)] for key in pair.keys]
            for trace, query in zip(traces, pair.rows(*traces), strict=True)
        ]
    )  # (texts, keys)
    ahead = {"tired or wide": (0, 0), "big or small": (0, 0), "he or she": (1, 0)}[pair.title]
    np.testing.assert_array_equal(looks.argmax(axis=1), ahead)
    if pair is TIRED:
        assert looks[1, 0] < looks[0, 0] - 0.3 and looks[1, 1] < looks[0, 1] + 0.1


def place(trace: Any, word: str) -> int:
    """Return the token in which the word's first occurrence ends."""
    end = trace.text.index(word) + len(word)
    return next(token.index for token in trace.tokens if token.start < end <= token.end)


def test_texts_that_part_late_have_equal_rows_before(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="compare", versus="text", text=HE.text, b_text=HE.b_text, layer="9", head="4")
    traces = smollm2.trace(HE.text), smollm2.trace(HE.b_text)
    a, b = (trace.weights(9, 4) for trace in traces)
    allowed = np.tri(len(a), dtype=bool)
    assert_shows(visitor, masked(a, allowed), masked(b, allowed))
    he = place(traces[0], " he")
    assert f"Up to {traces[0].tokens[he - 1].label} ({he - 1}) both texts are the same" in visitor.says()
    assert f"A: ·he ({he}) looks at" in visitor.says() and f"B: ·she ({he}) looks at" in visitor.says()
    (best, share), (best_there, share_there) = (trace.next_tokens(1)[0] for trace in traces)
    assert f"A “{best}”, {100 * share:.3g} %; B “{best_there}”, {100 * share_there:.3g} %." in visitor.says()


def test_switches_act_on_both_texts(open_app: Open, smollm2: Any) -> None:
    for address in ({}, {"acts": "pass"}):
        visitor = open_app(
            tool="compare", versus="text", text="a b c d", b_text="a x c d", layer="20", temperature="2",
            forbid="20.8.3.1", **address,
        )  # fmt: skip
        a, b = Switches(temperature=2, forbid={(20, 8, 3, 1)}), Switches(temperature=2)
        if address:
            maps = (
                smollm2.trace("a b c d", switches=a).weights(20, 8),
                smollm2.trace("a x c d", switches=b).weights(20, 8),
            )
        else:
            maps = (
                smollm2.trace("a b c d").weights(20, 8, switches=a),
                smollm2.trace("a x c d").weights(20, 8, switches=b),
            )
        allowed = np.tri(4, dtype=bool)
        there = allowed.copy()
        there[3, 1] = False
        assert_shows(visitor, masked(maps[0], there), masked(maps[1], allowed))
        assert "Forbidden looks name tokens of A's text" in visitor.says()


@pytest.mark.parametrize(
    ("address", "equal"),
    [
        ({"forbid": "0.1.2.0", "acts": "pass"}, False),
        ({"forbid": "20.8.2.0"}, False),
        ({"forbid": "20.8.4.1", "acts": "pass"}, True),  # of a row after the first difference
        ({"temperature": "2", "acts": "pass"}, True),
        ({"causal": "off", "acts": "pass"}, False),
    ],
)
def test_rows_are_said_to_be_equal_only_under_one_rule(open_app: Open, address: dict[str, str], equal: bool) -> None:
    visitor = open_app(
        tool="compare", versus="text", text="a b c d e", b_text="a b c x e", layer="20", head="8", **address
    )
    assert ("must be equal, and are" in visitor.says()) == equal
    assert "but differ" not in visitor.says()


@pytest.mark.parametrize(
    ("b_text", "sentence"),
    [
        ("", "Type a text"),
        ("   ", "Type a text"),
        (LANDING, "Both texts are the same"),
        ("x" * 1600, "B's text may have 1,500 characters"),
        ("Nothing like it!", "share too few tokens"),
    ],
)
def test_a_text_that_can_t_be_compared_is_a_sentence(open_app: Open, b_text: str, sentence: str) -> None:
    visitor = open_app(tool="compare", versus="text", b_text=b_text)
    assert visitor.crashes() == []
    found = visitor.errors() + visitor.notes()
    assert len(found) == 1 and sentence in found[0], found
    assert visitor.has("head-map") and not visitor.has("compare-difference")
    visitor.widget("b_text").set_value("Mary bought a bus").run()
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])
    assert shown(visitor, "compare-b").shape == (4, 4)


def test_two_models_are_compared_by_words(open_app: Open, smollm2: Any, minilm: Any) -> None:
    visitor = open_app(tool="compare", versus="model")
    traces = smollm2.trace(LANDING), minilm.trace(LANDING)
    a, b = traces[0].weights(13, 8), traces[1].weights(3, 1)
    assert_shows(visitor, masked(a), b)
    assert title(visitor, "compare-b") == "B: all-MiniLM-L6-v2 L3 H1"
    maps = []
    for trace, weights in zip(traces, (a, b), strict=True):
        words = word_of_tokens(trace.tokens, LANDING)
        rows = [weights[words == query].mean(axis=0) for query in range(10)]
        maps.append(np.array([[row[words == key].sum() for key in range(10)] for row in rows]))
    np.testing.assert_allclose(shown(visitor, "compare-difference"), maps[1] - maps[0], atol=1e-5)
    assert f"{1 - maps[1].sum(axis=1).mean():.0%} in B." in visitor.says()
    assert "so words are compared" in visitor.says()
    assert f"| car (4) | {b[11, 4]:.2f} |" in visitor.says()  # the row of the same word, “it”
    assert "B predicts none" in visitor.says()
    visitor.choose("b_layer", 5)
    assert_shows(visitor, masked(a), traces[1].weights(5, 1))
    visitor.choose("b_model", "untrained")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert title(visitor, "compare-b") == "B: Untrained (random weights) L2 H0"


def test_a_model_that_is_not_there_leaves_a_as_it_is(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", no_network)
    visitor = open_app(tool="compare", versus="model", b_model="no-such/model")
    assert visitor.crashes() == []
    (sentence,) = visitor.errors()
    assert "no-such/model" in sentence and sentence.endswith(".") and len(sentence) < 300
    assert visitor.has("head-map") and not visitor.has("compare-a")
    visitor.choose("b_model", "minilm")
    assert (visitor.crashes(), visitor.errors()) == ([], []) and visitor.has("compare-b")


def test_models_with_one_tokenizer_are_compared_by_tokens(open_app: Open, tiny_folder: Folder) -> None:
    names = [str(tiny_folder(name)) for name in ("llama", "gpt2")]
    words = "w1 w2 w3 w4"
    visitor = open_app(
        tool="compare", versus="model", model=names[0], text=words, layer="1", head="0", b_model=names[1], b_layer="0",
        b_head="3",
    )  # fmt: skip
    a, b = load(names[0]).trace(words).weights(1, 0), load(names[1]).trace(words).weights(0, 3)
    allowed = np.tri(4, dtype=bool)
    assert_shows(visitor, masked(a, allowed), masked(b, allowed))
    np.testing.assert_allclose(shown(visitor, "compare-difference"), masked(b - a, allowed), atol=1e-5)
    assert "so words are compared" not in visitor.says()


def test_cross_attention_is_compared_within_its_model_only(open_app: Open, tiny_folder: Folder) -> None:
    folder, other = str(tiny_folder("t5")), str(tiny_folder("bert"))
    visitor = open_app(tool="compare", model=folder, text="w1 w2 w3", part="cross", layer="1", head="0")
    trace = load(folder).trace("w1 w2 w3")
    assert_shows(visitor, trace.weights(1, 0, part="cross"), trace.weights(1, 1, part="cross"))
    visitor.choose("versus", "model")
    visitor.widget("b_model").options.append(other)
    visitor.widget("b_model").set_value(other).run()
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert visitor.has("compare-b") and "there is no map of differences" in visitor.says()


def test_switches_stand_beside_the_model_at_rest(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(tool="compare", versus="switches")
    trace = smollm2.trace(LANDING)
    rest, unscaled = trace.weights(13, 8), trace.weights(13, 8, switches=Switches(scaled=False))
    assert_shows(visitor, masked(rest), masked(unscaled))
    assert "No switch is on, so B shows one: no 1/√d" in visitor.says()
    visitor.press("compare-switch-1")
    assert visitor["causal"] == "off"
    open_map = trace.weights(13, 8, switches=Switches(causal=False))
    assert_shows(visitor, open_map, masked(rest))
    np.testing.assert_allclose(shown(visitor, "compare-difference"), rest - open_map, atol=1e-6)
    assert title(visitor, "compare-a") == "A: no mask (this picture)"
    visitor.choose("acts", "pass")
    assert_shows(visitor, smollm2.trace(LANDING, switches=Switches(causal=False)).weights(13, 8), masked(rest))
    assert "Likeliest next token: A" in visitor.says()


def test_a_head_that_is_off_keeps_its_map(open_app: Open) -> None:
    visitor = open_app(tool="compare", versus="switches")
    visitor.press("L13 H8 off")
    assert (visitor.crashes(), visitor.errors(), visitor["off"]) == ([], [], [(13, 8)])
    assert np.nanmax(np.abs(shown(visitor, "compare-difference"))) == 0
    assert "keeps its own map" in visitor.says() and "Likeliest next token: A" in visitor.says()


def test_a_model_without_switches_says_why(open_app: Open, tiny_folder: Folder) -> None:
    visitor = open_app(tool="compare", versus="switches", model=str(tiny_folder("bloom")), text="w1 w2 w3", layer="0")
    assert visitor.crashes() == []
    assert len(visitor.errors()) == 1 and visitor.has("head-map")


def test_long_texts_show_the_same_part_of_both(open_app: Open, smollm2: Any) -> None:
    text = " ".join(["the cat sat on a mat"] * 30)
    b_text = text.replace("cat", "dog", 1)
    visitor = open_app(tool="compare", versus="text", text=text, b_text=b_text)
    a, b = (smollm2.trace(each).weights(13, 8)[:96, :96] for each in (text, b_text))
    allowed = np.tri(96, dtype=bool)
    assert_shows(visitor, masked(a, allowed), masked(b, allowed))
    assert "Tokens 0 to 95 of 180; 0% of these rows' weight lies outside." in visitor.says()
    visitor.choose("zoom", 48)
    assert_shows(
        visitor,
        *(masked(smollm2.trace(each).weights(13, 8)[48:144, 48:144], allowed) for each in (text, b_text)),
    )


def test_a_short_text_beside_the_end_of_a_long_one(open_app: Open) -> None:
    visitor = open_app(
        tool="compare", versus="text", text=" ".join(["the cat sat on a mat"] * 30), b_text="the cat", zoom="84"
    )
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert shown(visitor, "compare-a").shape == (96, 96) and shown(visitor, "compare-b").shape == (2, 2)


def test_odd_signs_are_shown_as_they_are(open_app: Open) -> None:
    text = "a<b> *c* $x$ | d"
    visitor = open_app(tool="compare", versus="text", text=text, b_text=text + " `e`")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert "<b>" not in title(visitor, "compare-a")
    table = next(str(m.value) for m in visitor.app.markdown if "looks at" in str(m.value))
    assert all(line.replace("\\|", "").count("|") == 5 for line in table.splitlines())


def test_two_visitors_compare_apart_and_share_the_passes(open_app: Open, passes: Passes) -> None:
    one = open_app(tool="compare", versus="text", b_text="Mary bought a bus")
    other = open_app(tool="compare", versus="text", b_text="Mary bought a bus", layer="3")
    assert [text for _, text, _ in passes.own] == [LANDING, "Mary bought a bus"]
    other.widget("b_text").set_value("Mary sold it").run()
    assert (one["b_text"], one.app.query_params["b_text"]) == ("Mary bought a bus", "Mary bought a bus")
    one.app.run()
    assert shown(one, "compare-b").shape == (4, 4) and shown(other, "compare-b").shape == (3, 3)


def test_what_is_compared_opens_again_from_its_link(open_app: Open) -> None:
    visitor = open_app(tool="compare")
    visitor.choose("versus", "model")
    visitor.choose("b_model", "untrained")
    visitor.choose("b_head", 3)
    again = open_app(**visitor.app.query_params)
    for key in ("compare-a", "compare-b", "compare-difference"):
        np.testing.assert_array_equal(shown(again, key), shown(visitor, key))


def test_the_framed_row_of_another_model_is_that_of_the_same_word(open_app: Open, smollm2: Any, minilm: Any) -> None:
    text = "The heads of F. Ångström and Ünal saw 12,345 unbelievable things"
    visitor = open_app(tool="compare", versus="model", text=text)
    words, there = (word_of_tokens(engine.trace(text).tokens, text) for engine in (smollm2, minilm))
    tokens = minilm.trace(text).tokens
    for query in range(0, len(words), 3):
        visitor = open_app(tool="compare", versus="model", text=text, query=str(query))
        table = next(each for each in visitor.says().splitlines() if "looks at | weight | B: " in each)
        row = int(table.split(" | ")[2].rpartition("(")[2].partition(")")[0])
        word = words[query:][words[query:] >= 0][0]  # of a space: the next one
        assert there[row] == word and not tokens[row].special


def test_labels_from_right_to_left_are_isolated(open_app: Open) -> None:
    visitor = open_app(tool="compare", model="minilm", text="שלום לך עולם", layer="3", head="1", query="1")
    line = next(each for each in visitor.says().splitlines() if each.startswith("| A: "))
    assert line.count("\u2068") == line.count("\u2069") == 2


def test_a_text_that_b_reads_in_part_is_said(open_app: Open, minilm: Any) -> None:
    text = " ".join(["the cat sat on a mat"] * 100)
    visitor = open_app(tool="compare", versus="model", text=text, zoom="288", layer="3")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert "Showing the first 512 of 602 tokens of B; the rest was not read." in visitor.says()
    assert "Tokens 288 to 383 of 600;" in visitor.says() and "Tokens 289 to 384 of 512;" in visitor.says()


def test_weight_on_a_learned_sink_is_said_to_lie_there(open_app: Open, tiny_folder: Folder) -> None:
    folder = str(tiny_folder("gptoss"))
    visitor = open_app(
        tool="compare", versus="model", model=folder, b_model="minilm", text="w1 w2 w3 w4", layer="1", head="0"
    )
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    missing = 1 - np.nansum(shown(visitor, "compare-a"), axis=1).mean()
    assert missing > 0.01
    said = f"Rows sum to less than 1: {missing:.0%} goes to this head's learned sink"
    assert visitor.says().replace("1\\:", "1:").count(said) == 2  # under the large map and under A
    lost = visitor.says().partition("belong to none of them is left out: ")[2].partition(".")[0]
    assert lost.endswith("% in B")  # on its [CLS] and [SEP]; A's sink is no token
    assert " in A" not in lost


def test_one_token_has_no_choice(open_app: Open) -> None:
    visitor = open_app(tool="compare", text="Hello")
    assert (visitor.crashes(), visitor.errors(), visitor.has("compare-a")) == ([], [], True)
    assert visitor.notes() == [
        "A text of one token leaves no choice of where to look, so there is no map of differences."
    ]


def test_files_of_two_comparisons_have_different_names(open_app: Open) -> None:
    def name(**address: str) -> str:
        chart = next(each for each in open_app(tool="compare", **address).app.get("plotly_chart") if each.key == KEY)
        return json.loads(chart.proto.config)["toImageButtonOptions"]["filename"]

    names = [name(), name(b_layer="0", b_head="2"), name(versus="switches"), name(versus="model")]
    assert len(set(names)) == 4 and names[0].endswith("L13 H8 with L9 H3")


def test_the_default_of_b_s_head_is_that_of_a_s_model(open_app: Open) -> None:
    visitor = open_app(tool="compare")
    visitor.choose("model", "minilm")
    layer, head = visitor["layer"], visitor["head"]
    assert (visitor["b_layer"], visitor["b_head"]) == (layer, (head + 1) % 12)
    visitor.choose("model", "smollm2")
    visitor.choose("b_layer", 4)
    visitor.choose("model", "minilm")
    assert visitor["b_layer"] == 4
