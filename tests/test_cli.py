"""The command line, run in this process on small models; `--help` also as a program."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import attnviz
from attnviz.cli import app
from attnviz.core.pronouns.head_scores import score
from attnviz.core.pronouns.items import SHIPPED, item_line, read_items
from attnviz.core.pronouns.scoreboard import CSV_COLUMNS, SCORES_FILE, read_boards
from attnviz.models.scan.sentences import scan

ROOT = Path(__file__).resolve().parents[1]
ITEMS = read_items(SHIPPED / "en.jsonl")[0][::40]  # 20 of them


@pytest.fixture(autouse=True)
def cache(load_once, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def file(tmp_path):
    """A file with 20 items and three bad lines, 2, 4 and 24."""
    lines = [item_line(item) for item in ITEMS]
    lines[1:1] = ["{broken"]
    lines[3:3] = [json.dumps({"text": "no places"})]
    lines += ["", json.dumps({"text": "x", "pronoun": [0, 9]})]
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_scan_writes_a_line_a_head_and_a_summary(file, tmp_path):
    out = tmp_path / "scores.csv"
    result = run("scan", "--model", "untrained", "--items", file, "--out", out)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert tuple(rows[0]) == CSV_COLUMNS and len(rows) == 4 * 4
    scores = score(scan(attnviz.load("untrained"), ITEMS).looks)
    for row in rows:
        place = int(row["layer"]), int(row["head"])
        assert float(row["accuracy"]) == pytest.approx(scores.accuracy[place], abs=1e-4)
        assert float(row["accuracy_low"]) == pytest.approx(scores.low[place], abs=1e-4)
        assert row["n"] == "20" and row["chance"] == "0.5000" and row["random_weights"]
    for line, reason in ((2, "isn't JSON"), (4, "no pronoun"), (24, "its pronoun is [0, 9]")):
        assert f"line {line}: " in result.stderr and reason in result.stderr
    for word in ("random weights", "nearest", "first", "chance", "20 items measured", "3 bad lines skipped"):
        assert word in result.stdout
    assert "'\\n' in front of each text" in result.stdout


def test_lead_and_causal_only(tmp_path):
    text = "As she was late, Anna called Tom."
    late = {"text": text, "pronoun": [3, 6], "answer": [17, 21], "distractors": [[29, 32]]}
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join([json.dumps(late), *map(item_line, ITEMS)]), encoding="utf-8")
    counts = {}
    for options in (("--lead", "none"), ("--lead", "Well\\n", "--causal-only")):
        result = run(
            "scan", "--model", "untrained", "--no-control", "--items", file, "--out", tmp_path / "x.csv", *options
        )
        assert result.exit_code == 0, result.output
        counts[options[1]] = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))[0]["n"]
        assert ("nothing in front" if options[1] == "none" else "'Well\\n' in front") in result.stdout
        assert "random weights, L" not in result.stdout
    assert counts == {"none": "21", "Well\\n": "20"}


def test_many_bad_lines_are_all_numbered(tmp_path):
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(["{"] * 30 + [item_line(item) for item in ITEMS]), encoding="utf-8")
    result = run("scan", "--model", "untrained", "--no-control", "--items", file, "--out", tmp_path / "x.csv")
    assert "line 20: " in result.stderr and "line 21: " not in result.stderr
    assert "lines 21, 22, 23, 24, 25, 26, 27, 28, 29, 30" in result.stderr and "30 bad lines skipped" in result.stdout


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--model": "./nope"}, "there is no file or folder ./nope"),
        ({"--items": "nope.jsonl"}, "there is no file nope.jsonl"),
        ({"--out": "nope/x.csv"}, "there is no folder nope to write x.csv into"),
        ({"--out": "."}, ". is a folder"),
        ({"--items": "README.md"}, "there is no item to measure in README.md"),
        ({"--lead": "\\n" * 5000}, "none of the 20 items can be measured"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence_and_exit_code_2(changes, words, file, tmp_path):
    arguments = {"--model": "untrained", "--items": str(file), "--out": str(tmp_path / "x.csv")} | changes
    result = run("scan", *(part for pair in arguments.items() for part in pair))
    said = [line for line in result.stderr.splitlines() if line.startswith("attnviz: ")]
    assert result.exit_code == 2 and len(said) == 1 and words in said[0], result.output
    assert "Traceback" not in result.output and not (tmp_path / "x.csv").exists()


def test_a_missing_option_is_exit_code_2():
    result = run("scan", "--model", "untrained")
    assert result.exit_code == 2 and "--items" in result.stderr


def test_ctrl_c_ends_in_a_sentence(file, tmp_path, monkeypatch):
    def stop(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("attnviz.models.scan.boards.scan", stop)
    result = run("scan", "--model", "untrained", "--items", file, "--out", tmp_path / "x.csv")
    assert result.exit_code == 130 and "stopped; nothing was written" in result.stderr
    assert not (tmp_path / "x.csv").exists()


def test_help_has_examples_and_comes_without_torch():
    program = "import sys; from attnviz import cli; print('torch' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"
    shown = subprocess.run(
        [sys.executable, "-m", "attnviz", "scan", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "python -m attnviz scan --model minilm --items" in shown and "--causal-only" in shown
    assert all(command in run("--help").stdout for command in ("scan", "make-items", "make-scores"))


def test_make_items_writes_what_ships(tmp_path):
    assert run("make-items", "--folder", tmp_path).exit_code == 0
    for lang in ("en", "de", "sv"):
        assert (tmp_path / f"{lang}.jsonl").read_bytes() == (SHIPPED / f"{lang}.jsonl").read_bytes()


def test_make_scores_gives_the_shipped_scores_of_the_untrained_model_again(tmp_path):
    out = tmp_path / "scores.json"
    result = run("make-scores", "--model", "untrained", "--out", out)
    assert result.exit_code == 0, result.output
    shipped, again = json.loads(SCORES_FILE.read_text("utf-8")), json.loads(out.read_text("utf-8"))
    assert again["about"] == shipped["about"]  # the hashes of the sentences, so the scores are of these very files
    ours = [board for board in shipped["boards"] if board["model"] == "untrained"]
    assert [(b["lang"], b["kind"], b["n"]) for b in again["boards"]] == [(b["lang"], b["kind"], b["n"]) for b in ours]
    for one, other in zip(again["boards"], ours, strict=True):
        for ours_row, theirs_row in zip(one["accuracy"], other["accuracy"], strict=True):
            assert ours_row == pytest.approx(
                theirs_row, abs=2.1 / one["n"]
            )  # another machine may round a tie otherwise


@pytest.mark.slow
def test_the_shipped_scores_of_minilm_are_what_a_scan_finds(minilm):
    (board,) = (b for b in read_boards() if (b.model, b.lang, b.kind) == ("minilm", "en", ""))
    scores = score(scan(minilm, read_items(SHIPPED / "en.jsonl")[0], cache=False).looks)
    assert board.revision == minilm.info.revision and board.scores.n == scores.n
    assert abs(board.scores.accuracy - scores.accuracy).max() <= 2.1 / scores.n
    assert abs(board.scores.answer - scores.answer).max() < 1e-3


def test_the_shipped_scores_are_of_all_models_languages_and_kinds():
    boards = read_boards()
    totals = {(b.model, b.lang) for b in boards if not b.kind}
    assert totals == {(m, lang) for m in ("smollm2", "minilm", "untrained") for lang in ("en", "de", "sv")}
    for board in boards:
        assert board.chosen and (board.control is None) == (board.model == "untrained")
    kinds = {(b.model, b.lang, b.kind): b for b in boards}
    assert kinds["minilm", "en", "names"].scores.accuracy[2, 4] >= 0.82
    assert kinds["smollm2", "en", "names"].scores.accuracy[9, 4] >= 0.88
