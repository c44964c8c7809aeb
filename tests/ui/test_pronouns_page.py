"""The page Pronouns without a browser: what it draws, against plain loops over weights, and bad input."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.app.pronouns import board as board_page
from attnviz.app.pronouns import question as asking
from attnviz.app.pronouns.question import MOST_WORDS, Question, pick_word, shown_words
from attnviz.app.shell import cache
from attnviz.app.shell.fields import LANDING
from attnviz.core.pronouns.items import SHIPPED
from attnviz.core.pronouns.scoreboard import Board, read_boards
from attnviz.core.text.words import split_words
from attnviz.models.load.by_name import load
from attnviz.models.scan.boards import scan_boards
from attnviz.models.scratch.effects import next_word_token
from tests.ui.charts import bars, unpacked, values
from tests.ui.conftest import Passes, Visitor

Open = Callable[..., Visitor]
Folder = Callable[..., Path]
STATION = "Laura met Peter at the station before he took the night train to Prague."
LAURA, PETER, HE = 0, 2, 7  # its words
ANIMAL = "The horse did not go through the gate because it was too tired."
TOPICS = ("look", "pair", "scores", "matters")
TINY = "w1 w2 w3 w4 w5 w6"


@pytest.fixture
def open_page(open_app: Open) -> Open:
    """Return a function that opens the page at an address, as a link does."""
    return lambda **address: open_app(page="pronouns", **address)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep scans in a folder of the test's own."""
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path))
    return tmp_path


def weights_of_words(trace: Any, text: str, word: int, layer: int, head: int, *, lead: int = 0) -> np.ndarray:
    """Return what the last token of a word gives to each word: a loop over every token and every character."""
    spans = split_words(text)
    queries = [t.index for t in trace.tokens if any(c in range(t.start, t.end) for c in range_of(spans[word], lead))]
    row = trace.weights(layer, head)[queries[-1]]
    sums = np.zeros(len(spans))
    for token in trace.tokens:
        for i, span in enumerate(spans):
            if set(range(token.start, token.end)) & set(range_of(span, lead)):
                sums[i] += row[token.index]
                break
    return sums


def range_of(span: tuple[int, int], offset: int) -> range:
    return range(span[0] + offset, span[1] + offset)


def assert_well(visitor: Visitor) -> None:
    assert (visitor.crashes(), visitor.errors(), visitor.notes()) == ([], [], [])


def shipped(model: str, lang: str, kind: str = "") -> Board:
    return next(b for b in read_boards() if (b.model, b.lang, b.kind) == (model, lang, kind))


# --- the sentence ---


def test_the_landing_page_asks_about_it(open_page: Open, smollm2: Any) -> None:
    visitor = open_page()
    assert_well(visitor)
    assert "Who is “it”? What L13 H8 looks at" in visitor.says()
    arcs = visitor.component("arcs")
    assert arcs["words"] == ["Mary", "bought", "a", "car", ",", "although", "she", "could", "not", "drive", "it"]
    assert "".join(gap + word for gap, word in zip(arcs["gaps"], arcs["words"], strict=True)) == LANDING
    assert (arcs["pronoun"], arcs["candidates"], arcs["answer"], arcs["pickable"]) == (10, [[0], [3]], 1, True)
    expected = weights_of_words(smollm2.trace(f"\n{LANDING}"), LANDING, 10, 13, 8, lead=1)
    np.testing.assert_allclose(arcs["weights"], expected, atol=1e-5)
    assert visitor.app.query_params == {}


