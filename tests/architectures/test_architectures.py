"""Every architecture of transformers: its own numbers, or one sentence. The long part builds all of them."""

import pytest

from tests.architectures.sweep import every, row_of, rows
from tests.architectures.table import PAGE, SHOWN, faults, markdown

# one of each kind of way in which architectures differ that tests/tiny.py has no model of
MEMBERS = {
    "deepseek_v3": ("recorded",),  # keys and values through a bottleneck, d_head of v another than of q and k
    "bamba": ("recorded",),  # one layer of attention behind one of another kind
    "roberta": ("recorded", "recorded"),  # positions begin at 2, and `generate` numbers them otherwise
    "qwen2_vl": ("recorded",),  # text and images, positions in three dimensions
    "bart": ("recorded", "recorded"),
    "whisper": ("recorded", "refused", "refused"),
    "vit": ("refused",),
}


@pytest.mark.parametrize("model_type", MEMBERS)
def test_an_architecture_gives_its_own_numbers_or_a_sentence(model_type):
    found = [row_of(item) for item in every([model_type])]
    assert tuple(row.outcome for row in found) == MEMBERS[model_type]
    assert [fault for row in found for fault in faults(row)] == []


@pytest.fixture(scope="module")
def all_rows():
    """Return a row for every class of every configuration, built one after the other."""
    return list(rows(every()))


@pytest.mark.long
def test_every_architecture_gives_its_own_numbers_or_a_sentence(all_rows):
    assert "\n".join(fault for row in all_rows for fault in faults(row)) == ""


@pytest.mark.long
def test_the_table_is_long(all_rows):
    shown = {row.model_type for row in all_rows if row.outcome in SHOWN}
    same = {row.model_type for row in all_rows if row.tokens.get("plain") and isinstance(row.tokens["cached"], list)}
    assert len(shown) >= 200 and len(same) >= 100
    assert sum(row.outcome == "unbuilt" and row.class_name != "" for row in all_rows) < 80


@pytest.mark.long
def test_the_page_says_what_was_found(all_rows):
    assert PAGE.read_text(encoding="utf-8") == markdown(all_rows), "python -m tests.architectures writes the page"
