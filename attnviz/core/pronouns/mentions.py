"""Words that could be a pronoun or what it stands for, in English, German and Swedish. Standard library only.

Nothing here understands a sentence. Pronouns are found in a list; candidates are suggested by how they look (a capital
letter, an article before them); which of them a pronoun can mean is guessed from lists of names. The visitor decides.
"""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache

from attnviz.core.pronouns.item_templates import read_templates
from attnviz.core.pronouns.items import LANGUAGES, SHIPPED
from attnviz.core.text.words import split_words

MOST_CANDIDATES = 6
WORDS_FILE = SHIPPED / "words.toml"


def language_of(text: str) -> str:
    """Return "en", "de" or "sv", whichever has most of its small words in the text; "en" if none has.

    >>> language_of("Anna ringde Erik eftersom hon var ensam"), language_of("Sie kam, weil es regnete")
    ('sv', 'de')
    """
    words = [text[start:end].lower() for start, end in split_words(text)]
    return max(LANGUAGES, key=lambda lang: sum(word in _small_words(lang) for word in words))


def find_pronouns(text: str) -> list[int]:
    """Return which words of a text are pronouns, in order, as indices into `split_words`.

    Where a word is an article as well ("den" in Swedish) it counts as a pronoun unless a word that could be its noun
    follows.

    >>> find_pronouns("Anna told Tom that she had his keys")
    [4, 6]
    """
    lang, words = language_of(text), _words(text)
    found = []
    for place, word in enumerate(words):
        if word.lower() not in _set(lang, "pronouns"):
            continue
        follower = words[place + 1].lower() if place + 1 < len(words) else ""
        article = lang == "sv" and word.lower() in ("den", "det", "de")
        if not (article and follower[:1].isalpha() and follower not in _small_words(lang) and _like_noun(follower)):
            found.append(place)
    return found


def suggest_candidates(text: str, pronoun: int) -> list[int]:
    """Return which words a pronoun might stand for, in order: those before it, or if there are none those after it.

    A candidate is a name (a capital letter that doesn't merely open a sentence) or the word after an article and its
    adjectives.

    Args:
        text: a sentence or more.
        pronoun: the pronoun's word.

    Returns:
        At most 6 words, those nearest to the pronoun, as indices into `split_words`.

    >>> suggest_candidates("The old clock fell on Anna and it broke", 7)
    [2, 5]
    """
    lang, words = language_of(text), _words(text)
    found = [place for place in range(len(words)) if place != pronoun and _is_candidate(words, place, lang)]
    before = [place for place in found if place < pronoun]
    chosen = before or found
    return sorted(sorted(chosen, key=lambda place: abs(place - pronoun))[:MOST_CANDIDATES])


def guess_answer(text: str, pronoun: int, candidates: Sequence[int]) -> int | None:
    """Return the candidate that the pronoun's gender or number picks out by the lists of names and nouns that ship.

    Returns:
        Its word; None if the lists don't tell the candidates apart: then only a reader knows.

    >>> guess_answer("Anna told Tom that she had left", 4, [0, 2])
    0
    """
    lang, words = language_of(text), _words(text)
    keys = _keys_of_pronoun(words[pronoun], lang)
    kinds = {place: _key_of_noun(words[place], lang) for place in candidates}
    fits = [place for place, kind in kinds.items() if kind in keys]
    if not fits and keys:
        fits = [place for place, kind in kinds.items() if kind is None]  # the others are known to be something else
    return fits[0] if len(fits) == 1 else None


def swap_pronoun(text: str, pronoun: int) -> str | None:
    """Return the text with its pronoun's gender or number turned, "he" for "she"; None for a word without a partner.

    >>> swap_pronoun("Anna told Tom that she had left", 4)
    'Anna told Tom that he had left'
    """
    spans, lang = split_words(text), language_of(text)
    start, end = spans[pronoun]
    word = text[start:end]
    pairs = [pair.split("/") for pair in _tables()[lang]["partners"].split()]
    table = {a: b for pair in reversed(pairs) for a, b in (pair[::-1], pair)}  # of several partners the first
    other = table.get(word.lower())
    follower = text[slice(*spans[pronoun + 1])].lower() if pronoun + 1 < len(spans) else ""
    if word.lower() == "her" and follower.isalpha() and follower not in _small_words(lang):
        other = "his"
    if other is None:
        return None
    return text[:start] + (other.capitalize() if word[0].isupper() else other) + text[end:]


