"""The pronoun sentences that ship, made from templates and word lists. Standard library only.

`templates.toml` says how its templates are written.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from attnviz.core.pronouns.items import SHIPPED, Item, Span, item_line

TEMPLATES_FILE = SHIPPED / "templates.toml"

_SLOT = re.compile(r"\{([ABP])(?:\.(\w+)|:([^|}]*)\|([^}]*))?\}")  # {A}, {B.dat}, {P:war|waren}
_FORMS = {"nom": 0, "akk": 1, "obj": 1, "dat": 2}


@dataclass(frozen=True)
class Word:
    """A word in its forms, nominative first, and the key of the pronoun that stands for it."""

    forms: tuple[str, ...]
    pronoun: str

    @property
    def plural(self) -> bool:
        """True for words of several things."""
        return self.pronoun == "plural"

    def form(self, name: str) -> str:
        """Return a form by its name; a word with one form alone has that one everywhere."""
        return self.forms[0] if len(self.forms) == 1 else self.forms[_FORMS[name]]


@cache
def read_templates() -> Mapping[str, Any]:
    """Return what the file with templates, word lists and pronouns holds."""
    return tomllib.loads(TEMPLATES_FILE.read_text(encoding="utf-8"))


def fill(text: str, words: Mapping[str, Word]) -> tuple[str, dict[str, Span]]:
    """Put words into the slots of a template.

    Args:
        text: a template, with slots for A, B and P.
        words: the word of each of those letters.

    Returns:
        The text, its first letter a capital, and where in it each letter's word is, in characters.

    Raises:
        ValueError: a word comes twice or not at all, or a slot isn't one.

    >>> words = {"A": Word(("the cats",), "plural"), "B": Word(("Tom",), "he"), "P": Word(("they", "them"), "plural")}
    >>> fill("{A} {A:sees|see} {B}, who feeds {P.obj}.", words)
    ('The cats see Tom, who feeds them.', {'A': (0, 8), 'B': (13, 16), 'P': (28, 32)})
    """
    spans: dict[str, Span] = {}
    filled, end = "", 0
    for slot in _SLOT.finditer(text):
        letter, form, singular, plural = slot.groups()
        word = words[letter]
        filled += text[end : slot.start()]
        if singular is not None:
            piece = plural if word.plural else singular
        else:
            piece = word.form(form or "nom")
            if letter in spans:
                raise ValueError(f"a template holds {{{letter}}} twice: {text}")
            spans[letter] = (len(filled), len(filled) + len(piece))
        filled, end = filled + piece, slot.end()
    filled += text[end:]
    if set(spans) != set("ABP") or "{" in filled:
        raise ValueError(f"expected a template with {{A}}, {{B}} and {{P}}, each once, got {text}")
    return filled[0].upper() + filled[1:], spans


def make_items(lang: str, templates: Mapping[str, Any] | None = None) -> tuple[Item, ...]:
    """Return all items of a language, in the order of the templates.

    Args:
        lang: "en", "de" or "sv".
        templates: as `read_templates` returns them, which is the default.

    Raises:
        ValueError: no template of that language, one that isn't well formed, or two equal texts.
    """
    told = read_templates() if templates is None else templates
    items = tuple(item for one in told["template"] if one["lang"] == lang for item in _items_of(one, told))
    if not items:
        raise ValueError(f"there is no template in {lang!r}")
    if len({item.text for item in items}) < len(items):
        raise ValueError(f"two items in {lang!r} have the same text")
    return items


def items_text(lang: str) -> str:
    """Return the whole JSONL file of a language."""
    return "".join(item_line(item) + "\n" for item in make_items(lang))


def _items_of(template: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[Item]:
    lang, group = template["lang"], f"{template['lang']}-{template['id']}"
    pronouns = told["pronouns"][lang]
    start, stop = template["pairs"]
    for number, pair in enumerate(told["words"][lang][template["words"]][start:stop], start=start):
        one, other = (_word(word) for word in pair)
        for order, (a, b) in list(enumerate([(one, other), (other, one)]))[: template.get("orders", 2)]:
            for letter, answer in (("A", a), ("B", b)):
                pronoun = Word(tuple(pronouns[answer.pronoun].split("/")), answer.pronoun)
                text, spans = fill(template["text"], {"A": a, "B": b, "P": pronoun})
                wrong = spans["B" if letter == "A" else "A"]
                yield Item(
                    id=f"{group}-{number}-{'ab' if order == 0 else 'ba'}-{letter.lower()}",
                    lang=lang,
                    text=text,
                    pronoun=spans["P"],
                    answer=spans[letter],
                    distractors=(wrong,),
                    kind=template["kind"],
                    group=group,
                    causal_ok=max(spans["A"][1], spans["B"][1]) <= spans["P"][0],
                    source="attnviz",
                    licence="MIT",
                    meta={"template": template["id"], "words": [a.forms[0], b.forms[0]]},
                )


def _word(written: str) -> Word:
    *forms, pronoun = written.split("/")
    return Word(tuple(forms), pronoun)
