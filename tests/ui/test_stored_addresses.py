"""Links that were given away: each opens what it opened when it was stored, with the numbers that it showed then."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.app.pages import FIELDS
from tests.ui.conftest import Visitor
from tests.ui.shown import differences
from tests.ui.store_addresses import open_address, read_store

ENTRIES = read_store()["addresses"]
Folder = Callable[[str], Path]


def test_every_name_in_a_stored_address_is_a_field_still() -> None:
    named = {name for entry in ENTRIES for name in entry["address"]} - {"z", "utm_source"}
    assert len(named) > 70 and named <= set(FIELDS)


@pytest.mark.parametrize("page", sorted({entry["page"] for entry in ENTRIES}), ids=lambda page: page or "explore")
def test_a_stored_address_shows_what_it_showed(
    open_app: Callable[..., Visitor], tiny_folder: Folder, page: str
) -> None:
    found = []
    for entry in ENTRIES:
        if entry["page"] == page:
            now = open_address(entry, lambda name: tiny_folder(name, sharpen=1.0), open_app)
            found += [f"{entry['address']}:{line}" for line in differences(entry["shows"], now)]
    assert not found, "\n".join(found)
