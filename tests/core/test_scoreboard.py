import csv
import io

import numpy as np
import pytest

from attnviz.core.pronouns.head_scores import Looks, choose_heads, score, take
from attnviz.core.pronouns.scoreboard import CSV_COLUMNS, boards_text, csv_text, make_board, make_boards, read_boards
from tests.core.made_looks import made_item, made_looks


def mixed_looks():
    rng = np.random.default_rng(4)
    items = tuple(
        made_item(i, group=f"g{i % 24}", kind=("names", "kin")[i % 2], lang=("en", "de")[i % 24 > 11])
        for i in range(72)
    )
    answer, distractor = rng.random((2, 72, 2, 3)).astype(np.float32)
    return Looks(items, (1, 5), answer, distractor)


def test_boards_are_of_all_items_of_each_language_and_of_each_kind():
    looks = mixed_looks()
    boards = list(make_boards(looks, control=looks, model="m"))
    parts = [(board.lang, board.kind) for board in boards]
    assert parts == [
        ("", ""), ("de", ""), ("de", "kin"), ("de", "names"), ("en", ""), ("en", "kin"), ("en", "names"),
    ]  # fmt: skip
    for board in boards:
        own = take(looks, lambda i, b=board: b.lang in ("", i.lang) and b.kind in ("", i.kind))
        np.testing.assert_array_equal(board.scores.accuracy, score(own).accuracy)
        assert list(board.chosen) == choose_heads(own) and board.control == board.chosen[0]
        assert board.control_best == board.scores.accuracy.max()


def test_items_without_a_language_count_in_the_board_of_all():
    looks = mixed_looks()
    bare = Looks((made_item(99, lang=""), *looks.items[1:]), looks.layers, looks.answer, looks.distractor)
    boards = list(make_boards(bare))
    assert (boards[0].lang, boards[0].scores.n) == ("", 72)
    of_one = take(bare, [item.lang in ("en", "") for item in bare.items])
    boards = list(make_boards(of_one))
    assert [(b.lang, b.scores.n) for b in boards if not b.kind] == [
        ("", len(of_one.items)),
        ("en", len(of_one.items) - 1),
    ]
    assert [(b.lang, b.kind) for b in make_boards(made_looks(lang=""))] == [("", "")]


def test_a_kind_that_is_alone_has_no_board_of_its_own():
    assert [(b.lang, b.kind) for b in make_boards(made_looks(kind="names"))] == [("en", "")]


def test_one_group_leaves_nothing_to_choose_on():
    board = make_board(made_looks(n_groups=1), control=made_looks(n_groups=1, seed=2))
    assert board.chosen == () and board.control is None and np.isnan(board.scores.low).all()
    assert board.control_best == score(made_looks(n_groups=1, seed=2)).accuracy.max()


def test_csv_has_a_line_for_each_head():
    looks = mixed_looks()
    answer, distractor = looks.answer.copy(), looks.distractor.copy()
    answer[:, 0, 2] = distractor[:, 0, 2] = np.nan  # layer 1 has two heads
    board = make_board(Looks(looks.items, looks.layers, answer, distractor))
    rows = list(csv.DictReader(io.StringIO(csv_text(board))))
    assert [(row["layer"], row["head"]) for row in rows] == [("1", "0"), ("1", "1"), ("5", "0"), ("5", "1"), ("5", "2")]
    assert tuple(rows[0]) == CSV_COLUMNS
    last = rows[-1]
    assert float(last["accuracy"]) == pytest.approx(board.scores.accuracy[1, 2], abs=1e-4)
    assert float(last["weight_on_answer"]) == pytest.approx(board.scores.answer[1, 2], abs=1e-4)
    assert (last["n"], last["chance"], last["first"], last["random_weights"]) == ("72", "0.5000", "1.0000", "")


def test_boards_come_back_from_their_file_to_four_digits(tmp_path):
    boards = [*make_boards(mixed_looks(), control=mixed_looks(), model="m", revision="r", lead="\n")]
    boards.append(make_board(made_looks(n_groups=1)))
    file = tmp_path / "scores.json"
    file.write_text(boards_text(boards, made_by="a test"), encoding="utf-8")
    found = read_boards(file)
    for board, again in zip(boards, found, strict=True):
        assert (again.model, again.lead, again.lang, again.kind) == (board.model, board.lead, board.lang, board.kind)
        assert (again.scores.n, again.scores.layers) == (board.scores.n, board.scores.layers)
        for name in ("accuracy", "low", "high", "answer", "distractor"):
            np.testing.assert_allclose(getattr(again.scores, name), getattr(board.scores, name), atol=5.1e-5)
        assert len(again.chosen) == len(board.chosen) and (again.control is None) == (board.control is None)
        for one, other in zip(again.chosen, board.chosen, strict=True):
            assert (one.layer, one.head, one.n) == (other.layer, other.head, other.n)
            assert one.rate.low == pytest.approx(other.rate.low, abs=5.1e-5)
        assert again.scores.baselines["first"].value == board.scores.baselines["first"].value
    assert boards_text(found, made_by="a test") == file.read_text(encoding="utf-8")


def test_a_file_without_scores_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="can't be read"):
        read_boards(tmp_path / "nope.json")
    (tmp_path / "other.json").write_text('{"boards": [{"layers": 1}]}')
    with pytest.raises(ValueError, match="holds no scores"):
        read_boards(tmp_path / "other.json")
