"""The page "From scratch": its frame, and the steps roles, scores, position, weighted sum, several heads, matches."""

import inspect
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from attnviz.app.pages import FIELDS
from attnviz.app.scratch.steps import DRAW
from attnviz.app.scratch.texts import all_steps
from attnviz.app.shell.fields import LANDING
from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.rotary import score_by_distance, turn_back
from attnviz.core.attention.split_heads import random_heads
from attnviz.core.attention.textbook import attention_scores, softmax
from attnviz.core.heads.shuffled import followed_by_heads
from attnviz.core.text.words import shuffle_words
from tests.ui.charts import bars, printed, unfold, unpacked, values
from tests.ui.conftest import Passes, Visitor

Open = Callable[..., Visitor]
CAUSAL = np.tri(11, dtype=bool)  # of the landing text
IT, CAR = 10, 3  # its followed cell
STEPS = all_steps()
NAMES = list(STEPS)
MINE = ["roles", "scores", "position", "weighted_sum", "several_heads", "matches"]
THETA = 100000.0  # of SmolLM2's turns
FOLDS = {  # what isn't told aloud
    "roles": ["roles-more"],
    "scores": ["scores-row"],
    "position": ["position-turns", "position-shuffle"],
    "weighted_sum": ["weighted-sum-stream", "weighted-sum-word"],
    "several_heads": ["several-heads-writes"],
    "matches": ["matches-numbers"],
}
LOOKS = {  # the pictures that aren't folded away; those of one kind, side by side, are one look
    "roles": [("roles-queries", "roles-keys", "roles-values")],
    "scores": [("lesson-scores",), ("lesson-products",)],
    "position": [("lesson-distance-own", "lesson-distance-previous")],
    "scaling": [("scores-random-without", "scores-random-with")],
    "mask": [("mask-real-with", "mask-real-without")],
    "softmax": [("softmax-row",), ("softmax-sums",)],
    "weighted_sum": [("lesson-shares",), ("lesson-stack",)],
    "several_heads": [("lesson-head-one", "lesson-head-other")],
    "matches": [("lesson-apart",)],
}
SPOKEN_A_MINUTE, READ_A_MINUTE = 140, 200  # words
SECONDS_A_LOOK = 20


def trail(visitor: Visitor) -> str:
    """Return the last line that follows the number."""
    return [text for text in visitor.says().split("\n") if text.startswith("**Followed:**")][-1]