def test_the_arcs_follow_head_and_lead(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(text=STATION, layer="9", head="4")
    with_lead, without = smollm2.trace(f"\n{STATION}"), smollm2.trace(STATION)
    expected = weights_of_words(with_lead, STATION, HE, 9, 4, lead=1)
    np.testing.assert_allclose(visitor.component("arcs")["weights"], expected, atol=1e-5)
    assert visitor.component("arcs")["masked"] == list(range(8, 15))  # a decoder doesn't see them
    visitor.choose("lead", "off")
    assert visitor.app.query_params["lead"] == "off"
    expected_without = weights_of_words(without, STATION, HE, 9, 4)
    np.testing.assert_allclose(visitor.component("arcs")["weights"], expected_without, atol=1e-5)
    assert np.abs(expected - expected_without).max() > 0.01
    visitor.choose("layer", 3)
    visitor.choose("head", 8)
    np.testing.assert_allclose(
        visitor.component("arcs")["weights"], weights_of_words(without, STATION, HE, 3, 8), atol=1e-5
    )
    assert "What L3 H8 looks at" in visitor.says() and visitor.component("arcs")["label"] == "L3 H8"


def test_the_page_says_where_all_of_the_weight_went(open_page: Open) -> None:
    visitor = open_page(text=STATION, layer="9", head="4", candidates="0_2")
    (line,) = [text for text in visitor.says().split("\n") if text.startswith("In L9 H4,")]
    weights = visitor.component("arcs")["weights"]
    assert f"“he” gives Laura {weights[LAURA]:.2f}, Peter {weights[PETER]:.2f}. The rest of its weight:" in line
    assert sum(map(float, re.findall(r" (0\.\d\d)", line))) == pytest.approx(1, abs=0.03)
    assert "the first token (⏎)" in line and "special" not in line
    other = open_page(model="minilm", text=STATION, layer="2", head="4")
    (line,) = [text for text in other.says().split("\n") if text.startswith("In L2 H4,")]
    assert "special tokens" in line and "first token" not in line
    assert sum(map(float, re.findall(r" (0\.\d\d)", line))) == pytest.approx(1, abs=0.03)


def test_an_encoder_needs_no_lead_and_masks_nothing(open_page: Open, minilm: Any) -> None:
    visitor = open_page(model="minilm", text=STATION, layer="2", head="4")
    assert visitor.widget("lead").disabled and visitor.component("arcs")["masked"] == []
    expected = weights_of_words(minilm.trace(STATION), STATION, HE, 2, 4)
    np.testing.assert_allclose(visitor.component("arcs")["weights"], expected, atol=1e-5)
    assert np.all(expected[8:] > 1e-6)


def test_the_page_needs_two_passes_of_a_text_whatever_is_looked_at(open_page: Open, passes: Passes) -> None:
    visitor = open_page(text=STATION)
    for topic in ("scores", "matters", "look"):
        visitor.choose("topic", topic)
    visitor.choose("layer", 2)
    assert [text for _, text, _ in passes.own] == [STATION, f"\n{STATION}"]


def test_switches_leave_the_page_at_rest_and_it_says_so(open_page: Open) -> None:
    plain, switched = open_page(), open_page(causal="off", temperature="4", acts="pass")
    assert "shows the model at rest" in switched.says() and "shows the model at rest" not in plain.says()
    assert switched.component("arcs")["weights"] == plain.component("arcs")["weights"]


def test_a_link_holds_the_whole_question(open_page: Open) -> None:
    address = {
        "text": STATION, "layer": "9", "head": "4", "topic": "pair", "pronoun": "3", "candidates": "0_2_5",
        "answer": "5", "lead": "off", "click": "answer", "pair": "Laura met Peter at the harbour",
    }  # fmt: skip
    visitor = open_page(**address)
    assert visitor.crashes() == []
    assert visitor.app.query_params == address
    arcs = visitor.component("arcs")
    assert (arcs["pronoun"], arcs["candidates"], arcs["answer"]) == (3, [[0], [2], [5]], 2)


def test_another_text_drops_what_named_words_of_the_old_one(open_page: Open) -> None:
    visitor = open_page(text=STATION, pronoun="3", candidates="0", answer="0", pair="x")
    visitor.type("The queen saw the clock before it fell")
    assert_well(visitor)
    arcs = visitor.component("arcs")
    assert [arcs["words"][i] for i in (arcs["pronoun"], *np.ravel(arcs["candidates"]))] == ["it", "queen", "clock"]
    assert set(visitor.app.query_params) == {"text"}


def test_going_to_explore_and_back_keeps_the_question(open_page: Open) -> None:
    address = {"text": STATION, "pronoun": "3", "candidates": "0_2", "topic": "matters"}
    visitor = open_page(**address)
    for page, expected in (("explore", "who looks at whom"), ("pronouns", "From “at”: What L13 H8 looks at")):
        visitor.app.query_params.clear()  # as streamlit does between pages
        visitor.app.switch_page(f"attnviz/app/{page}/page.py").run()
        assert visitor.crashes() == [] and expected in visitor.says()
        assert address.items() <= visitor.app.query_params.items()


# --- clicks on words ---


class Session(SimpleNamespace):
    """A session that reads like streamlit's."""


def question_about(text: str, pronoun: int, candidates: list[tuple[int, ...]], answer: int | None) -> Question:
    words = split_words(text)
    tokens = tuple((i,) for i in range(len(words)))
    return Question(text, "en", "", None, "", words, tokens, pronoun, pronoun, tuple(candidates), answer)


@pytest.mark.parametrize(
    ("click", "word", "expected"),
    [
        ("candidate", 5, (7, [0, 2, 5], 2)),
        ("candidate", 0, (7, [2], 2)),
        ("candidate", 7, (None, None, None)),  # the word that looks can't be what it means
        ("answer", 0, (7, [0, 2], 0)),
        ("answer", 5, (7, [0, 2, 5], 5)),
        ("answer", 7, (None, None, None)),
        ("pronoun", 3, (3, None, None)),
        ("pronoun", 0, (0, None, None)),
    ],
)
def test_a_click_makes_a_word_what_was_chosen(
    monkeypatch: pytest.MonkeyPatch, click: str, word: int, expected: tuple[Any, ...]
) -> None:
    asked = question_about(STATION, HE, [(LAURA,), (PETER,)], 1)
    session = Session(question=asked, click=click, pronoun=None, candidates=None, answer=None)
    monkeypatch.setattr(asking.st, "session_state", session)
    pick_word(word)
    assert (session.pronoun, session.candidates, session.answer) == expected


def test_a_word_that_looks_is_no_candidate_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question_about(STATION, HE, [(LAURA,), (PETER,)], 1)
    session = Session(question=asked, click="pronoun", pronoun=HE, candidates=[LAURA, PETER], answer=PETER)
    monkeypatch.setattr(asking.st, "session_state", session)
    pick_word(PETER)
    assert (session.pronoun, session.candidates) == (PETER, [LAURA])


def test_the_names_of_equal_candidates_say_which_word_they_are() -> None:
    asked = question_about("Tom saw Tom and Ann Lee and he left", 7, [(0,), (2,), (4, 5)], 0)
    assert asked.names == ["Tom (1)", "Tom (3)", "Ann Lee"]
    assert [asked.text[a:b] for a, b in asked.spans] == ["Tom", "Tom", "Ann Lee"]


@pytest.mark.parametrize(
    ("pronoun", "candidates"), [(0, []), (300, [(5,)]), (300, [(290,), (299,)]), (599, [(520, 521)])]
)
def test_of_a_long_text_the_words_around_the_pronoun_are_drawn(pronoun: int, candidates: list[tuple[int, ...]]) -> None:
    shown = shown_words(question_about("so " * 600, pronoun, candidates, None))
    assert len(shown) == MOST_WORDS and pronoun in shown and shown.start >= 0 and shown.stop <= 600
    near = [word for group in candidates for word in group if abs(word - pronoun) < MOST_WORDS - 4]
    assert all(word in shown for word in near)


# --- who gets the weight ---


def margins_by_hand(trace: Any, text: str, query: int, answer: int, others: list[int], *, lead: int) -> np.ndarray:
    found = np.zeros((30, 9))
    for layer in range(30):
        for head in range(9):
            sums = weights_of_words(trace, text, query, layer, head, lead=lead)
            found[layer, head] = sums[answer] - max(sums[other] for other in others)
    return found


def test_the_map_of_all_heads_is_the_answer_minus_the_best_other(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(text=STATION, layer="9", head="4", candidates="0_2_5", answer="2")
    expected = margins_by_hand(smollm2.trace(f"\n{STATION}"), STATION, HE, PETER, [LAURA, 5], lead=1)
    np.testing.assert_allclose(values(visitor, "margins").T, expected, atol=1e-5)
    order = np.argsort(-expected, axis=None)[:8]
    best = [(int(i) // 9, int(i) % 9) for i in order]
    names = [f"L{layer} H{head} +{expected[layer, head]:.2f}" for layer, head in best]
    assert [b.label for b in visitor.app.button if (b.key or "").startswith("clear ")] == names
    visitor.press(names[1])
    assert visitor.name == "L{} H{}".format(*best[1])
    assert visitor.app.query_params["layer"] == str(best[1][0])


def test_bars_are_ranked_under_three_heads_and_three_rules(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(text=STATION, layer="3", head="8", candidates="0_2")
    trace, board = smollm2.trace(f"\n{STATION}"), shipped("smollm2", "en")
    best = board.chosen[0]
    other = np.unravel_index(np.argmax(board.scores.distractor - board.scores.answer), (30, 9))
    meta = visitor.chart("candidates")["layout"]["meta"]["alt"]
    for (layer, head), why in (
        ((3, 8), "chosen"),
        ((best.layer, best.head), "best on many sentences"),
        (other, "looks at the other one on many sentences"),
    ):
        sums = weights_of_words(trace, STATION, HE, layer, head, lead=1)
        (said,) = re.findall(rf"L{layer} H{head}, {why}: (.*?);", meta)
        numbers = dict(re.findall(r"(Laura|Peter) (\S+?)(?:,|$| )", said))
        assert float(numbers["Laura"]) == pytest.approx(sums[LAURA], rel=0.1, abs=0.006)
        assert float(numbers["Peter"]) == pytest.approx(sums[PETER], rel=0.1, abs=0.006)
    assert "nearest candidate: Peter 1.00 (the right answer), Laura 0" in meta
    assert "first candidate: Laura 1.00, Peter 0 (the right answer)" in meta
    visitor.press(f"named {best.layer} {best.head}")
    assert visitor.name == f"L{best.layer} H{best.head}"


def test_the_page_says_how_far_the_best_head_can_be_trusted(open_page: Open) -> None:
    best = shipped("smollm2", "en").chosen[0]
    visitor = open_page(text=STATION)
    said = f"L{best.layer} H{best.head} was chosen on one half of the English sentences and is right in "
    said += f"{best.rate.value:.0%}"
    assert said.replace("%", " %") in visitor.says() and visitor.warnings() == []
    for text, language in (
        ("Anna ringde Erik eftersom hon hade glömt nycklarna.", "Swedish"),
        ("Als Anna kam, ging Peter, weil er Hunger hatte.", "German"),
    ):
        (warning,) = open_page(text=text).warnings()
        assert f"No head of this model shows {language} reference" in warning


def test_tables_hold_the_numbers_of_the_charts(open_page: Open) -> None:
    visitor = open_page(text=STATION, candidates="0_2")
    for chart in ("margins", "candidates"):
        visitor.app.session_state[f"{chart}-table"] = True
    visitor.app.run()
    assert_well(visitor)
    tables = [table.value for table in visitor.app.dataframe]
    (heads,) = [table for table in tables if "H8" in table]
    np.testing.assert_allclose(heads.drop(columns="layer").to_numpy(), values(visitor, "margins").T, atol=1e-6)
    (says,) = [table for table in tables if "who says" in table]
    assert list(says["who says"][-3:]) == ["nearest candidate", "first candidate", "equal shares"]
    assert list(says["Laura"][-3:]) == [0, 1, 0.5]


# --- two sentences ---


def test_a_pair_is_drawn_side_by_side_with_its_difference(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(text=STATION, layer="9", head="4", topic="pair")
    assert_well(visitor)
    other = STATION.replace("he took", "she took")
    assert visitor["pair"] == other
    one, two = (weights_of_words(smollm2.trace(f"\n{t}"), t, HE, 9, 4, lead=1) for t in (STATION, other))
    np.testing.assert_allclose(visitor.component("pair-one")["weights"], one, atol=1e-5)
    np.testing.assert_allclose(visitor.component("pair-other")["weights"], two, atol=1e-5)
    assert visitor.component("pair-one")["highlight"] == visitor.component("pair-other")["highlight"] == [HE]
    np.testing.assert_allclose(bars(visitor, "pair-difference", axis="x"), two - one, atol=1e-5)
    assert visitor.component("pair-other")["answer"] == 0  # she is Laura
    assert not visitor.component("pair-one")["pickable"] and not visitor.has("later-word")


def test_a_later_word_changes_nothing_in_a_decoder_and_is_offered_to_look(open_page: Open, smollm2: Any) -> None:
    wide = ANIMAL.replace("tired", "narrow")
    visitor = open_page(text=ANIMAL, layer="9", head="4", topic="pair", pair=wide, candidates="1_7", answer="1")
    (note,) = visitor.notes()
    rows = [smollm2.trace(f"\n{text}").weights(9, 4)[10, :11] for text in (ANIMAL, wide)]
    assert np.abs(rows[0] - rows[1]).max() < 1e-6
    assert "no word sees a later one" in note and "must be equal, and are the same" in note
    np.testing.assert_allclose(bars(visitor, "pair-difference", axis="x"), 0, atol=1e-6)
    assert visitor.widget("later-word").label == "Let “tired” look instead"
    visitor.press("later-word")
    assert_well(visitor)
    assert (visitor["pronoun"], visitor["candidates"], visitor["answer"]) == (12, [1, 7], 1)
    assert "From “tired”: What L9 H4 looks at" in visitor.says() and not visitor.has("later-word")
    assert np.abs(bars(visitor, "pair-difference", axis="x")).max() > 1e-3


def test_an_encoder_sees_the_later_word(open_page: Open) -> None:
    wide = ANIMAL.replace("tired", "narrow")
    visitor = open_page(model="minilm", text=ANIMAL, layer="3", head="1", topic="pair", pair=wide)
    assert_well(visitor)
    assert not visitor.has("later-word") and np.abs(bars(visitor, "pair-difference", axis="x")).max() > 0.05


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (STATION, "The two sentences are the same"),
        ("Laura met Peter", "has no word where the first has “he”"),
        ("\u200b", "no visible character"),
        ("...", "has no word where the first has “he”"),
    ],
)
def test_a_pair_that_can_not_be_compared_is_a_sentence(open_page: Open, pair: str, sentence: str) -> None:
    visitor = open_page(text=STATION, topic="pair", pair=pair)
    assert visitor.crashes() == []
    (note,) = visitor.notes()
    assert sentence in note or "no word where" in note


def test_a_pair_of_another_length_is_compared_word_by_word(open_page: Open) -> None:
    longer = STATION.replace("took", "quickly took")
    visitor = open_page(text=STATION, topic="pair", pair=longer)
    assert visitor.crashes() == []
    assert visitor.component("pair-one")["highlight"] == [] and visitor.component("pair-other")["highlight"] == [8]
    assert len(bars(visitor, "pair-difference", axis="x")) == len(split_words(STATION))


# --- many sentences ---


@pytest.mark.parametrize(
    ("model", "lang", "kind"),
    [("smollm2", "en", ""), ("smollm2", "en", "things"), ("minilm", "de", "gender"), ("untrained", "sv", "")],
)
def test_the_scoreboard_shows_what_was_measured(open_page: Open, model: str, lang: str, kind: str) -> None:
    visitor = open_page(model=model, topic="scores", sentences=lang, kind=kind, layer="2", head="1")
    assert_well(visitor)
    board = shipped(model, lang, kind)
    np.testing.assert_allclose(
        values(visitor, "accuracy").T, board.scores.accuracy - board.scores.baselines["chance"].value, atol=1e-6
    )
    rates = [chosen.rate.value for chosen in board.chosen[:3]]
    rates += [board.scores.baselines[name].value for name in ("nearest", "first")]
    if model != "untrained":
        rates.append(board.control.rate.value)
    drawn = np.concatenate([unpacked(trace["x"]) for trace in visitor.chart("rates")["data"]])
    np.testing.assert_allclose(sorted(drawn), sorted(100 * np.array(rates)), atol=1e-4)
    assert visitor.has("kinds") == (kind == "")
    best = board.chosen[0]
    shown = best.answer - best.distractor >= 0.05 and best.rate.low > board.scores.baselines["chance"].value
    assert bool(visitor.warnings()) != shown
    visitor.press(f"board {best.layer} {best.head}")
    assert visitor.name == f"L{best.layer} H{best.head}"


def test_no_german_or_swedish_reference_is_said(open_page: Open) -> None:
    for lang, language in (("de", "German"), ("sv", "Swedish")):
        (warning,) = open_page(topic="scores", sentences=lang).warnings()
        assert f"No head of SmolLM2-135M-Instruct (4-bit) visibly shows {language} reference" in warning
    assert open_page(topic="scores").warnings() == []


def test_a_kind_that_the_language_lacks_gives_way(open_page: Open) -> None:
    visitor = open_page(topic="scores", sentences="en", kind="things")
    visitor.choose("sentences", "sv")
    assert_well(visitor)
    assert visitor["kind"] == "" and "Every head on all 768 sentences" in visitor.says()


def lines(n: int, lang: str = "en") -> list[str]:
    """Return some lines of a shipped file, from several templates."""
    every = (SHIPPED / f"{lang}.jsonl").read_text(encoding="utf-8").splitlines()
    return every[:: len(every) // n][:n]


def upload(visitor: Visitor, *rows: str) -> None:
    visitor.widget("items-file").upload("mine.jsonl", "\n".join(rows).encode()).run()


def test_an_own_file_is_measured_with_its_bad_line_named(open_page: Open, own_cache: Path) -> None:
    visitor = open_page(model="untrained", topic="scores", sentences="own", layer="1", head="1")
    upload(visitor, *lines(12), '{"text": "he"}')
    assert visitor.crashes() == []
    (warning,) = visitor.warnings()
    assert warning == "One line was skipped. line 13: it has no pronoun."
    assert "hasn't been measured on these 12 sentences" in visitor.says()
    visitor.press("measure-heads")
    visitor.wait_for("accuracy")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert "Every head on all 12 sentences" in visitor.says()
    expected = load("untrained")
    rows = [json.loads(line) for line in lines(12)]
    right = np.zeros((4, 4))
    for row in rows:
        trace = expected.trace("\n" + row["text"])
        spans = [row["pronoun"], row["answer"], *row["distractors"]]
        places = [[t.index for t in trace.tokens if t.start < b + 1 and a + 1 < t.end] for a, b in spans]
        for layer in range(4):
            for head in range(4):
                look = trace.weights(layer, head)[places[0][-1]]
                right[layer, head] += look[places[1]].sum() > max(look[place].sum() for place in places[2:])
    np.testing.assert_allclose(values(visitor, "accuracy").T, right / 12 - 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["nonsense", "{}"], "This file has no sentence that can be used."),
        ([""], "This file has no sentence that can be used."),
        (
            ['{"text": "he saw Ann and Tom", "pronoun": [0, 2], "answer": [7, 10], "distractors": [[15, 18]]}'],
            "Nothing is left to measure",
        ),
    ],
)
def test_a_file_without_a_sentence_to_measure_is_a_sentence(open_page: Open, rows: list[str], said: str) -> None:
    visitor = open_page(model="untrained", topic="scores", sentences="own", layer="1", head="1")
    upload(visitor, *rows)
    assert visitor.crashes() == [] and said in visitor.says() and not visitor.has("measure-heads")


def test_one_group_of_sentences_is_shown_without_a_choice(open_page: Open, own_cache: Path) -> None:
    visitor = open_page(model="untrained", topic="scores", sentences="own", layer="1", head="1")
    upload(visitor, lines(1)[0])
    visitor.press("measure-heads")
    visitor.wait_for("accuracy")
    assert visitor.crashes() == []
    assert "needs at least two groups" in visitor.says() and visitor.has("accuracy")


@pytest.mark.parametrize("arch", ["llama", "bloom", "t5"])
def test_a_model_without_scores_can_be_measured(
    open_page: Open, tiny_folder: Folder, own_cache: Path, arch: str
) -> None:
    folder = str(tiny_folder(arch))
    visitor = open_page(model=folder, text=TINY, topic="scores", sentences="own", layer="1", head="1")
    row = {"text": "w1 w2 w3 w4", "pronoun": [9, 11], "answer": [0, 2], "distractors": [[3, 5]]}
    more = row | {"text": "w5 w6 w7 w8", "group": "b"}
    upload(visitor, json.dumps(row), json.dumps(more))
    visitor.press("measure-heads")
    visitor.wait_for("accuracy")
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert values(visitor, "accuracy").T.shape == (2, 4)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let scans tell that they are half done, and hold them there until the event is set."""
    go_on = threading.Event()

    def wait(engine: Any, items: Any, *, progress: Any) -> Any:
        progress("Held", 1, 2)
        go_on.wait(300)
        progress("Held", 2, 2)
        return scan_boards(engine, items)

    monkeypatch.setattr(board_page, "scan_boards", wait)
    yield go_on
    go_on.set()


def test_the_page_lives_while_it_measures_and_hears_stop(
    open_page: Open, own_cache: Path, held: threading.Event
) -> None:
    visitor = open_page(model="untrained", topic="scores", sentences="own", layer="1", head="1")
    upload(visitor, *lines(4))
    visitor.press("measure-heads")
    assert visitor.has("stop-measuring") and not visitor.has("measure-heads")
    job = visitor["measuring"]
    visitor.choose("head", 2)  # a click meanwhile
    assert visitor.has("stop-measuring") and visitor["measuring"] is job and job.going_on
    assert (job.share, job.doing) == (0.5, "Held: 1 of 2 sentences")
    upload(visitor, *lines(3))  # another file isn't measured unasked
    assert visitor.has("measure-heads") and not visitor.has("stop-measuring")
    upload(visitor, *lines(4))
    visitor.press("stop-measuring")
    assert visitor.has("measure-heads") and not visitor.has("stop-measuring")
    held.set()
    job._thread.join(300)
    visitor.app.run()
    assert not job.going_on and job.result is None  # it ended at its next word, and left nothing
    assert visitor.has("measure-heads") and not visitor.has("accuracy") and not list(own_cache.rglob("*.npz"))


def test_work_that_fails_says_why(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("none of the 4 items can be measured")

    monkeypatch.setattr(board_page, "scan_boards", fail)
    visitor = open_page(model="untrained", topic="scores", sentences="own", layer="1", head="1")
    upload(visitor, *lines(4))
    visitor.press("measure-heads")
    visitor.wait_for("measure-heads")
    assert visitor.crashes() == [] and "None of the 4 items can be measured." in visitor.notes()


# --- does the head matter ---


def plain_logits(engine: Any, text: str, off: tuple[int, int] | None = None) -> np.ndarray:
    """Return the logits after a text from torch, with a head's slice of the output projection zeroed."""
    import torch

    with torch.no_grad():
        ids = torch.tensor([[token.id for token in engine.trace(text).tokens]])
        if off is None:
            return engine.model(ids).logits[0, -1].numpy()
        layer, head = off
        weight = engine.model.model.layers[layer].self_attn.o_proj.weight
        kept = weight[:, 64 * head : 64 * head + 64].clone()
        try:
            weight[:, 64 * head : 64 * head + 64] = 0
            return engine.model(ids).logits[0, -1].numpy()
        finally:
            weight[:, 64 * head : 64 * head + 64] = kept


SUGAR = "When Sarah and Daniel sat down in the garden, Daniel passed the sugar to"
DUEL = {
    "text": SUGAR,
    "topic": "matters",
    "word": "Sarah",
    "rival": "Daniel",
    "lead": "off",
    "layer": "24",
    "head": "4",
}


def test_the_effect_of_each_head_of_the_layer_is_that_of_a_pass_without_it(open_page: Open, smollm2: Any) -> None:
    visitor = open_page(**DUEL)
    assert_well(visitor)
    pair = [next_word_token(smollm2.tokenizer, word, after=SUGAR)[0] for word in ("Sarah", "Daniel")]
    lead = float(np.subtract(*plain_logits(smollm2, SUGAR)[pair]))
    assert f"a lead of {lead:+.2f} logits" in visitor.says()
    expected = [float(np.subtract(*plain_logits(smollm2, SUGAR, (24, head))[pair])) - lead for head in range(9)]
    np.testing.assert_allclose(bars(visitor, "layer-effects", axis="x"), expected, atol=2e-3)
    assert visitor.widget("instead").value == "zero"
    visitor.choose("instead", "mean")
    assert_well(visitor)
    milder = bars(visitor, "layer-effects", axis="x")
    assert np.abs(milder - expected).max() > 1e-3 and "milder than zero" in visitor.says()


def test_all_direct_contributions_and_the_rest_make_the_lead(open_page: Open) -> None:
    visitor = open_page(**DUEL)
    text, n = visitor.says().replace("−", "-"), r"([-+\d.]+)"
    found = re.search(
        rf"heads together {n}, the MLPs {n}, the token's own vector {n}, constants {n}: {n}, the lead", text
    )
    *parts, total = map(float, found.groups())
    assert sum(parts) == pytest.approx(total, abs=0.03)
    assert f"a lead of {total:+.2f} logits" in text
    assert values(visitor, "direct-map").sum() == pytest.approx(parts[0], abs=0.01)
    assert values(visitor, "direct-map").T[24, 4] < -0.5
    assert "looks at “Sarah”" in text and "votes against “Sarah”" in text
    top = [b for b in visitor.app.button if (b.key or "").startswith("direct ")]
    largest = np.abs(values(visitor, "direct-map").T)
    layer, head = np.unravel_index(largest.argmax(), largest.shape)
    assert top[0].label.startswith(f"L{layer} H{head} ")


def test_every_head_of_a_small_model_is_switched_off(open_page: Open) -> None:
    text = "A space at the end "  # since in this model every word begins with the token of its space
    visitor = open_page(model="untrained", text=text, topic="matters", word="Q", rival="Z", layer="1", head="2")
    assert_well(visitor)
    layer_1 = bars(visitor, "layer-effects", axis="x")
    visitor.press("switch-off-all")
    visitor.wait_for("effect-map")
    assert_well(visitor)
    effects = values(visitor, "effect-map").T
    assert effects.shape == (4, 4) and not visitor.has("switch-off-all") and not visitor.has("stop-switching")
    np.testing.assert_allclose(effects[1], layer_1, atol=1e-5)
    visitor.choose("instead", "mean")
    assert visitor.has("switch-off-all")  # each replacement has its own


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"model": "minilm", "layer": "2", "head": "1"}, "predicts no next word"),
        ({"word": "he", "rival": "he"}, "begin with the same token"),
        ({"word": " ", "rival": "he"}, "Type two words"),
        ({"text": "so " * 200, "model": "untrained", "layer": "1", "head": "1"}, "up to 512 tokens"),
    ],
)
def test_what_can_not_be_asked_is_a_sentence(open_page: Open, address: dict[str, str], said: str) -> None:
    visitor = open_page(topic="matters", **({"text": STATION} | address))
    assert (visitor.crashes(), visitor.errors()) == ([], [])
    assert said in "\n".join(visitor.notes()) and not visitor.has("direct-map")


