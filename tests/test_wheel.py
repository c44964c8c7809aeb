"""A wheel carries what the product needs at run time."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.long
def test_a_wheel_holds_every_file_of_the_package(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir"]
    source = tmp_path / "source"  # building writes beside the sources
    subprocess.run(["git", "clone", "--quiet", "--local", ROOT, source], check=True)
    subprocess.run([*command, str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("attnviz-*.whl")
    tracked = subprocess.run(["git", "ls-files", "attnviz"], cwd=source, capture_output=True, text=True, check=True)
    assert set(tracked.stdout.split()) <= set(zipfile.ZipFile(wheel).namelist())
