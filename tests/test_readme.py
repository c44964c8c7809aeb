"""The README's commands and Python blocks, run as they stand there."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from attnviz.cli import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", README, re.M | re.S)
COMMANDS = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if "-m attnviz" in line]
PYTHON = [block for kind, block in BLOCKS if kind == "python" and "import attnviz" in block]
SLOW = ("scan", "--known")


@pytest.fixture(autouse=True)
def elsewhere(load_once, tmp_path, monkeypatch):
    """Run in an empty folder that has the repository's assets, so that nothing is written into the repository."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run():
    assert {command.split()[3] for command in COMMANDS} == {"models", "heatmap", "heads", "scan"}
    assert len(PYTHON) == 2 and "python -m attnviz app" in README


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.slow if any(s in c for s in SLOW) else ()) for c in COMMANDS]
)
def test_a_command_runs_and_writes_its_file(command, tmp_path):
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "attnviz"]
    result = CliRunner().invoke(app, words[3:])
    assert result.exit_code == 0 and result.stdout.strip(), result.output
    if "--out" in words:
        assert (tmp_path / words[words.index("--out") + 1]).stat().st_size > 500


@pytest.mark.parametrize("block", PYTHON, ids=["from_python", "in_a_notebook"])
def test_a_python_block_runs(block):
    names = {}
    exec(block, names)
    if "smollm2" in block:  # what its comment says
        (car,) = (token.index for token in names["trace"].tokens if token.text == " car")
        assert names["trace"].weights(13, 8)[-1, car] == pytest.approx(0.81, abs=0.005)


def test_the_app_is_started_by_its_command(monkeypatch):
    calls = []
    monkeypatch.setattr("attnviz.cli.start.subprocess", SimpleNamespace(call=lambda *a, **k: calls.append(a) or 0))
    assert CliRunner().invoke(app, ["app"]).exit_code == 0 and "streamlit" in calls[0][0]