def test_two_words_are_suggested_the_answer_first(open_page: Open) -> None:
    visitor = open_page(text=STATION, topic="matters")
    assert (visitor["word"], visitor["rival"]) == ("Peter", "Laura")
    assert open_page(text=STATION, topic="matters", answer="0", candidates="0_2")["word"] == "Laura"


def test_words_with_signs_of_markdown_are_printed_as_they_are(open_page: Open) -> None:
    visitor = open_page(text=STATION, topic="matters", word="$x$ *x* ![a](b)", rival="<b>")
    assert visitor.crashes() == []
    assert "*x*" in visitor.says() and "“<b>”" in visitor.says()
    table = next(box for box in visitor.app.expander if box.label == "How to read it, numbers, files")
    assert "$x$" not in " ".join(str(caption.value) for caption in table.caption)


# --- bad input ---


@pytest.mark.parametrize(
    "address",
    [
        {"pronoun": "999"},
        {"candidates": "none"},
        {"candidates": "3_3_500"},
        {"candidates": "10", "pronoun": "10"},
        {"answer": "5"},
        {"answer": "999", "candidates": "0_3"},
        {"layer": "99", "head": "99"},
        {"sentences": "own", "topic": "scores"},
        {"kind": "nonsense", "topic": "scores"},
    ],
    ids=str,
)
def test_a_link_to_words_that_are_not_there_shows_what_is(open_page: Open, address: dict[str, str]) -> None:
    visitor = open_page(**address)
    for topic in (visitor["topic"], *TOPICS):
        visitor.choose("topic", topic)
        assert (visitor.crashes(), visitor.errors()) == ([], []), topic
        arcs = visitor.component("arcs")
        assert arcs["pronoun"] == 10, topic
        if "answer" in address:
            assert arcs["candidates"][arcs["answer"]] in ([0], [3]), topic


