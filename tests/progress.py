"""The order of the tests, fast ones first, and a line when those of a folder, or of a browser file, are done."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

ROOMS = ("core", "figures", "models", "tests", "ui", "browser")  # a broken core shows first


def room_of(nodeid: str) -> str:
    """Return the folder that a test is in, "tests" for those directly in it."""
    _, first, *rest = nodeid.partition("::")[0].split("/")
    return first if rest else "tests"


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests by the order of their rooms, and as they are within one."""
    places = {room: place for place, room in enumerate(ROOMS)}
    return sorted(items, key=lambda item: places.get(room_of(item.nodeid), places["ui"]))


class Progress:
    """Prints a line when a group of tests is done, with what failed in it; in one process as with several."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.began = time.monotonic()
        self.left: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.failed: defaultdict[str, list[str]] = defaultdict(list)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._expect(ids)  # all processes collect the same

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        group = _group(report.nodeid)
        if report.failed:
            self.failed[group].append(report.nodeid)
        if report.when == "teardown":
            self.left[group] -= 1
            if self.left[group] == 0:
                self._say(group)

    def _expect(self, ids: Iterable[str]) -> None:
        if not self.total:
            self.total = Counter(map(_group, ids))
            self.left = Counter(self.total)

    def _say(self, group: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or len(self.total) < 2:
            return
        left = sum(count > 0 for count in self.left.values())
        minutes = (time.monotonic() - self.began) / 60
        said = [f"{group}: {self.total[group]} tests done after {minutes:.1f} minutes, {left} groups to go"]
        said += [f"    failed: {nodeid}" for nodeid in self.failed[group]]
        reporter.write("\n" + "\n".join(said) + "\n")


def _group(nodeid: str) -> str:
    """Return what gets a line of its own: a folder, or a file of the browser's, which take longest."""
    return nodeid.partition("::")[0] if room_of(nodeid) == "browser" else room_of(nodeid)
