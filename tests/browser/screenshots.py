"""Take the README's pictures of the running app: `python -m tests.browser.screenshots`, into `assets`."""

from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.page import open_page, served
from tests.chromium import CHROMIUM_FLAGS, find_chromium

ASSETS = Path(__file__).parents[2] / "assets"


def main() -> None:
    """Save the landing page in light and in dark."""
    with served("app.py") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        open_page(browser, address).close()  # loads the model and scores the reference texts
        for scheme in ("light", "dark"):
            page = open_page(browser, address, color_scheme=scheme)
            page.set_viewport_size({"width": 1400, "height": 1180})  # the whole map
            page.wait_for_timeout(1000)
            page.screenshot(path=ASSETS / f"explore-{scheme}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
