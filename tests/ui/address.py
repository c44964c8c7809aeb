"""A browser tab on a page that only reads and writes its address."""

from typing import Any

import pytest

from attnviz.app.pages import FIELDS
from attnviz.app.shell import address as state


class Session(dict):
    """Stands in for streamlit's session: a mapping whose keys are attributes too."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Address(dict):
    """Stands in for streamlit's query parameters."""

    def to_dict(self) -> dict[str, str]:
        return dict(self)

    def from_dict(self, params: dict[str, str]) -> None:
        self.clear()
        self.update(params)


class Visit:
    """A browser tab on a page that only reads and writes its address."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, address: dict[str, str]) -> None:
        self.monkeypatch = monkeypatch
        self.session_state = Session()
        self.query_params = Address(address)
        self.run()

    def run(self) -> None:
        self.monkeypatch.setattr(state, "st", self)
        state.restore("", FIELDS)
        self.seen = state.take_notes()
        state.remember()


def chosen(visit: Visit) -> dict[str, Any]:
    return {name: visit.session_state[name] for name in FIELDS}
