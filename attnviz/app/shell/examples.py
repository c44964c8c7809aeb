"""The example texts, from `examples.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from attnviz.core.trace.maps import Maps

FILE = resources.files("attnviz.app.shell") / "examples.toml"


@dataclass(frozen=True)
class Example:
    """A text whose picture is striking.

    Attributes:
        name: short, unique; `language`: in its own name; `title`: on the button; `text`: the whole text.
        model, layer, head: what to look at.
        query, key: words of the text, the cell to point at: the query's last occurrence, and of the key the one that
            `key_at` counts from 0; of a word its last token.
        caption: one or two sentences; `{weight}` becomes the cell's weight as worked out on the spot.
    """

    name: str
    language: str
    title: str
    text: str
    model: str
    layer: int
    head: int
    query: str
    key: str
    caption: str
    key_at: int = 0

    def cell(self, trace: Maps) -> tuple[int, int]:
        """Return (query, key) as token positions.

        Raises:
            ValueError: a word isn't in the text.
        """
        return word_token(trace, self.query, -1), word_token(trace, self.key, self.key_at)

    def weight(self, trace: Maps) -> float:
        """Return the weight of the cell that the example points at."""
        query, key = self.cell(trace)
        return float(trace.weights(self.layer, self.head)[query, key])


def word_token(trace: Maps, word: str, occurrence: int) -> int:
    """Return the position of the last token of an occurrence of a word in the traced text.

    Raises:
        ValueError: the word isn't there so often.
    """
    starts = [i for i in range(len(trace.text)) if trace.text.startswith(word, i)]
    try:
        end = starts[occurrence] + len(word)
    except IndexError:
        often = f" {occurrence + 1} times" if starts and occurrence > 0 else ""
        raise ValueError(f"“{word}” isn't in the text{often}") from None
    found = [token.index for token in trace.tokens if token.start < end <= token.end]
    if not found:
        raise ValueError(f"the model doesn't see “{word}” there: the text is too long for it, and was cut")
    return found[-1]


@cache
def all_examples() -> tuple[Example, ...]:
    """Return all examples in the order of the file."""
    return tuple(Example(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["example"])


def languages() -> tuple[str, ...]:
    """Return the languages in the order of the file."""
    return tuple(dict.fromkeys(example.language for example in all_examples()))


def examples(language: str) -> tuple[Example, ...]:
    """Return the examples of a language."""
    return tuple(example for example in all_examples() if example.language == language)


def example_of(text: str, model: str, layer: int, head: int) -> Example | None:
    """Return the example that is on the screen, if any: same text, model and head."""
    shown = (text, model, layer, head)
    return next((e for e in all_examples() if (e.text, e.model, e.layer, e.head) == shown), None)
