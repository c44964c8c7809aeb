"""The installed Chromium or Chrome that tests look at pages with, and how it is started."""

import shutil
from pathlib import Path

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ON_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
# No sandbox, because root can't have one; the rest keeps Chromium from calling home.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # one process for all tabs of the app, which then needn't compile its scripts for each test
)


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    return str(CHROMIUM_ON_MAC) if found is None and CHROMIUM_ON_MAC.exists() else found
