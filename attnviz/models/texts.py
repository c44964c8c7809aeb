"""What every engine asks of a text and of the switches before it runs, and how it cuts what is too long."""

import unicodedata
from dataclasses import replace

from attnviz.core import arguments
from attnviz.core.trace.records import ModelInfo, Token
from attnviz.core.trace.switches import Switches

NEVER_SCALES = "This architecture never divides its scores by the root of d, so there is no factor to drop."


def check_text(text: str) -> None:
    """Raise ValueError unless the text has a visible character.

    >>> check_text("it")
    """
    if not any(unicodedata.category(letter)[0] not in "ZC" for letter in arguments.text("text", text)):
        raise ValueError("there is no visible character in the text; type a sentence")


def check_ablate(switches: Switches, info: ModelInfo) -> None:
    """Raise ValueError if a head that is to be switched off isn't there."""
    for layer, head in switches.ablate:
        if layer not in info.layers or not 0 <= head < info.n_heads:
            raise ValueError(f"there is no L{layer} H{head} in {info.title}")


def cut(tokens: tuple[Token, ...], limit: int) -> tuple[tuple[Token, ...], int]:
    """Return at most `limit` tokens and how many were cut; special tokens that the tokenizer put last stay."""
    if len(tokens) <= limit:
        return tokens, 0
    n_tail = 0
    while n_tail < len(tokens) and tokens[-1 - n_tail].special and tokens[-1 - n_tail].text == "":
        n_tail += 1
    kept = (*tokens[: limit - n_tail], *tokens[len(tokens) - n_tail :])
    return tuple(replace(token, index=i) for i, token in enumerate(kept)), len(tokens) - limit


def first_line(error: BaseException | None) -> str:
    r"""Return what an error says in one line of at most 200 letters, or what kind of error it is.

    >>> first_line(ValueError("too large\nsee the manual")), first_line(KeyError())
    ('too large', 'KeyError')
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]