def assert_well(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


# --- the frame ---


def test_every_step_of_the_file_is_drawn_by_a_module_and_has_an_address() -> None:
    assert list(DRAW) == NAMES == list(dict.fromkeys(NAMES))
    assert len(NAMES) == 9
    for name in NAMES:
        assert FIELDS["step"].read(name) == name


@pytest.mark.parametrize("step", STEPS.values(), ids=NAMES)
def test_a_step_has_all_its_parts(step: Any) -> None:
    assert step.title and step.formula and step.question.strip().endswith("?") and step.answer
    assert len(re.findall(r"[.?!](?=\s|$)", step.text)) <= 2  # before the first picture
    assert "T" in step.formula or "d" in step.formula  # the shapes
    assert step.code
    for function in step.functions():
        assert inspect.getsource(function).lstrip().startswith(("def ", "class "))
        assert function.__module__.startswith("attnviz.")


@pytest.mark.parametrize("name", NAMES)
def test_a_step_opens_from_its_own_link(open_step: Any, name: str) -> None:
    visitor = open_step(name)
    assert_well(visitor)
    step = STEPS[name]
    assert visitor["step"] == name
    assert f"{step.number}. {step.title}" in visitor.says()
    assert visitor.app.query_params == ({} if name == "roles" else {"step": name})
    assert step.question in visitor.says()
    assert visitor.app.latex[0].value.strip("$\n") == step.formula.strip("$\n")
    said = visitor.says()
    for word in ("Jacobian", "Frobenius", "urtosis", "cosine", "−1e9", "float16", "odds"):
        assert word not in said, word  # what needs more than linear algebra isn't told aloud
    # The answer comes at a click and goes at the next.
    button, before = f"answer-{name}-button", len(visitor.says())
    visitor.press(button)
    assert_well(visitor)
    assert len(visitor.says()) > before
    assert not re.search(r"\{[a-z_]*[:}]", re.sub(r"\$.*?\$", "", visitor.says()))  # every name has its number
    visitor.press(button)
    assert len(visitor.says()) == before
    # The code is the source of the functions.
    unfold(visitor, f"code-{name}")
    assert [block.value.strip() for block in visitor.app.code] == [
        inspect.getsource(function).strip() for function in STEPS[name].functions()
    ]


def test_next_and_back_lead_through_all_steps(open_step: Any) -> None:
    visitor = open_step("roles", text="The cat sat on the mat")
    assert not visitor.has("back")
    for name in NAMES[1:]:
        visitor.press("next")
        assert visitor["step"] == name and visitor.app.query_params["step"] == name
        assert_well(visitor)
    assert not visitor.has("next")
    visitor.press("back")
    assert visitor["step"] == NAMES[-2]
    visitor.choose("step", "scores")
    assert "2. Scores" in visitor.says()
    assert visitor["text"] == "The cat sat on the mat"


def test_boxes_are_told_their_values_until_a_step_is_drawn_to_its_end(open_step: Any) -> None:
    visitor = open_step("scaling", layer="4", swap="badly")
    visitor.choose("step", "mask")
    visitor.app.run()
    box = visitor.widget("swap")
    assert not box.proto.set_value and box.value == "badly"  # a value that the browser knows doesn't fight its clicks
    visitor.app.session_state["places"] = {"step": "scaling"}  # as if clicks had overtaken the run that brought the box
    visitor.app.run()
    for key, value in (("swap", "badly"), ("layer", 4)):
        box = visitor.widget(key)
        assert box.proto.set_value and box.value == value, key  # else the browser may show, and tell, the lowest


def test_the_link_to_a_step_holds_all_that_was_chosen(open_step: Any) -> None:
    visitor = open_step("scores", text="The cat sat on it", layer="4")
    (link,) = re.findall(r"\[Link to this step\]\(\?(.*?)\)", visitor.says())
    assert dict(parse_qsl(link)) == {"text": "The cat sat on it", "layer": "4", "step": "scores"}


def test_going_to_explore_and_back_keeps_the_text_and_the_step(open_step: Any) -> None:
    visitor = open_step("scores", text="The cat sat on it", layer="4")
    for page, expected in (("explore", "who looks at whom"), ("scratch", "2. Scores")):
        visitor.app.query_params.clear()  # as streamlit does between pages
        visitor.app.switch_page(f"attnviz/app/{page}/page.py").run()
        assert_well(visitor)
        assert expected in visitor.says()
        assert (visitor["text"], visitor["layer"], visitor["step"]) == ("The cat sat on it", 4, "scores")
        assert visitor.app.query_params == {"text": "The cat sat on it", "layer": "4", "step": "scores"}


def test_a_speaker_tells_the_lesson_in_ten_minutes(open_step: Any) -> None:
    aloud, seen, n_looks = 0, 0, 0
    visitor = open_step(NAMES[0])
    for name in NAMES:
        visitor.choose("step", name)
        visitor.press(f"answer-{name}-button")
        main = visitor.app.main
        told = [element.value for element in main.markdown if not element.value.startswith((":gray[", "[Link"))]
        assert told[1].startswith("**Guess first.**")
        aloud += n_words(told[:3])  # the text, the question and the answer
        seen += n_words([*told, *(caption.value for caption in main.caption)])
        assert {chart.key for chart in main.get("plotly_chart")} == {key for look in LOOKS[name] for key in look}
        n_looks += len(LOOKS[name])
    looking = n_looks * SECONDS_A_LOOK / 60
    assert aloud / SPOKEN_A_MINUTE + looking < 10, (aloud, n_looks)
    assert seen / READ_A_MINUTE + looking < 10, (seen, n_looks)


def n_words(texts: list[str]) -> int:
    """Return how many words texts in Markdown have, without its signs."""
    return sum(len(re.findall(r"\S*\w\S*", re.sub(r":[a-z-]+\[", "", text))) for text in texts)


def test_the_lesson_needs_one_pass_of_the_text(open_step: Any, passes: Passes) -> None:
    visitor = open_step("roles")
    for name in ("scores", "position", "weighted_sum", "several_heads", "matches"):
        visitor.choose("step", name)
    assert [text for _, text, _ in passes.own] == [LANDING]


def test_switches_leave_the_lesson_at_rest_and_it_says_so(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("scores", causal="off", acts="pass")
    assert "shows the model at rest" in visitor.says()
    scores = smollm2.trace(LANDING).scores(13, 8)
    np.testing.assert_allclose(values(visitor, "lesson-scores"), np.where(CAUSAL, scores, np.nan), atol=1e-5)


def test_a_followed_cell_that_is_masked_becomes_one_that_is_not(open_step: Any) -> None:
    visitor = open_step("scores", query="2", key="7")
    assert "·a (2) → ·bought (1)" in trail(visitor)


def test_a_long_text_is_drawn_in_part_and_the_page_says_what_is_left_out(open_step: Any, smollm2: Any) -> None:
    text = "The cat sat on the mat and looked at the dog. " * 6
    visitor = open_step("scores", text=text, layer="18", head="6")
    trace = smollm2.trace(text)
    n = len(trace.tokens)
    outside = trace.weights(18, 6)[-1, : n - 48].sum()
    assert f"Drawn: tokens {n - 48} to {n - 1}" in visitor.says()
    assert f"{outside:.0%}".replace("%", " %") + " of the followed row's weight" in visitor.says()
    assert values(visitor, "lesson-scores").shape == (48, 48)
    for name in MINE:
        visitor.choose("step", name)
        assert visitor.crashes() == visitor.errors() == []


@pytest.mark.parametrize(
    "address",
    [
        {"text": "Hi"},
        {"text": "a <b>x</b> $y$ *z* {w} [q](r) `c`"},
        {"source": "random", "width": "1", "rows": "2"},
        {"source": "random", "width": "1024", "rows": "32", "heads": "7"},
        {"model": "minilm", "layer": "3", "head": "1"},
        {"engine": "numpy", "layer": "0", "head": "0"},
        {"query": "99", "key": "98", "other": "77"},
    ],
    ids=lambda address: "-".join(address.values())[:24],
)
def test_steps_bear_every_text_and_model(open_step: Any, address: dict[str, str]) -> None:
    visitor = open_step(MINE[0], **address)
    for name in MINE:
        visitor.choose("step", name)
        for box in FOLDS[name]:  # opened with the next run
            visitor.app.session_state[box] = True
        if visitor.has(f"answer-{name}-button"):
            visitor.press(f"answer-{name}-button")
        else:
            visitor.app.run()
        assert visitor.crashes() == visitor.errors() == [], name


# --- roles ---


def test_roles_draws_the_heads_own_vectors(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("roles")
    for name, expected in zip(("queries", "keys", "values"), smollm2.trace(LANDING).qkv(13, 8), strict=True):
        np.testing.assert_allclose(values(visitor, f"roles-{name}"), expected, atol=1e-6)
    assert "L13 H8 is head 8 of layer 13" in visitor.says()
    unfold(visitor, "roles-more")
    assert "Heads 6 to 8 of layer 13 share these keys and values; the layer has 3 sets" in visitor.says().replace(
        "\n", " "
    )
    visitor.press("answer-roles-button")
    assert f"**{3 * 11 * 64:,}**" in visitor.says()


def test_roles_of_random_numbers_follow_their_knobs(open_step: Any) -> None:
    visitor = open_step("roles", source="random")
    for key, value in (("rows", 9), ("width", 16), ("seed", 5)):
        visitor.choose(key, value)
    np.testing.assert_allclose(values(visitor, "roles-keys"), random_qkv(9, 16, seed=5)[1], atol=1e-6)
    assert visitor.app.query_params == {"source": "random", "rows": "9", "width": "16", "seed": "5"}
    visitor.choose("source", "real")
    assert values(visitor, "roles-keys").shape == (11, 64)


def test_roles_of_a_model_with_keys_for_each_head_says_so(open_step: Any) -> None:
    visitor = open_step("roles", model="minilm")
    unfold(visitor, "roles-more")
    assert "has keys and values of its own" in visitor.says()


# --- scores ---


def test_scores_takes_the_followed_cell_apart(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("scores")
    trace = smollm2.trace(LANDING)
    q, k, _ = trace.qkv(13, 8)
    np.testing.assert_allclose(bars(visitor, "lesson-products"), q[IT] * k[CAR], atol=1e-5)
    assert len(visitor.chart("lesson-products")["data"]) == 1  # which are the few is part of the answer
    weight = trace.weights(13, 8)[IT, CAR]
    assert f"q · k **48.67** :gray[→] score **6.08** :gray[→] :violet-background[weight **{weight:.3f}**]" in trail(
        visitor
    )
    visitor.press("answer-scores-button")
    assert "**5 of 64**" in visitor.says()
    assert "the largest positive ones come to 44.3, the others to 4.42, all to 48.7" in visitor.says()
    assert len(unpacked(visitor.chart("lesson-products")["data"][0]["y"])) == 5
    unfold(visitor, "scores-row")
    row = visitor.app.dataframe[0].value
    np.testing.assert_allclose(printed(row["weight"]), trace.weights(13, 8)[IT], atol=1e-4)
    np.testing.assert_allclose(printed(row["q · k"]) / 8, printed(row["score"]), atol=0.01)
    assert "−" in "".join(row["score"]) and "-" not in "".join(row["score"])
    assert row["key"][CAR] == "·car (3) ◀"


def test_another_cell_is_followed_through_all_steps(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("scores")
    visitor.choose("followed-query", 9)
    visitor.choose("followed-key", 6)
    assert (visitor["query"], visitor["key"]) == (9, 6)
    q, k, _ = smollm2.trace(LANDING).qkv(13, 8)
    np.testing.assert_allclose(bars(visitor, "lesson-products"), q[9] * k[6], atol=1e-5)
    visitor.choose("step", "weighted_sum")
    assert "·drive (9) → ·she (6)" in trail(visitor)
    assert visitor.app.query_params == {"step": "weighted_sum", "query": "9", "key": "6"}


def test_scores_of_random_numbers(open_step: Any) -> None:
    visitor = open_step("scores", source="random", rows="5", width="3", seed="2")
    q, k, _ = random_qkv(5, 3, seed=2)
    scores = attention_scores(q, k, causal=True)
    drawn = values(visitor, "lesson-scores")
    np.testing.assert_allclose(drawn, np.where(np.tri(5, dtype=bool), scores, np.nan), atol=1e-5)
    unfold(visitor, "scores-row")
    np.testing.assert_allclose(printed(visitor.app.dataframe[0].value["weight"]), softmax(scores)[4], atol=1e-4)


# --- position ---


def test_position_draws_the_pairs_score_over_distance(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("position")
    assert "awaited" not in visitor.says() and "comes with the answer" in visitor.says()
    visitor.press("answer-position-button")
    trace = smollm2.trace(LANDING)
    for key, layer, head in (("own", 13, 8), ("previous", 16, 0)):
        q, k, _ = trace.qkv(layer, head)
        q, k = (turn_back(x, THETA) for x in (q, k))
        curves = score_by_distance(q, k, 65, THETA) / 8
        chart = f"lesson-distance-{key}"
        np.testing.assert_allclose(values(visitor, chart, 3, "y"), curves[:, 1:, 1:].mean(axis=(1, 2)), atol=1e-3)
        np.testing.assert_allclose(values(visitor, chart, 2, "y"), curves[:, IT, CAR], atol=1e-3)
        ring = visitor.chart(chart)["data"][4]
        assert unpacked(ring["x"]).tolist() == [IT - CAR]
        np.testing.assert_allclose(unpacked(ring["y"]), trace.scores(layer, head)[IT, CAR], atol=1e-3)
    ranges = [visitor.chart(f"lesson-distance-{key}")["layout"]["yaxis"]["range"] for key in ("own", "previous")]
    assert ranges[0] == ranges[1]
    visitor.press("take-previous")
    assert (visitor["query"], visitor["key"]) == (IT, CAR)  # the pair stays
    assert visitor.name == "L16 H0" and not visitor.has("take-previous")


def test_position_shuffles_the_words_by_the_seed(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("position")
    assert not visitor.has("lesson-shuffled")
    unfold(visitor, "position-shuffle")
    for seed in (0, 7):
        visitor.choose("seed", seed)
        text, order = shuffle_words(LANDING, seed)
        assert f"“{text}”" in visitor.says()
        found = followed_by_heads(smollm2.trace(LANDING), smollm2.trace(text), order)
        lead = found[..., 0] - found[..., 1]
        np.testing.assert_allclose(values(visitor, "lesson-shuffled"), lead.T, atol=1e-5)
        crosses = visitor.chart("lesson-shuffled")["layout"]["shapes"][-1]["path"]
        assert crosses.count("M") == 2 * np.isnan(lead).sum() > 0
        layer, head = np.argwhere(np.isnan(lead))[0]
        assert f"M{layer - 0.3:g},{head - 0.3:g}L{layer + 0.3:g},{head + 0.3:g}" in crosses
        shuffled = smollm2.trace(text).weights(13, 8)
        allowed = np.tri(len(shuffled), dtype=bool)
        np.testing.assert_allclose(
            values(visitor, "lesson-map-shuffled"), np.where(allowed, shuffled, np.nan), atol=1e-6
        )
    visitor.press("answer-position-button")
    assert f"**{(lead > 0).sum()} rather stay at their places" in visitor.says().replace("\n", " ")


def test_position_of_a_model_without_turns_says_so(open_step: Any) -> None:
    visitor = open_step("position", model="minilm", layer="0", head="2")
    unfold(visitor, "position-shuffle")
    assert_well(visitor)
    assert "This model turns nothing" in visitor.says()
    assert not visitor.has("lesson-distance-own") and visitor.has("lesson-shuffled")


def test_position_of_two_words_can_not_be_shuffled(open_step: Any) -> None:
    visitor = open_step("position", text="Hello there")
    unfold(visitor, "position-shuffle")
    (note,) = visitor.notes()
    assert "at least three words" in note


# --- weighted sum ---


def test_weighted_sum_draws_a_stack_that_adds_up(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("weighted_sum")
    trace = smollm2.trace(LANDING)
    weights, v = trace.weights(13, 8)[IT], trace.qkv(13, 8)[2]
    np.testing.assert_allclose(values(visitor, "lesson-shares", 0, "y"), weights, atol=1e-6)
    assert len(visitor.chart("lesson-shares")["data"]) == 1  # the shares are the answer
    visitor.press("answer-weighted_sum-button")
    stack = values(visitor, "lesson-stack")
    np.testing.assert_allclose(stack[:-1], weights[:, None] * v, atol=1e-6)
    np.testing.assert_allclose(stack[-1], weights @ v, atol=1e-6)
    sizes = np.linalg.norm(weights[:, None] * v, axis=1)
    np.testing.assert_allclose(values(visitor, "lesson-shares", 1, "y"), sizes / sizes.sum(), atol=1e-6)


def test_weighted_sum_ends_in_the_next_word(open_step: Any, smollm2: Any) -> None:
    import torch

    visitor = open_step(
        "weighted_sum", layer="24", head="4", text="When Mary and John went to the store, John gave a drink to"
    )
    model, trace = smollm2.model, visitor.visit.rest
    label, chance = trace.next_tokens(1)[0]
    unfold(visitor, "weighted-sum-word")
    assert f"finds “{label}” likeliest ({chance:.1%}".replace("%", " %") in visitor.says().replace("\n", " ")
    votes = bars(visitor, "lesson-votes", "x")
    found = trace.weights(24, 4)[-1] @ trace.qkv(24, 4)[2]
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():  # the same through transformers' own modules
        last = {}
        handle = model.model.norm.register_forward_pre_hook(lambda module, given: last.update(x=given[0][0, -1]))
        model(ids)
        handle.remove()
        written = model.model.layers[24].self_attn.o_proj.weight[:, 4 * 64 : 5 * 64] @ torch.from_numpy(found.copy())
        size = torch.sqrt((last["x"] ** 2).mean() + model.config.rms_norm_eps)
        logits = model.lm_head(written / size * model.model.norm.weight)
    words = np.argsort(-trace.next_probabilities(), kind="stable")[:6]
    np.testing.assert_allclose(votes, (logits[words] - logits.mean()).numpy(), atol=2e-3)


def test_weighted_sum_shows_the_stream_of_the_followed_token(open_step: Any, smollm2: Any) -> None:
    import torch

    visitor = open_step("weighted_sum", query="6")
    trace = smollm2.trace(LANDING)
    with torch.inference_mode():
        states = smollm2.model(
            torch.tensor([[token.id for token in trace.tokens]]), output_hidden_states=True
        ).hidden_states
    unfold(visitor, "weighted-sum-stream")
    x = np.stack([state[0, 6].numpy() for state in states[:-1]])
    likeness = (x @ x[0]) / np.linalg.norm(x, axis=1) / np.linalg.norm(x[0])
    np.testing.assert_allclose(bars(visitor, "lesson-likeness")[:-1], likeness, atol=1e-3)
    sizes = bars(visitor, "lesson-sizes", "x")
    np.testing.assert_allclose(sizes[[0, 1, 3]], np.linalg.norm(x[[0, 13, 14]], axis=1), rtol=1e-3)
    matrix = smollm2.model.model.layers[13].self_attn.o_proj.weight.detach().numpy()[:, 8 * 64 : 9 * 64]
    written = matrix @ (trace.weights(13, 8)[6] @ trace.qkv(13, 8)[2])
    assert f"is **{likeness[13]:.2f}**".replace("-", "−") in visitor.says()
    (both,) = re.findall(r"make a vector of size (\S+)\.", visitor.says())
    assert float(both) == pytest.approx(np.linalg.norm(x[13] + written), rel=0.01)


def test_weighted_sum_tells_the_followed_key_from_all_keys(open_step: Any) -> None:
    visitor = open_step("weighted_sum")
    assert "logit" not in visitor.says() and not visitor.has("lesson-votes")
    unfold(visitor, "weighted-sum-word")
    said = visitor.says().replace("\n", " ")
    (part,) = re.findall(r"The followed key, “·car”, adds (\S+) to the logit", said)
    (whole,) = re.findall(r"writes here, add \*\*(\S+)\*\*", said)
    assert f"by this key **+{part}**" in trail(visitor)
    assert float(whole) == pytest.approx(bars(visitor, "lesson-votes", "x")[0], rel=0.01)
    assert part != whole


def test_weighted_sum_of_a_model_without_a_next_word_says_so(open_step: Any) -> None:
    assert "predicts no next word" in open_step("weighted_sum", model="minilm", layer="3", head="1").says()


def test_weighted_sum_of_random_numbers_ends_with_the_stack(open_step: Any) -> None:
    visitor = open_step("weighted_sum", source="random")
    assert "needs a model's matrices" in visitor.says() and not visitor.has("lesson-votes")


# --- several heads ---


def test_several_heads_puts_a_head_that_looks_elsewhere_beside_the_chosen_one(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("several_heads")
    assert visitor.has("followed-query") and not visitor.has("followed-key")  # the key is nowhere in the pictures
    trace = smollm2.trace(LANDING)
    other = visitor["other-box"]
    for side, head in (("one", 8), ("other", other)):
        expected = np.where(CAUSAL, trace.weights(13, head), np.nan)
        np.testing.assert_allclose(values(visitor, f"lesson-head-{side}"), expected, atol=1e-6)
    rows = trace.layer_weights(13)[:, IT, 1:]
    assert rows[other].argmax() != rows[8].argmax()
    visitor.choose("other-box", 0)
    assert visitor.app.query_params == {"step": "several_heads", "other": "0"}
    np.testing.assert_allclose(
        values(visitor, "lesson-head-other"), np.where(CAUSAL, trace.weights(13, 0), np.nan), atol=1e-6
    )


def test_several_heads_shows_what_each_head_writes(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("several_heads")
    assert not visitor.has("lesson-writes")
    unfold(visitor, "several-heads-writes")
    trace = smollm2.trace(LANDING)
    matrix = smollm2.model.model.layers[13].self_attn.o_proj.weight.detach().numpy()
    written = [
        matrix[:, 64 * head : 64 * head + 64] @ (trace.weights(13, head)[IT] @ trace.qkv(13, head)[2])
        for head in range(9)
    ]
    np.testing.assert_allclose(bars(visitor, "lesson-writes"), np.linalg.norm(written, axis=1), rtol=1e-3)


def test_several_heads_splits_random_numbers(open_step: Any) -> None:
    visitor = open_step("several_heads", source="random", rows="5", width="24")
    visitor.choose("heads", 6)
    assert visitor.app.query_params["heads"] == "6"
    assert "**6 heads** of (5, 4)" in visitor.says().replace("\n", " ")
    assert "Weights of 6 heads" in visitor.chart("lesson-heads")["layout"]["title"]["text"]
    assert "| 24 = 6 × 4 |" in visitor.says() and "| 4,096 = 32 × 128 |" in visitor.says()
    assert random_heads(5, 24, 6)[1].shape == (6, 5, 5)
    visitor.choose("width", 7)  # 6 heads can't split 7
    assert visitor["heads"] in (1, 7) and visitor.crashes() == []


# --- does it match? ---


def test_matches_says_how_far_numpy_and_torch_are_apart(open_step: Any) -> None:
    visitor = open_step("matches")
    apart = values(visitor, "lesson-apart")
    largest = np.nanmax(np.abs(apart))
    assert 0 < largest < 1e-6
    unfold(visitor, "matches-numbers")
    assert f"| float32 | {largest:.1e} |".replace("-", "−") in visitor.says()
    (fine,) = re.findall(r"\| float64 \| (\S+) \|", visitor.says())
    assert printed([fine]) < 1e-14
    (whole,) = re.findall(r"weights differ by at most \*\*(\S+?)\*\*", visitor.says().replace("\n", " "))
    assert 0 < printed([whole]) < 2e-5
    assert "over all 270 heads" in visitor.says().replace("\n", " ")


def test_matches_ends_with_the_followed_number(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("matches")
    tables = [element.value for element in visitor.app.markdown]
    (ladder,) = [table for table in tables if table.startswith("| ·it (10) → ·car (3)")]
    for stage, figures in (("q · k", "48.67"), ("score", "6.08"), ("weight", "0.806"), ("‖weight × value‖", "4.14")):
        assert f"| {stage} | **{figures}** |" in ladder
    label, chance = smollm2.trace(LANDING).next_tokens(1)[0]
    assert f"| probability that “{label}” comes next | **{chance:.1%}** |".replace("%", " %") in ladder
    assert f"**{270 * 66:,}** cells" in visitor.says()
    visitor.choose("step", "weighted_sum")
    unfold(visitor, "weighted-sum-word")
    added = re.search(r"added to the logit of “(.*?)” by this key \*\*(.*?)\*\*", trail(visitor))
    assert added and f"| added to the logit of “{added[1]}” | **{added[2]}** |" in ladder


def test_matches_of_random_numbers_has_no_model(open_step: Any) -> None:
    visitor = open_step("matches", source="random")
    assert_well(visitor)
    assert not visitor.has("followed-query") and not visitor.has("followed-key")  # nothing is followed
    assert np.nanmax(np.abs(values(visitor, "lesson-apart"))) < 1e-6
    unfold(visitor, "matches-numbers")
    assert "The whole model" not in visitor.says() and not visitor.says().count("**Followed:**")
