"""Start one of these pages, and wait until it has come to rest."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect

APPS = Path(__file__).parent
ROOT = APPS.parents[2]


def serve(script: str) -> Iterator[str]:
    """Run a Streamlit script on a free port, give its address, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", str(APPS / script), "--server.fileWatcherType=none", *options]
    app = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, app)
        yield f"http://127.0.0.1:{port}"
    finally:
        app.terminate()
        app.wait(timeout=10)


def _wait_for(port: int, app: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and app.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the page of the component did not start")


def settle(page: Page) -> None:
    """Wait until the script has run and no message is on its way."""
    page.wait_for_timeout(300)
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_timeout(300)
