"""Pictures of the running app: `python -m tests.browser.screenshots` takes the README's, into `assets`.

With `--page ADDRESS`, such as "cost?cost_part=matrix", or "" for Explore, it takes that page at each of SIZES, in
light and in dark, into the folder `test-results`, or the one behind `--out`.
"""

import argparse
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.benchmarks.page import open_page, served, settle
from tests.chromium import CHROMIUM_FLAGS, find_chromium

ROOT = Path(__file__).parents[2]
SCHEMES = ("light", "dark")
SIZES = ((1280, 720), (1920, 1080), (390, 844))
DRAWN = """document.querySelector('[data-test-script-state=notRunning]')
  && !document.querySelector('[data-testid^=stSkeleton]')"""  # grey places of parts that are still on their way


def main() -> None:
    """Take what was asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--page", metavar="ADDRESS", help="what stands behind the host; without it, the README's")
    options.add_argument("--out", metavar="FOLDER", type=Path, default=ROOT / "test-results")
    asked = options.parse_args()
    with served("app.py") as host, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        if asked.page is None:
            for_readme(browser, host)
        else:
            for_looking(browser, host, asked.page.lstrip("/"), asked.out)
        browser.close()


def for_readme(browser: Any, host: str) -> None:
    """Save the landing page in light and in dark."""
    open_page(browser, host).close()  # loads the model and scores the reference texts
    for scheme in SCHEMES:
        page = open_page(browser, host, color_scheme=scheme)
        page.set_viewport_size({"width": 1400, "height": 1180})  # the whole map
        page.wait_for_timeout(1000)
        page.screenshot(path=ROOT / "assets" / f"explore-{scheme}.png")
        page.close()


def for_looking(browser: Any, host: str, address: str, folder: Path) -> None:
    """Save a page at every size, in light and in dark, and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", address).strip("-") or "explore"
    for scheme in SCHEMES:
        for width, height in SIZES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(f"{host}/{address}")
            page.wait_for_function(DRAWN, timeout=120_000)
            settle(page)
            page.wait_for_function(DRAWN, timeout=120_000)
            file = folder / f"{name}-{width}x{height}-{scheme}.png"
            page.screenshot(path=file)
            page.close()
            print(file)


if __name__ == "__main__":
    main()