def align_words(one: str, other: str) -> dict[int, int]:
    """Return which word of another text stands where a word of the first does.

    Texts of as many words are matched one by one; else words that are equal and stand in the same order, and as many
    words between those.

    >>> align_words("it is hot", "it is too hot")
    {0: 0, 1: 1, 2: 3}
    """
    first, second = _words(one), _words(other)
    if len(first) == len(second):
        return {place: place for place in range(len(first))}
    found: dict[int, int] = {}
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal" or b - a == d - c:
            found.update(zip(range(a, b), range(c, d), strict=True))
    return found


def changed_words(one: str, other: str) -> tuple[list[int], list[int]]:
    """Return which words of each text have no equal at the same place in the other.

    >>> changed_words("too tired", "too wide")
    ([1], [1])
    """
    pairs = align_words(one, other)
    first, second = _words(one), _words(other)
    same = {a: b for a, b in pairs.items() if first[a] == second[b]}
    kept = set(same.values())
    return [a for a in range(len(first)) if a not in same], [b for b in range(len(second)) if b not in kept]


def runs(words: Sequence[int]) -> list[tuple[int, ...]]:
    """Return words that stand side by side as one: a candidate of several words.

    >>> runs([0, 1, 4])
    [(0, 1), (4,)]
    """
    found: list[tuple[int, ...]] = []
    for word in sorted(set(words)):
        if found and found[-1][-1] == word - 1:
            found[-1] = (*found[-1], word)
        else:
            found.append((word,))
    return found


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(WORDS_FILE.read_text(encoding="utf-8"))


@cache
def _set(lang: str, kind: str) -> frozenset[str]:
    return frozenset(_tables()[lang][kind].split())


@cache
def _small_words(lang: str) -> frozenset[str]:
    return _set(lang, "pronouns") | _set(lang, "articles") | _set(lang, "others")


def _like_noun(word: str) -> bool:
    """Return True for a Swedish word in its definite form, which is what follows an article and an adjective."""
    return word.endswith(("en", "et", "an", "na", "or", "ar", "er", "arna", "a"))


def _is_candidate(words: list[str], place: int, lang: str) -> bool:
    word = words[place]
    if not word[0].isalpha() or word.lower() in _small_words(lang):
        return False
    if word[0].isupper() and (not _opens(words, place) or _key_of_noun(word, lang) is not None or lang == "de"):
        return True
    if _key_of_noun(word, lang) is not None:
        return True
    before = place - 1
    while before >= 0 and words[before].lower() in _set(lang, "adjectives"):
        before -= 1
    adjective = word.lower() in _set(lang, "adjectives")
    return before >= 0 and not adjective and words[before].lower() in _set(lang, "articles")


def _opens(words: list[str], place: int) -> bool:
    return place == 0 or words[place - 1] in '.!?:;“”"„«»'


@cache
def _nouns(lang: str) -> dict[str, str]:
    """Return lower-case noun -> key of the pronoun that stands for it, from the words that the items are made of."""
    table: dict[str, str] = {}
    for pairs in read_templates()["words"][lang].values():
        for written in (word for pair in pairs for word in pair):
            *forms, key = written.split("/")
            for form in forms:
                table.setdefault(form.split()[-1].lower(), key)
    return table


def _key_of_noun(word: str, lang: str) -> str | None:
    return _nouns(lang).get(word.lower())


def _keys_of_pronoun(word: str, lang: str) -> set[str]:
    """Return the keys in the word lists that a pronoun can stand for: {"he"} for "him"; none for other words."""
    groups = {
        "en": {
            "he": "he him his himself",
            "she": "she her hers herself",
            "it": "it its itself",
            "plural": "they them their theirs themselves",
        },
        "de": {"er": "er ihn ihm", "es": "es ihm", "sie": "sie ihr", "plural": "sie ihnen"},
        "sv": {
            "han": "han honom hans",
            "hon": "hon henne hennes",
            "den": "den",
            "det": "det",
            "plural": "de dem deras",
        },
    }[lang]
    return {key for key, forms in groups.items() if word.lower() in forms.split()}
