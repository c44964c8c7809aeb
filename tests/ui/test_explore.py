"""Each control of the Explore page: what it changes on the screen, against the numbers of the trace."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnviz.app.explore.next_words import percent
from attnviz.app.shell.examples import all_examples
from attnviz.app.shell.fields import LANDING
from attnviz.core.heads.at_a_glance import MEASURES, survey
from attnviz.core.trace.switches import Switches
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
CAUSAL = np.tri(11, dtype=bool)  # of the landing text


def masked(weights: np.ndarray, allowed: np.ndarray = CAUSAL) -> np.ndarray:
    """Return weights as the map draws them: nothing where the mask forbids."""
    return np.where(allowed, weights, np.nan)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def assert_quiet(visitor: Visitor) -> None:
    """Fail if the page shows a traceback, an error or a note."""
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


def test_the_landing_page_shows_the_example(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    assert_quiet(visitor)
    assert (visitor.name, visitor["text"]) == ("L13 H8", LANDING)
    weights = smollm2.trace(LANDING).weights(13, 8)
    np.testing.assert_allclose(visitor.drawn(), masked(weights), atol=1e-6)
    assert "it" in LANDING and "**0.81**" in visitor.says()
    assert visitor.component("strip-tokens-strip")["says"]["selected"] == 10  # "it"
    assert visitor.app.query_params == {}


def test_a_typed_text_replaces_the_tokens_when_it_is_run(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    text = "The cat sat on the mat"
    visitor.type(text)
    assert_quiet(visitor)
    trace = smollm2.trace(text)
    assert visitor.component("strip-tokens")["labels"] == [token.label for token in trace.tokens]
    np.testing.assert_allclose(visitor.drawn(), masked(trace.weights(13, 8), np.tri(6, dtype=bool)), atol=1e-6)
    assert visitor.app.query_params == {"text": text}


def test_examples_show_their_heads_and_numbers(open_app: Open) -> None:
    visitor = open_app(model="minilm", layer="2", head="3", text="x y", causal="on", forbid="2.3.2.1", view="before")
    for example in all_examples():
        visitor.press(example.title)
        assert visitor.crashes() == visitor.errors() == [], example.title
        assert (visitor["text"], visitor["draft"]) == (example.text, example.text)
        assert (visitor["model"], visitor["layer"], visitor["head"]) == (example.model, example.layer, example.head)
        assert visitor.visit.switches.at_rest and not visitor.has("view")
        assert f"**{example.weight(visitor.visit.rest):.2f}**" in visitor.says(), example.title
        visitor.app.session_state["causal"], visitor.app.session_state["view"] = "off", "before"


def test_another_model_clamps_the_head_with_a_note_and_gives_exact_ranges(open_app: Open) -> None:
    def ranges() -> list[tuple[int, int]]:
        return [(int(visitor.widget(key).min), int(visitor.widget(key).max)) for key in ("layer", "head")]

    visitor = open_app(layer="29", head="8")
    assert ranges() == [(0, 29), (0, 8)]
    visitor.choose("model", "minilm")
    assert visitor.crashes() == []
    assert (visitor.name, ranges()) == ("L5 H8", [(0, 5), (0, 11)])
    (note,) = visitor.notes()
    assert "L29 H8" in note and "L5 H8" in note
    assert visitor.drawn().shape == (13, 13)  # with [CLS] and [SEP]
    visitor.choose("head", 11)
    visitor.choose("model", "smollm2")
    assert (visitor.name, ranges()) == ("L5 H8", [(0, 29), (0, 8)])
    (note,) = visitor.notes()
    assert "L5 H11" in note
    visitor.choose("layer", 3)
    visitor.choose("model", "minilm")
    assert visitor.name == "L3 H8"
    assert_quiet(visitor)  # a head that is still there is kept without a word


def test_the_boxes_choose_a_head(open_app: Open, smollm2: Any) -> None:
    visitor, trace = open_app(), smollm2.trace(LANDING)
    for key, value, expected in (("layer", 0, "L0 H8"), ("layer", 29, "L29 H8"), ("head", 0, "L29 H0")):
        visitor.choose(key, value)
        assert_quiet(visitor)
        assert visitor.name == expected
        weights = trace.weights(visitor["layer"], visitor["head"])
        np.testing.assert_allclose(visitor.drawn(), masked(weights), atol=1e-6)
        assert visitor.component("overview-selection")["says"]["selected"] == [visitor["layer"], visitor["head"]]


def test_the_arrows_walk_by_one_and_stop_at_the_edges(open_app: Open) -> None:
    visitor = open_app(layer="1", head="7")
    found = []
    for step in ("a layer up", "a layer up", "a head to the right", "a head to the right", "a layer down"):
        visitor.press(f"step {step}")
        found.append(visitor.name)
    assert found == ["L0 H7", "L0 H7", "L0 H8", "L0 H8", "L1 H8"]
    visitor = open_app(layer="29", head="0")
    visitor.press("step a layer down")
    visitor.press("step a head to the left")
    assert visitor.name == "L29 H0"
    assert_quiet(visitor)


def test_a_measure_goes_under_the_thumbnails_and_orders_them(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    assert visitor.widget("order").disabled
    assert visitor.component("overview-measure")["says"] == {"tint": None, "captions": None, "order": None}
    found = survey(smollm2.trace(LANDING))
    for measure in MEASURES:
        visitor.choose("measure", measure)
        assert_quiet(visitor)
        says = visitor.component("overview-measure")["says"]
        values = found.measures[measure].ravel()
        shares = (values - min(values.min(), 0)) / (values.max() - min(values.min(), 0))
        np.testing.assert_allclose(says["tint"], shares, atol=1e-3)
        assert says["captions"][0].startswith(f"{MEASURES[measure].title.lower()}: {values[0]:.2f}")
        assert MEASURES[measure].explanation in visitor.says()
    visitor.choose("order", "measure")
    order = visitor.component("overview-measure")["says"]["order"]
    assert sorted(order) == list(range(270))
    assert np.all(np.diff(values[order]) <= 0)
    visitor.choose("measure", "none")
    assert visitor.component("overview-measure")["says"]["order"] is None


def test_colours_change_the_scale_and_not_the_numbers(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    weights = masked(smollm2.trace(LANDING).weights(13, 8))
    linear = visitor.chart("head-map")["data"][0]
    visitor.choose("colours", "sqrt")
    by_root = visitor.chart("head-map")["data"][0]
    assert by_root["colorscale"] != linear["colorscale"]
    assert [(scale["zmin"], scale["zmax"]) for scale in (linear, by_root)] == [(0, 1), (0, 1)]
    np.testing.assert_allclose(visitor.drawn(), weights, atol=1e-6)
    visitor.choose("colours", "without_first")
    assert_quiet(visitor)
    rest, aside = visitor.chart("head-map")["data"]
    assert rest["zmax"] == pytest.approx(np.nanmax(weights[:, 1:]))
    np.testing.assert_allclose(visitor.drawn()[:, 1:], weights[:, 1:], atol=1e-6)
    assert np.isnan(visitor.drawn()[:, 0]).all() and not aside["showscale"]


def test_the_causal_mask_goes_on_where_the_model_has_none(open_app: Open, minilm: Any) -> None:
    visitor = open_app(model="minilm", layer="0", head="3")
    assert not visitor.widget("mask").value
    off = visitor.drawn()
    assert np.isfinite(off).all()
    np.testing.assert_allclose(off, minilm.trace(LANDING).weights(0, 3), atol=1e-6)
    visitor.choose("mask", True)
    assert_quiet(visitor)
    lower = np.tri(13, dtype=bool)
    expected = np.where(lower, off, 0) / np.where(lower, off, 0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(visitor.drawn(), masked(expected, lower), atol=1e-5)
    assert "not how this model was trained" in visitor.says()


def test_the_causal_mask_goes_off_where_the_model_has_one(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    assert visitor.widget("mask").value
    visitor.choose("mask", False)
    assert_quiet(visitor)
    q, k, _ = smollm2.trace(LANDING).qkv(13, 8)
    np.testing.assert_allclose(visitor.drawn(), softmax(q @ k.T / 8), atol=1e-6)
    visitor.choose("mask", True)
    np.testing.assert_allclose(visitor.drawn(), masked(smollm2.trace(LANDING).weights(13, 8)), atol=1e-6)


@pytest.mark.parametrize("model", ["smollm2", "minilm"])
def test_a_link_may_set_the_mask_and_the_switch_goes_back_to_the_models_own_rule(open_app: Open, model: str) -> None:
    for causal in ("on", "off"):
        visitor = open_app(model=model, layer="0", head="0", causal=causal)
        assert visitor.widget("mask").value == (causal == "on")
        visitor.choose("mask", model == "smollm2")
        visitor.choose("mask", model != "smollm2")
        assert visitor["causal"] == ("off" if model == "smollm2" else "on")
        visitor.choose("mask", model == "smollm2")
        assert visitor["causal"] == "own" and visitor.visit.switches.at_rest


def test_the_root_of_d_has_a_switch_that_moves_the_temperature(open_app: Open) -> None:
    visitor = open_app()
    for divided, temperature in ((False, "off"), (True, "1")):
        visitor.choose("divided", divided)
        assert visitor["temperature"] == temperature
    visitor.choose("temperature", "off")
    assert not visitor.widget("divided").value
    visitor.choose("temperature", "2")
    assert visitor.widget("divided").value


def test_the_temperature_divides_the_scores(open_app: Open, smollm2: Any) -> None:
    visitor, scores = open_app(), smollm2.trace(LANDING).scores(13, 8)
    for chosen, temperature in (("off", 1 / 8), ("0.25", 0.25), ("0.5", 0.5), ("2", 2), ("8", 8)):
        visitor.choose("temperature", chosen)
        assert_quiet(visitor)
        np.testing.assert_allclose(visitor.drawn(), masked(softmax(scores / temperature)), atol=1e-5, err_msg=chosen)


def test_no_factor_stands_among_the_temperatures_where_it_belongs(open_app: Open) -> None:
    visitor = open_app()
    options = visitor.widget("temperature").options
    assert options == ["no 1/√d (= 1/8)", "0.25", "0.5", "1 (model's own)", "2", "4", "8"]
    visitor.choose("model", "minilm")
    assert visitor.widget("temperature").options[0].startswith("no 1/√d (= 0.177)")


def test_a_link_with_a_temperature_of_its_own_finds_its_place(open_app: Open) -> None:
    visitor = open_app(temperature="3")
    assert_quiet(visitor)
    assert visitor.widget("temperature").options[-4:] == ["2", "3", "4", "8"]
    assert visitor.visit.switches == Switches(temperature=3.0)


def test_a_head_off_acts_on_later_layers_and_on_the_prediction(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(layer="12", head="0")
    visitor.press("Switch L12 H0 off")
    assert_quiet(visitor)
    assert visitor["off"] == [(12, 0)]
    before, after = (smollm2.trace(LANDING, switches=Switches(ablate=off)) for off in (frozenset(), {(12, 0)}))
    np.testing.assert_allclose(visitor.drawn(), masked(before.weights(12, 0)), atol=1e-6)  # its own map stays
    visitor.choose("view", "difference")
    assert "keeps its own map" in visitor.says()
    visitor.choose("layer", 20)
    np.testing.assert_allclose(visitor.drawn(), masked(after.weights(20, 0) - before.weights(20, 0)), atol=1e-6)
    assert np.nanmax(np.abs(visitor.drawn())) > 1e-3
    shares = [100 * trace.next_probabilities()[before.next_probabilities().argmax()] for trace in (before, after)]
    assert f"{shares[0]:.1f} % before, {shares[1]:.1f} % now, rank 1 of 49,152" in visitor.says()
    visitor.choose("off", [])
    assert visitor.visit.switches.at_rest


@pytest.mark.parametrize(
    ("button", "look", "elsewhere"),
    [
        ("Forbid in this head", (13, 8, 10, 3), []),
        ("Forbid in this layer", (13, None, 10, 3), [(13, 2)]),
        ("Forbid everywhere", (None, None, 10, 3), [(13, 2), (4, 1)]),
    ],
)
def test_a_look_is_forbidden_and_allowed_again(
    open_app: Open, smollm2: Any, button: str, look: tuple[Any, ...], elsewhere: list[tuple[int, int]]
) -> None:
    visitor = open_app(query="10", key="3")
    visitor.press(button)
    assert_quiet(visitor)
    assert visitor["forbid"] == [look]
    before = smollm2.trace(LANDING).weights(13, 8)
    expected = masked(before)
    expected[10, 3] = np.nan
    expected[10] /= np.nansum(expected[10])
    np.testing.assert_allclose(visitor.drawn(), expected, atol=1e-5)
    assert "masked" in visitor.says()
    forbidden = [(13, 8), *elsewhere]
    for layer, head in ((13, 8), (13, 2), (4, 1)):
        visitor.choose("layer", layer)
        visitor.choose("head", head)
        assert np.isnan(visitor.drawn()[10, 3]) == ((layer, head) in forbidden)
    (label,) = visitor.widget("allow-again").options
    visitor.allow_again(label)
    assert visitor["forbid"] == [] and not visitor.has("allow-again")


def test_the_same_look_is_not_forbidden_twice(open_app: Open) -> None:
    visitor = open_app(query="10", key="3", forbid="13.8.10.3")
    visitor.press("Forbid in this head")
    assert visitor["forbid"] == [(13, 8, 10, 3)]
    assert (visitor.crashes(), visitor.errors()) == ([], [])


def test_a_look_that_would_leave_nothing_is_refused_in_a_sentence(open_app: Open) -> None:
    for address in ({"query": "0", "key": "0"}, {"query": "1", "key": "1", "forbid": "13.8.1.0"}):
        visitor = open_app(**address)
        visitor.press("Forbid in this head")
        assert visitor.crashes() == []
        assert len(visitor.errors() + visitor.notes()) == 1
        assert visitor.has("head-map") and np.isfinite(visitor.drawn()).any()


def test_switches_act_on_the_picture_or_on_the_whole_pass(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(layer="20", causal="off")
    picture = visitor.drawn()
    rest = smollm2.trace(LANDING)
    np.testing.assert_allclose(picture, rest.weights(20, 8, switches=Switches(causal=False)), atol=1e-6)
    shown = visitor.next_words()
    visitor.choose("acts", "pass")
    assert_quiet(visitor)
    whole = smollm2.trace(LANDING, switches=Switches(causal=False))
    np.testing.assert_allclose(visitor.drawn(), whole.weights(20, 8), atol=1e-6)
    assert np.abs(visitor.drawn() - picture).max() > 0.01
    assert "the whole pass" in visitor.says()
    assert visitor.next_words() == shown  # they are of the whole pass, whatever the map shows
    before, after = (dict(trace.next_tokens(8)) for trace in (rest, whole))
    for label, (own, switched) in shown.items():
        assert own == (percent(before[label]) if label in before else own)
        assert switched == (percent(after[label]) if label in after else switched)
    assert set(shown) >= set(list(before)[:4]) | set(list(after)[:4])


def test_one_button_puts_all_switches_at_rest(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(causal="off", temperature="2", off="3.1", forbid="13.8.5.2", acts="pass", view="before")
    assert not next(b for b in visitor.app.button if b.label == "All switches at rest").disabled
    visitor.press("All switches at rest")
    assert_quiet(visitor)
    assert visitor.visit.switches.at_rest and not visitor.visit.in_pass
    assert visitor.app.query_params == {}
    np.testing.assert_allclose(visitor.drawn(), masked(smollm2.trace(LANDING).weights(13, 8)), atol=1e-6)
    assert next(b for b in visitor.app.button if b.label == "All switches at rest").disabled


def test_before_after_and_difference(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    assert not visitor.has("view")  # nothing to compare at rest
    visitor.choose("mask", False)
    trace = smollm2.trace(LANDING)
    before, after = trace.weights(13, 8), trace.weights(13, 8, switches=Switches(causal=False))
    np.testing.assert_allclose(visitor.drawn(), after, atol=1e-6)
    visitor.choose("view", "before")
    np.testing.assert_allclose(visitor.drawn(), masked(before), atol=1e-6)
    visitor.choose("view", "difference")
    assert_quiet(visitor)
    np.testing.assert_allclose(visitor.drawn(), after - before, atol=1e-6)
    bar = visitor.chart("head-map")["data"][0]
    assert bar["zmin"] == pytest.approx(-bar["zmax"]) and "difference" in bar["colorbar"]["title"]["text"]


def test_the_view_is_kept_while_switches_change(open_app: Open) -> None:
    visitor = open_app(causal="off", view="difference")
    visitor.choose("temperature", "2")
    visitor.choose("mask", True)
    assert visitor["view"] == "difference"
    visitor.choose("temperature", "1")
    visitor.choose("temperature", "2")
    assert_quiet(visitor)
    assert visitor["view"] in ("after", "before", "difference")
    assert np.isfinite(visitor.drawn()).any()


def test_histograms_count_the_allowed_cells_of_their_scope(open_app: Open) -> None:
    visitor = open_app()
    assert not visitor.has("histogram-weights")
    for scope, n_heads in (("head", 1), ("layer", 9), ("all", 270)):
        visitor.choose("histogram", scope)
        assert_quiet(visitor)
        assert f"Counted: {66 * n_heads:,} allowed cells of {n_heads} head" in visitor.says()
        assert f"{10 * n_heads:,} rows with a choice" in visitor.says()
        for key in ("histogram-weights", "histogram-maxima", "histogram-gradient"):
            assert visitor.has(key), scope
    visitor.choose("histogram", "hide")
    assert not visitor.has("histogram-weights")


def test_a_query_and_a_key_show_their_numbers(open_app: Open, smollm2: Any) -> None:
    visitor = open_app()
    assert not visitor.has("forbid-head")
    visitor.choose("query", 10)
    visitor.choose("key", 3)
    assert_quiet(visitor)
    trace = smollm2.trace(LANDING)
    weight, score = trace.weights(13, 8)[10, 3], trace.scores(13, 8)[10, 3]
    assert f"·it (10) → ·car (3) in L13 H8: weight {weight:.4f}, score {score:.2f}" in visitor.says()
    visitor.choose("key", None)
    assert not visitor.has("forbid-head")
    visitor.choose("query", 3)
    visitor.choose("key", 10)
    assert "·car (3) → ·it (10) in L13 H8: masked" in visitor.says()
    assert visitor.app.query_params == {"query": "3", "key": "10"}
    visitor.type("Two words")
    assert visitor["query"] is None and not visitor.has("forbid-head")
    assert_quiet(visitor)


def test_the_sentence_is_drawn_as_text_or_as_lines(open_app: Open) -> None:
    visitor = open_app()
    assert visitor.component("strip-tokens-strip")["says"]["mode"] == "shade"
    visitor.choose("strip", "lines")
    assert visitor.component("strip-tokens-strip")["says"]["mode"] == "lines"
    assert_quiet(visitor)


@pytest.mark.parametrize(
    "address",
    [
        {"forbid": "13.8.500.2"},
        {"forbid": "13.8.0.0"},
        {"forbid": "13.8.10.3_13.8.10.3"},
        {"off": "13.8_13.8"},
        {"off": "99.99", "forbid": "99.1.2.1"},
        {"temperature": "1e-300"},
        {"temperature": "1e300"},
        {"query": "500", "key": "3"},
        {"zoom": "5"},
        {"layer": "99", "head": "99"},
        {"part": "cross"},
        {"order": "measure", "view": "difference"},
    ],
    ids=str,
)
def test_a_link_that_asks_for_what_is_not_there_still_shows_a_map(open_app: Open, address: dict[str, str]) -> None:
    visitor = open_app(**address)
    assert visitor.crashes() == []
    visitor.press("All switches at rest") if not visitor.visit.switches.at_rest else visitor.app.run()
    assert visitor.crashes() == []
    assert np.isfinite(visitor.drawn()).any()


def test_all_heads_are_ranked_by_the_chosen_cell(open_app: Open, smollm2: Any) -> None:
    visitor = open_app(query="6", key="3")
    trace = smollm2.trace(LANDING)
    cells = np.array([[trace.weights(layer, head)[6, 3] for head in range(9)] for layer in trace.layers])
    order = np.argsort(-cells, axis=None, kind="stable")[:8]
    expected = [f"L{layer} H{head} {cells[layer, head]:.2f}" for layer, head in (divmod(int(i), 9) for i in order)]
    shown = [button.label for button in visitor.app.button if str(button.key).startswith("looks ")]
    assert shown == expected
    visitor.press(expected[1])
    assert expected[1].startswith(f"{visitor.name} ")
    assert_quiet(visitor)
