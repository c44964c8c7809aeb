"""The words by which a scene names a cell, and the tokens that they lead to."""

from attnviz.app.shell.examples import word_token
from attnviz.core.pronouns.token_places import tokens_of_span
from attnviz.core.text.words import split_words
from attnviz.core.trace.records import Token
from attnviz.core.trace.trace import Trace

LONGEST = 60  # characters of a name made for a token


def word_place(trace: Trace, word: str, occurrence: int) -> int:
    """Return the last token of an occurrence of a word; of a part of a word where no whole one is like it.

    Raises:
        ValueError: it isn't there so often, or was cut off.
    """
    spans = [span for span in split_words(trace.text) if trace.text[slice(*span)] == word]
    if not spans:
        return word_token(trace, word, occurrence)
    if occurrence >= len(spans):
        times = "once" if len(spans) == 1 else f"{len(spans)} times"
        raise ValueError(f"“{word}” is in the text {times}, so occurrence {occurrence}, counted from 0, isn't there")
    tokens = tokens_of_span(trace.tokens, spans[occurrence])
    if not tokens:
        raise ValueError(f"the model doesn't see “{word}” there: the text is too long for it, and was cut")
    return tokens[-1]


def place(trace: Trace, word: str, at: int | None, *, by_itself: int) -> int | None:
    """Return the token that a scene's word and occurrence name; None if it names nothing.

    Args:
        trace: of the scene's text.
        word: of the text; "" with an `at`: that token.
        at: which occurrence, from 0; None: `by_itself`, 0 for the first one and -1 for the last.

    Raises:
        ValueError: there is no such word or token.
    """
    if word:
        return word_place(trace, word, by_itself if at is None else at)
    if at is not None and at >= len(trace.tokens):
        raise ValueError(f"the text has {len(trace.tokens)} tokens, so there is no token {at}, counted from 0")
    return at


def name_token(trace: Trace, token: int, *, by_itself: int) -> tuple[str, int | None]:
    """Return the word and the occurrence by which `place` finds a token again: as little as names it.

    A token that its own text can't name, such as one of several tokens of one letter, goes by its position.
    """
    word = trace.tokens[token].text.strip()
    for at in (None, *range(trace.text.count(word))) if word and len(word) <= LONGEST else ():
        try:
            if place(trace, word, at, by_itself=by_itself) == token:
                return word, at
        except ValueError:
            break
    return "", token


def pieces(
    trace: Trace, query: int | None, key: int | None, queries_word: str, keys_word: str
) -> list[tuple[str, str]]:
    """Return a text in pieces (text, role), with the words of a query and a key under the roles "query" and "key".

    Args:
        trace: of the text.
        query, key: their tokens; None: none to mark.
        queries_word, keys_word: the words that end with these tokens; "": the tokens alone.
    """
    spans = []
    for token, word, role in ((key, keys_word, "key"), (query, queries_word, "query")):
        if token is not None:
            spans.append((*_span(trace.tokens[token], word), role))
    found, done = [], 0
    for start, end, role in sorted(spans):
        if start >= done and end > start:
            found += [(trace.text[done:start], ""), (trace.text[start:end], role)]
            done = end
    found.append((trace.text[done:], ""))
    return [(text.replace("\n", " "), role) for text, role in found if text]


def _span(token: Token, word: str) -> tuple[int, int]:
    """Return where the word lies that ends with a token: from its first visible letter on."""
    start = token.start + len(token.text) - len(token.text.lstrip()) if not word else token.end - len(word)
    return max(0, start), token.end
