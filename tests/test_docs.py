"""The README and the pages in docs: commands and Python blocks run as they stand there, links lead somewhere."""

import pkgutil
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from attnviz.app.show.deck import PICTURES, read_deck
from attnviz.app.talk.shipped import shipped_decks
from attnviz.cli import app
from tests.cases import case

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    if path.name != "CHANGELOG.md"
}
BLOCKS = [
    (name, *block) for name, page in PAGES.items() for block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S)
]
COMMANDS = [line for _, kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if "-m attnviz" in line]
PYTHON = [(name, block) for name, kind, block in BLOCKS if kind == "python" and "import attnviz" in block]
SLOW = ("scan", "--known")
README_WORDS = 450


@pytest.fixture(autouse=True)
def elsewhere(load_once, tmp_path, monkeypatch):
    """Run in an empty folder that has the repository's package, so that nothing is written into the repository."""
    (tmp_path / "attnviz").symlink_to(ROOT / "attnviz")
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run():
    assert {command.split()[3] for command in COMMANDS} == {"models", "heatmap", "heads", "scan"}
    assert len(PYTHON) >= 4 and any("python -m attnviz app" in page for page in PAGES.values())


def test_the_readme_is_short_and_links_lead_somewhere():
    words = re.sub(r"<picture>.*?</picture>", "", PAGES["README.md"], flags=re.S).split()
    assert len(words) <= README_WORDS
    for name, page in PAGES.items():
        for link in re.findall(r"\]\(([^)]+)\)", page):
            with case((name, link)):
                assert (ROOT / name).parent.joinpath(link.partition("#")[0]).exists()


def test_what_the_walks_name_is_there():
    named = re.findall(
        r"`((?:app|components|core|explore|figures|models|scratch|shell|show|talk)\.[\w.]+)`", PAGES["CONTRIBUTING.md"]
    )
    assert len(named) > 30
    for name in {*named} - {"app.py"}:
        with case(name):
            room = "attnviz" if name.split(".")[0] in ("core", "figures", "models") else "attnviz.app"
            assert pkgutil.resolve_name(f"{room}.{name}") is not None


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


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[f"{name} {n}" for n, (name, _) in enumerate(PYTHON)])
def test_a_python_block_runs(page, block):
    names = {}
    exec(block, names)
    if "0.81" in block:  # what its comment says
        (car,) = (token.index for token in names["trace"].tokens if token.text == " car")
        assert names["trace"].weights(13, 8)[-1, car] == pytest.approx(0.81, abs=0.005)


def test_the_deck_reads_and_every_picture_is_named():
    (deck,) = (block for _, kind, block in BLOCKS if kind == "toml")
    assert read_deck(deck).scenes and shipped_decks()
    assert {name for name in PICTURES if f"`{name}`" not in PAGES["docs/talks.md"]} == set()


def test_the_app_is_started_by_its_command(monkeypatch):
    calls = []
    monkeypatch.setattr("attnviz.cli.start.subprocess", SimpleNamespace(call=lambda *a, **k: calls.append(a) or 0))
    assert CliRunner().invoke(app, ["app"]).exit_code == 0 and "streamlit" in calls[0][0]
