"""Signs and names for characters that can't be seen."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.core.text.visible import as_bytes, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        (" two words ", "·two·words·"),
        ("a\r\n\tb", "a‹CR›⏎⇥b"),
        ("\x00\x1b\x7f\x85", "‹NUL›‹ESC›‹DEL›‹NEL›"),
        ("\u00a0\u202f\u3000", "‹NBSP›‹NNBSP›‹U+3000›"),
        ("👨\u200d👩", "👨‹ZWJ›👩"),
        ("می\u200cخواهم", "می‹ZWNJ›خواهم"),
        ("\u200e\u200f\u202a\u202e\u2066\u2069", "‹LRM›‹RLM›‹LRE›‹RLO›‹LRI›‹PDI›"),
        ("❤\ufe0f", "❤‹VS16›"),
        ("\u3164\u2800\U000e0041", "‹U+3164›‹U+2800›‹U+E0041›"),
        ("\ufffd\ufffe\U0010ffff\uf8ff", "‹U+FFFD›‹U+FFFE›‹U+10FFFF›‹U+F8FF›"),
        ("\u06dd", "\u06dd"),
        ("e\u0301", "e\u0301"),
        ("\u0301", "◌\u0301"),
        (" \u0301", "·◌\u0301"),
        ("\u200d\u094d", "‹ZWJ›◌\u094d"),
        ("a·⏎⇥", "a‹·›‹⏎›‹⇥›"),
        (b"a\xe6\x9d".decode(errors="surrogateescape"), "a‹E6 9D›"),
        (b"\xff\xcc\x81".decode(errors="surrogateescape"), "‹FF›◌\u0301"),
        ("\ud83d", "‹U+D83D›"),
    ],
)
def test_visible(text, expected):
    assert visible(text) == expected


@given(st.text())
def test_no_two_texts_of_ordinary_characters_look_alike(text):
    """Signs can be read back, as long as nobody types the brackets of a name."""
    shown = visible(text)
    if not set("‹›◌") & set(text + shown):
        assert shown.replace("·", " ").replace("⏎", "\n").replace("⇥", "\t") == text


@given(st.text(min_size=1))
def test_nothing_is_left_that_is_drawn_as_nothing(text):
    shown = visible(text)
    assert shown.strip()
    assert {unicodedata.category(char) for char in shown}.isdisjoint({"Cc", "Zs", "Zl", "Zp", "Cs"})


@given(st.binary())
def test_as_bytes_undoes_decoding(data):
    assert as_bytes(data.decode(errors="surrogateescape")) == data
