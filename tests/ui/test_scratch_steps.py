"""The steps scaling, mask and softmax of the page "From scratch": their pictures show the right numbers and follow."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnviz.app.scratch.mask import swapped
from attnviz.app.scratch.texts import all_steps
from attnviz.app.shell.fields import LANDING
from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.textbook import attention_scores, multi_head_attention, softmax
from attnviz.core.softmax.score_size import head_scaling, product_density, random_scaling
from attnviz.core.trace.switches import Switches
from tests.ui.charts import unfold, values
from tests.ui.conftest import Visitor

Open = Callable[..., Visitor]
SWAPPED = LANDING[:-2] + "well"
STEPS = all_steps()
FOLDS = {
    "scaling": ["scaling-gradients", "scaling-real"],
    "mask": ["mask-stand-ins"],
    "softmax": ["softmax-exponents"],
}  # what isn't told aloud
CAUSAL = np.tri(11, dtype=bool)  # of the landing text
GERMAN = "Der Fuchs traf den Igel, und der Igel sah den Fuchs"


def labels(visitor: Visitor, chart: str, axis: str = "yaxis") -> list[str]:
    return list(visitor.chart(chart)["layout"][axis]["labelalias"].values())


def answer(visitor: Visitor, step: str) -> str:
    """Ask for the answer and return it."""
    visitor.press(f"answer-{step}-button")
    return visitor.says().split("Guess first.")[1]


def has_chart(visitor: Visitor, key: str) -> bool:
    return any(chart.key == key for chart in visitor.app.get("plotly_chart"))


def per_cent(share: float) -> str:
    return f"{share:.0%}"


def rows_of_table(visitor: Visitor, start: int = 0) -> dict[str, list[str]]:
    """Return the cells of the tables in Markdown that have three columns, those of the start-th one."""
    tables = [element.value for element in visitor.app.markdown if element.value.startswith("| |")]
    lines = [re.split(r"\s*\|\s*", line.strip("| ")) for line in tables[start].splitlines()[2:]]
    return {name: cells for name, *cells in lines}


def assert_well(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


# --- scaling ---


def test_scaling_counts_random_scores_and_draws_the_exact_density(open_step: Any) -> None:
    visitor = open_step("scaling", width="128", rows="6", seed="3")
    assert_well(visitor)
    found = random_scaling(6, 128, 3)
    heights, widths = (values(visitor, "scores-random-without", axis=axis) for axis in ("y", "width"))
    np.testing.assert_allclose((heights * widths).sum(), 1, rtol=1e-5)
    counts = values(visitor, "scores-random-without", axis="customdata")[:, 2]
    assert counts.sum() == found.products.size
    x, y = (values(visitor, "scores-random-without", 1, axis) for axis in "xy")
    np.testing.assert_allclose(y, product_density(x, 128), rtol=1e-4)
    title = visitor.chart("scores-random-without")["layout"]["title"]["text"]
    assert title == f"q·k: standard deviation {found.products.std():.3g}"
    assert "in theory: √128 = 11.31" in visitor.says()


@pytest.mark.parametrize(("width", "n_lines"), [("15", 1), ("16", 2)])
def test_the_normal_density_comes_with_16_components(open_step: Any, width: str, n_lines: int) -> None:
    chart = open_step("scaling", width=width).chart("scores-random-with")
    assert len(chart["data"]) == 1 + n_lines


def test_the_same_scores_with_and_without_the_factor_lie_on_one_axis(open_step: Any) -> None:
    visitor = open_step("scaling", width="64")
    ranges = [visitor.chart(f"scores-random-{side}")["layout"]["xaxis"]["range"] for side in ("with", "without")]
    assert ranges == [[-40, 40], [-40, 40]]
    places = [values(visitor, f"scores-random-{side}", axis="x") for side in ("with", "without")]
    np.testing.assert_allclose(8 * places[0], places[1], rtol=1e-5)


def test_the_table_and_the_answer_say_what_the_rows_say(open_step: Any) -> None:
    visitor = open_step("scaling", width="128", rows="6", source="random")
    found = random_scaling(6, 128, 0)
    unfold(visitor, "scaling-gradients")
    table = rows_of_table(visitor)
    assert table["rows with a largest weight above 0.9"] == [
        per_cent(found.scaled.above(0.9)),
        per_cent(found.unscaled.above(0.9)),
    ]
    means = [f"{rows.query_gradient.mean():.2f}" for rows in (found.scaled, found.unscaled)]
    assert table["size of ∂L/∂q, mean"] == means
    assert table["with more than ten times the usual"] == ["0%", per_cent(found.tenfold(found.unscaled))]
    told = visitor.says()
    assert "erratic" in told and all(mean in told for mean in means)
    assert f"**{per_cent(found.nothing(found.unscaled))}**" in told and "without bound" in told
    told = answer(visitor, "scaling")
    shares = [f"{rows.above(0.99):.0%}".replace("%", " %") for rows in (found.unscaled, found.scaled)]
    assert f"**{shares[0]}**" in told and f"in {shares[1]} with it" in told
    assert "= 16, so" in told and "× 10⁶**" in told


def test_the_slider_of_the_width_takes_any_width_and_keeps_it(open_step: Any) -> None:
    visitor = open_step("scaling", width="100")
    assert visitor.widget("width-slider").value == 100
    visitor.choose("width-slider", 1024)
    assert_well(visitor)
    unfold(visitor, "scaling-gradients")
    assert visitor["width"] == 1024 and "√1,024 = 32.00" in visitor.says()
    assert visitor.app.query_params["width"] == "1024"
    visitor.choose("width-slider", 1)
    assert visitor["width"] == 1 and "3 + 6/d = 9.00" in visitor.says()
    visitor.choose("rows", 9)
    assert visitor.app.query_params["rows"] == "9" and "rows of 9 keys" in visitor.says()


def test_the_histograms_count_every_row(open_step: Any) -> None:
    visitor = open_step("scaling", width="512", rows="32")
    unfold(visitor, "scaling-gradients")
    n_rows = len(random_scaling(32, 512, 0).scaled.maxima)
    for chart in ("maxima-random", "gradient-random"):
        assert [values(visitor, chart, trace, "y").sum() for trace in (0, 1)] == [n_rows, n_rows]


@pytest.mark.parametrize(("over", "n_points"), [("width", 11), ("tokens", 9)])
def test_curves_go_through_the_numbers_of_the_table(open_step: Any, over: str, n_points: int) -> None:
    visitor = open_step("scaling", width="16", rows="8", curves=over)
    unfold(visitor, "scaling-gradients")
    assert_well(visitor)
    found = random_scaling(8, 16, 0)
    chart = visitor.chart("curves-sharp")
    names = [trace["name"] for trace in chart["data"]]
    assert names[0] == "largest weight &gt; 0.9, without" and len(names) == 4
    x, y = (values(visitor, "curves-sharp", 0, axis) for axis in "xy")
    assert len(x) == n_points
    assert y[x == (16 if over == "width" else 8)] == pytest.approx(100 * found.unscaled.above(0.9), rel=1e-5)
    assert chart["layout"]["shapes"][0]["x0"] == (16 if over == "width" else 8)


def test_the_trained_head_is_measured_with_and_without_its_factor(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("scaling")
    assert not visitor.has("scores-real-with")
    unfold(visitor, "scaling-real")
    found = head_scaling(smollm2.trace(LANDING).head(13, 8))
    table = rows_of_table(visitor)
    assert table["above 0.99"] == [per_cent(found.scaled.above(0.99)), per_cent(found.unscaled.above(0.99))]
    counts = values(visitor, "scores-real-without", axis="customdata")[:, 2]
    assert counts.sum() == found.products.size == 66
    assert "not a model trained without the factor" in visitor.says()
    assert "temperature of 0.125" in visitor.says()
    visitor.choose("layer", 2)
    assert_well(visitor)
    other = head_scaling(smollm2.trace(LANDING).head(2, 8))
    assert rows_of_table(visitor)["above 0.99"][1] == per_cent(other.unscaled.above(0.99))


def test_one_token_has_no_row_with_a_choice_and_the_page_says_so(open_step: Any) -> None:
    visitor = open_step("scaling", text="Hello")
    unfold(visitor, "scaling-real")
    assert visitor.crashes() == visitor.errors() == []
    assert "two keys to choose from" in visitor.notes()[0]


# --- mask ---


def test_random_output_rows_stay_with_the_mask_and_change_without(open_step: Any) -> None:
    visitor = open_step("mask", source="random", rows="5", width="8", seed="2")
    assert_well(visitor)
    assert not has_chart(visitor, "mask-change-without")  # it would give the answer away
    told = answer(visitor, "mask")
    kept, free = (values(visitor, f"mask-change-{name}") for name in ("with", "without"))
    assert kept.shape == free.shape == (5, 8)
    assert (kept[:4] == 0).all() and np.abs(kept[4]).max() > 0.01
    assert (np.abs(free).max(axis=1) > 0.001).all()
    signs = [label[-1] for label in labels(visitor, "mask-change-with")]
    assert signs == ["=", "=", "=", "=", "≠"]
    assert "**5 of 5**" in told and "With the mask **1** changed" in told


def test_random_weights_are_those_of_multi_head_attention(open_step: Any) -> None:
    visitor = open_step("mask", source="random", rows="5", width="8", seed="2")
    answer(visitor, "mask")
    rng = np.random.default_rng(2)
    x = rng.standard_normal((5, 8))
    matrices = rng.standard_normal((4, 8, 8)) / np.sqrt(8)
    for name, causal in (("with", True), ("without", False)):
        _, weights = multi_head_attention(x, *matrices, 2, causal=causal)
        drawn = values(visitor, f"mask-weights-{name}")
        np.testing.assert_allclose(np.nan_to_num(drawn), weights[0], atol=1e-6)
        assert np.isnan(drawn).sum() == (10 if causal else 0)


def test_the_real_model_keeps_its_rows_to_the_last_bit(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("mask")
    assert_well(visitor)
    assert not has_chart(visitor, "mask-real-without")
    told = answer(visitor, "mask")
    for name, switches, seen in (("with", None, CAUSAL), ("without", Switches(causal=False), np.ones((11, 11), bool))):
        before, after = (smollm2.trace(text, switches=switches).weights(13, 8) for text in (LANDING, SWAPPED))
        drawn = values(visitor, f"mask-real-{name}")
        np.testing.assert_allclose(drawn, np.where(seen, after - before, np.nan), atol=1e-6)
    assert [label[-1] for label in labels(visitor, "mask-real-with")] == ["="] * 10 + ["≠"]
    assert labels(visitor, "mask-real-with")[-2:] == ["·drive =", "·it → ·well ≠"]
    assert labels(visitor, "mask-real-without", "xaxis")[-1] == "·it → ·well"
    assert "270 of 270 heads kept all rows before token 10" in visitor.says()
    assert "**11 of 11**" in told and "With the mask **1** changed" in told


def test_the_rows_before_the_changed_token_choose_the_colours(open_step: Any) -> None:
    visitor = open_step("mask")
    answer(visitor, "mask")
    earlier = np.abs(values(visitor, "mask-real-without")[:-1]).max()
    for name in ("with", "without"):
        assert visitor.chart(f"mask-real-{name}")["data"][0]["zmax"] == pytest.approx(earlier, abs=1e-6)
        n_beyond = (np.nan_to_num(np.abs(values(visitor, f"mask-real-{name}"))) > earlier * 1.0001).sum()
        assert f"{n_beyond} cells lie beyond" in visitor.chart(f"mask-real-{name}")["layout"]["meta"]["alt"]


def test_another_last_word_is_read_and_kept_in_the_address(open_step: Any) -> None:
    visitor = open_step("mask")
    visitor.app.text_input(key="swap").set_value("unbelievably slowly").run()
    assert_well(visitor)
    assert "Weights with “unbelievably slowly” minus" in visitor.says()
    assert visitor.app.query_params["swap"] == "unbelievably slowly"
    assert "have 11 and" in visitor.says()  # of different length: only what both begin with is compared
    signs = [label[-1] for label in labels(visitor, "mask-real-with")]
    assert len(signs) == 10 and set(signs) <= {"=", "≈"}
    assert "With the mask **0** changed" in answer(visitor, "mask")
    assert "heads kept all rows" not in visitor.says()


def test_the_same_word_changes_nothing(open_step: Any) -> None:
    visitor = open_step("mask", swap="it")
    assert visitor.crashes() == visitor.errors() == []
    assert "That is your last word" in visitor.notes()[0]
    assert not has_chart(visitor, "mask-real-with")


def test_texts_that_share_nothing_and_texts_that_cannot_be_read_are_named(open_step: Any) -> None:
    visitor = open_step("mask", text="Hello", swap="something else entirely")
    assert visitor.crashes() == visitor.errors() == [] and "share no token" in visitor.notes()[0]
    visitor = open_step("mask", text="Hello", swap="")
    assert visitor.crashes() == visitor.errors() == [] and len(visitor.notes()) == 1


def test_an_encoder_has_no_mask_of_its_own(open_step: Any) -> None:
    visitor = open_step("mask", model="minilm", layer="2", head="3")
    assert_well(visitor)
    assert {label[-1] for label in labels(visitor, "mask-real-as")} == {"≠"}
    assert not has_chart(visitor, "mask-real-with")
    told = answer(visitor, "mask")
    assert "Which rows change with one" in told and "**2 of 13**" in told and "**13** changed" in told
    assert [label[-1] for label in labels(visitor, "mask-real-with")] == ["="] * 11 + ["≠"] * 2


def test_infinity_and_a_large_number_are_compared(open_step: Any) -> None:
    visitor = open_step("mask")
    assert "1e9" not in visitor.says()
    unfold(visitor, "mask-stand-ins")
    says = visitor.says()
    assert "| nothing allowed | −∞ | nan, nan, nan, nan | nan, nan, nan, nan |" in says
    assert "| nothing allowed | −1e9 | 0.25, 0.25, 0.25, 0.25 | nan, nan, nan, nan |" in says
    assert says.count("0.269, 0.731, 0, 0") == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [("it is cold", "it is warm"), ("it is cold \n", "it is warm"), ("cold", "warm"), ("a\ncold", "a\nwarm")],
)
def test_the_last_word_is_replaced(text: str, expected: str) -> None:
    assert swapped(text, "warm") == expected


# --- softmax ---


@pytest.mark.parametrize("heat", ["0.01", "0.5", "100"])
def test_a_temperature_changes_the_row_between_argmax_and_equal_shares(open_step: Any, smollm2: Any, heat: str) -> None:
    visitor = open_step("softmax", heat=heat, query="10", key="3")
    assert_well(visitor)
    row = smollm2.trace(LANDING).scores(13, 8)[10].astype(np.float64)
    expected = softmax(row / float(heat))
    np.testing.assert_allclose(values(visitor, "softmax-row", 1, "y"), expected, atol=1e-5)
    assert values(visitor, "softmax-row", 0, "y").argmax() == expected.argmax() == 3
    if heat == "0.01":
        assert expected.max() > 0.999
    if heat == "100":
        np.testing.assert_allclose(expected, 1 / 11, atol=0.01)


def test_the_slider_moves_the_row_and_the_address(open_step: Any) -> None:
    visitor = open_step("softmax")
    assert len(visitor.chart("softmax-row")["data"]) == 1
    visitor.choose("heat", "10")
    assert_well(visitor)
    assert len(visitor.chart("softmax-row")["data"]) == 2
    assert visitor.app.query_params["heat"] == "10"


def test_the_slider_says_that_it_acts_on_this_step_and_the_sidebars_does_not(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("softmax", temperature="0.5")
    assert "of this step" in visitor.widget("heat").label
    assert "sidebar" in visitor.widget("heat").help and "Explore" in visitor.widget("heat").help
    row = smollm2.trace(LANDING).weights(13, 8)[10]
    np.testing.assert_allclose(values(visitor, "softmax-row", 0, "y"), row, atol=1e-6)


@pytest.mark.parametrize("heat", ["0.1", "2", "100"])
def test_how_strongly_the_weights_answer_is_the_size_of_all_their_derivatives(
    open_step: Any, smollm2: Any, heat: str
) -> None:
    visitor = open_step("softmax", heat=heat)
    unfold(visitor, "softmax-answers", "softmax-exponents")
    inside = smollm2.trace(LANDING).scores(13, 8)[10].astype(np.float64)
    step, tau = 1e-5, float(heat)
    moved = [softmax((inside + step * e) / tau) - softmax((inside - step * e) / tau) for e in np.eye(len(inside))]
    size = np.linalg.norm(np.stack(moved) / (2 * step))
    assert f"small change of its scores $s$: **{size:.4f}**" in visitor.says()
    assert "weight (at τ = 1) **0.806**" in visitor.says()
    assert "Frobenius" in visitor.says()
    assert f"its share is **{softmax(inside / tau)[3]:.3f}**" in visitor.says()


def test_rows_sum_to_1_and_columns_do_not(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("softmax")
    assert not has_chart(visitor, "softmax-sums")
    told = answer(visitor, "softmax")
    columns = smollm2.trace(LANDING).weights(13, 8).sum(axis=0)
    np.testing.assert_allclose(values(visitor, "softmax-sums", 0, "y"), 1, atol=1e-5)
    np.testing.assert_allclose(values(visitor, "softmax-sums", 1, "y"), columns, atol=1e-5)
    assert f"**{columns.max():.2f}**" in told


def test_the_followed_query_chooses_the_row(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("softmax", query="6", key="1")
    unfold(visitor, "softmax-exponents")
    expected = smollm2.trace(LANDING).weights(13, 8)[6, :7]
    np.testing.assert_allclose(values(visitor, "softmax-row", 0, "y"), expected, atol=1e-6)
    assert f"**{expected[1]:.3f}**" in visitor.says()


def test_the_literal_formula_overflows_on_a_real_product(open_step: Any, smollm2: Any) -> None:
    visitor = open_step("softmax")
    unfold(visitor, "softmax-exponents")
    trace = smollm2.trace(LANDING)
    products = [
        np.where(np.tri(11, dtype=bool), q @ k.T, -np.inf)[1:]
        for q, k, _ in (trace.qkv(layer, head) for layer in trace.layers for head in range(9))
    ]
    largest = max(float(product.max()) for product in products)
    assert largest > 88.8
    assert f"**{largest:.1f}**" in visitor.says() and "exp(q·k) is inf" in visitor.says()
    (table,) = [frame.value for frame in visitor.app.dataframe]
    assert "nan" in list(table["share, literally"]) and "inf" in list(table["exp(q·k)"])
    assert sum(float(share.replace("−", "-")) for share in table["share"]) == pytest.approx(1, abs=1e-5)
    best = max((float(product.max()), layer_head) for layer_head, product in enumerate(products))[1]
    assert "the largest stands in the row of" in visitor.says() and f"in L{best // 9} H{best % 9}." in visitor.says()
    visitor.choose("digits", "float64")
    assert_well(visitor)
    (table,) = [frame.value for frame in visitor.app.dataframe]
    assert list(table["share, literally"]) == list(table["share"])
    assert "both ways give the same shares" in visitor.says()


def test_the_followed_row_is_sound_in_float32_as_it_is_scaled(open_step: Any) -> None:
    visitor = open_step("softmax", overflow="row")
    unfold(visitor, "softmax-exponents")
    assert "both ways give the same shares" in visitor.says() and "the largest stands in" not in visitor.says()
    (table,) = [frame.value for frame in visitor.app.dataframe]
    assert list(table)[1:3] == ["s", "exp(s)"]
    assert list(table["share, literally"]) == list(table["share"])


def test_random_rows_work_without_a_model(open_step: Any) -> None:
    visitor = open_step("softmax", source="random", rows="7", width="1024", seed="4", heat="0.1", digits="float16")
    unfold(visitor, "softmax-exponents")
    assert_well(visitor)
    q, k, _ = random_qkv(7, 1024, seed=4)
    scores = attention_scores(q, k, causal=True)
    np.testing.assert_allclose(values(visitor, "softmax-row", 1, "y"), softmax(scores / 0.1)[6], atol=1e-6)
    largest = np.where(np.tri(7, dtype=bool), q @ k.T, -np.inf)[1:].max()
    assert f"**{largest:.1f}**" in visitor.says()


# --- all three ---


@pytest.mark.parametrize(
    "address",
    [{"model": "minilm"}, {"engine": "numpy"}, {"text": GERMAN}, {"text": "word " * 70, "source": "real"}],
    ids=["encoder", "NumPy", "German", "long"],
)
def test_steps_open_with_other_models_engines_and_texts(open_step: Any, address: dict[str, str]) -> None:
    visitor = open_step("scaling", **address)
    for step, folded in FOLDS.items():
        visitor.choose("step", step)
        unfold(visitor, *folded)
        assert visitor.crashes() == visitor.errors() == [], step
        assert visitor.visit.text == address.get("text", LANDING)
        assert any(chart.key.startswith(("scores-", "mask-", "softmax-")) for chart in visitor.app.get("plotly_chart"))


@pytest.mark.parametrize("step", ["scaling", "mask", "softmax"])
def test_the_functions_whose_code_is_shown_exist(step: str) -> None:
    functions = STEPS[step].functions()
    assert [f"{function.__module__}.{function.__name__}" for function in functions] == list(STEPS[step].code)