def test_a_link_that_can_not_be_read_says_so(open_page: Open) -> None:
    names = ["topic", "pronoun", "candidates", "answer", "lead", "click", "sentences", "instead"]
    visitor = open_page(**dict.fromkeys(names, "-1 nonsense"))
    assert visitor.crashes() == []
    (note,) = visitor.notes()
    assert all(f"“{name}”" in note for name in names)
    assert visitor.component("arcs")["pronoun"] == 10


TEXTS = {
    "one word": "Hello",
    "punctuation": "... !?",
    "Chinese": "猫坐在垫子上，因为它很累。",
    "Arabic": "قابلت ليلى أحمد لأنه كان متعبا.",
    "Hindi": "राम ने सीता से कहा कि वह थकी है",
    "emoji": "👩\u200d💻 met 👨\u200d🚀 and she 🎉",
    "signs": "<b>Tom</b> & $x$ he *is* _it_ `a`",
    "lines": "Tom met Ann.\n\n\tThen she left\r\nhim.",
    "long": "Laura met Peter at the station before he took the train. " * 55,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_is_drawn(open_page: Open, text: str) -> None:
    visitor = open_page(model="untrained", text=text, layer="1", head="1")
    for topic in TOPICS:
        visitor.choose("topic", topic)
        assert (visitor.crashes(), visitor.errors()) == ([], []), topic
        arcs = visitor.component("arcs")
        shown = "".join(gap + word for gap, word in zip(arcs["gaps"], arcs["words"], strict=True))
        assert shown in text and len(arcs["words"]) == min(len(split_words(text)), MOST_WORDS)
        assert sum(arcs["weights"]) < 1.001
        assert "-0%" not in visitor.says(), topic


@pytest.mark.parametrize("text", ["", "\n", "\u200b"])
def test_a_text_without_a_word_is_a_sentence(open_page: Open, text: str) -> None:
    visitor = open_page(text=text)
    assert visitor.crashes() == []
    assert "no visible character" in "\n".join(visitor.errors())


@pytest.mark.parametrize("model", ["minilm", "untrained"])
@pytest.mark.parametrize("engine", ["torch", "numpy"])
def test_every_topic_works_with_other_models(open_page: Open, model: str, engine: str) -> None:
    visitor = open_page(model=model, engine=engine, text=STATION, layer="2", head="1")
    trace = load(model).trace(("" if model == "minilm" else "\n") + STATION)
    expected = weights_of_words(trace, STATION, HE, 2, 1, lead=model != "minilm")
    for topic in TOPICS:
        visitor.choose("topic", topic)
        assert (visitor.crashes(), visitor.errors()) == ([], []), topic
        np.testing.assert_allclose(visitor.component("arcs")["weights"], expected, atol=2e-5)


@pytest.mark.parametrize("arch", ["t5", "gpt2", "bloom", "gptoss", "mistral_sw4", "bert"])
def test_every_topic_works_with_tiny_models(open_page: Open, tiny_folder: Folder, arch: str) -> None:
    address = {"candidates": "0_2", "answer": "2", "word": "w1", "rival": "w2", "pair": "w1 w2 w7 w4 w5 w6"}
    visitor = open_page(model=str(tiny_folder(arch)), text=TINY, layer="1", head="2", **address)
    assert visitor.has("margins") and visitor.has("candidates")
    for topic in TOPICS:
        visitor.choose("topic", topic)
        assert (visitor.crashes(), visitor.errors()) == ([], []), topic
        arcs = visitor.component("arcs")
        assert arcs["words"] == TINY.split() and arcs["candidates"] == [[0], [2]] and arcs["answer"] == 1


def test_results_are_kept_for_all_visitors(open_page: Open) -> None:
    open_page(text=STATION)
    made = cache.results().n_made
    open_page(text=STATION, layer="2", head="2")
    assert cache.results().n_made == made


def test_words_that_repeat_stand_for_themselves_at_first(open_page: Open) -> None:
    text = "John saw Mary and John said that he"
    visitor = open_page(text=text, topic="matters", candidates="0_2_4", answer="4")
    assert (visitor["word"], visitor["rival"]) == ("John", "Mary")  # not “John (5)”, which tells candidates apart


def test_without_two_words_the_page_asks_for_them(open_page: Open) -> None:
    visitor = open_page(text=STATION, topic="matters", candidates="none")
    assert any("Type two words" in note for note in visitor.notes()) and not visitor.crashes()


def test_weight_that_goes_to_a_learned_sink_is_named(open_page: Open, tiny_folder: Folder) -> None:
    visitor = open_page(
        model=str(tiny_folder("gptoss", 1.0)), text=TINY, layer="0", head="0", candidates="0", lead="off"
    )
    (line,) = [text for text in visitor.says().split("\n") if text.startswith("In L0 H0,")]
    sink = 1 - sum(visitor.component("arcs")["weights"])
    assert sink > 0.005 and f"a learned sink {sink:.2f}" in line
    assert "sink" not in open_page(text=STATION).says()
