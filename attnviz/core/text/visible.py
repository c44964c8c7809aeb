"""Text in which every character can be seen: signs and names for what leaves no ink. Standard library only.

    space `·`   newline `⏎`   tab `⇥`   anything else without ink `‹NBSP›`, `‹ZWJ›`, `‹U+200B›`
    a combining mark without its letter `◌́`   bytes that are no character `‹E6 9D›`

A `·`, `⏎` or `⇥` that the user typed is written `‹·›`, `‹⏎›`, `‹⇥›`.
"""

import re
import unicodedata

_SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥"}
_C0 = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)
_NAMES = {
    **{chr(code): name for code, name in enumerate(_C0.split())},
    **{"\x7f": "DEL", "\x85": "NEL", "\xa0": "NBSP", "\xad": "SHY", "\u034f": "CGJ", "\u061c": "ALM", "\u200c": "ZWNJ"},
    **{"\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM", "\u2028": "LS", "\u2029": "PS", "\u202f": "NNBSP"},
    **{"\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF", "\u202d": "LRO", "\u202e": "RLO", "\u2060": "WJ"},
    **{"\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI", "\u2069": "PDI", "\ufeff": "BOM"},
    **{chr(0xFE00 + i): f"VS{i + 1}" for i in range(16)},
}
_TYPED = frozenset(_SIGNS.values())
_NO_INK_CATEGORIES = {"Cc", "Cf", "Co", "Zl", "Zp", "Zs"}
# Signs that Unicode files under "format" although they are drawn, such as Arabic's end of a verse.
_INK = set(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
# Fillers, variation selectors, tags and reserved codes that a browser draws as nothing; and the sign for "unreadable".
_NO_INK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufdd0-\ufdef\ufe00-\ufe0f\uffa0\ufff0-\uffff"
    "\ud800-\udc7f\udd00-\udfff\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
_STRAY_BYTES = re.compile("[\udc80-\udcff]+")  # how Python's "surrogateescape" hands on bytes that are no UTF-8


def visible(text: str) -> str:
    r"""Write a text so that every character of it can be seen.

    Args:
        text: any text; bytes that are no UTF-8 as `decode(errors="surrogateescape")` hands them on.

    Returns:
        The text with signs and names in it; empty only for an empty text.

    >>> visible(" what"), visible("\n\n"), visible("a\u200db")
    ('·what', '⏎⏎', 'a‹ZWJ›b')
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·")
    shown, has_base = [], False
    for char in text:
        sign = _sign(char)
        if sign == char and not has_base and unicodedata.category(char).startswith("M"):
            shown.append("◌")
        shown.append(sign)
        has_base = sign == char and not "\udc80" <= char <= "\udcff"
    return _STRAY_BYTES.sub(lambda match: f"‹{as_bytes(match[0]).hex(' ').upper()}›", "".join(shown))


def as_bytes(text: str) -> bytes:
    """Return the bytes that `decode(errors="surrogateescape")` made a text of, those that are no UTF-8 included."""
    return text.encode(errors="surrogateescape")


def _sign(char: str) -> str:
    """Return what stands for a character: itself if it leaves ink, else a sign or a name."""
    if char in _SIGNS:
        return _SIGNS[char]
    if char in _TYPED:
        return f"‹{char}›"
    no_ink = unicodedata.category(char) in _NO_INK_CATEGORIES and char not in _INK
    if no_ink or _NO_INK.match(char) or ord(char) & 0xFFFE == 0xFFFE:  # the last: codes that never are characters
        return f"‹{_NAMES.get(char, f'U+{ord(char):04X}')}›"
    return char
