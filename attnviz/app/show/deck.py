"""Decks for talks: scenes of one picture each, read from TOML and written back. Standard library only.

Not with pydantic: it would be no shorter, since each kind of its errors needs a sentence of ours all the same.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from string import Formatter
from typing import Any, Literal

from attnviz.core.trace.switches import Switches

__all__ = ["PICTURES", "Deck", "Scene", "deck_text", "fill_caption", "read_deck"]

PICTURES = {
    "map": "one head's map",
    "before_after": "its map before and after the switches, side by side",
    "row": "one query's row as bars",
    "rows": "one query's row in two heads, side by side",
    "products": "the products behind one score",
    "words": "the probabilities of two next words, before and after the switches",
    "next": "the likeliest next tokens, before and after the switches",
    "saturation": "the largest weight of every row of every head, with and without the factor",
    "cost": "what a layer's parts cost, over the length of the text",
    "step_cost": "what one more token costs, with the KV cache and without",
    "scores_memory": "what score matrices take, over the length of the text",
    "link": "an address as a QR code",
}
MOST_SCENES = 100
PRECISIONS = ("float32", "bfloat16", "float16")
ENGINES = ("torch", "numpy")
LONGEST_LINK = 1000  # characters: more would be a QR code too fine to read from a seat
TEXTS = (
    "title", "caption", "text", "model", "query", "key", "word", "rival", "question", "notes", "sizes_of", "link",
)  # fmt: skip
SPEC = re.compile(r"[+,]{0,2}(\.\d{1,2})?[a-zA-Z%]?")  # how a number may be written: a width would let it fill memory


@dataclass(frozen=True)
class Scene:
    """One picture of a talk.

    Attributes:
        title: above the picture; `caption`: below it, `{names}` become numbers worked out from the picture.
        picture: one of PICTURES.
        text: what the model reads; `model`: by its name, in which `precision`, computed by which `engine`.
        layer, head: what to look at; `other`: (layer, head) of a second head, for "rows".
        query, key: words of the text, the cell to point at.
        query_at, key_at: which occurrence of the word, from 0; None: the query's last, the key's first. Without a word
            it is the token's position in the text.
        word, rival: two next words whose logits are compared, {lead} and {lead_after} in the caption.
        last: how many tokens of the text's end to show; 0: as many as fit.
        switches: what is switched in "before_after" and "next"; `whole_pass`: they act in every layer.
        sizes_of: a published model whose cost is drawn; `sizes`: (width, heads, heads that share a key/value head,
            layers) of a model of one's own instead; neither: what the picture takes by itself.
        tokens: the length that the caption of a cost speaks of, 0: the picture's own; `number_bytes`: of each score.
        link: the address of a "link", http or https.
        question: asked first, the picture comes at the next key; `notes`: for the speaker; `minutes`: to spend.
    """

    title: str
    caption: str
    picture: str = "map"
    text: str = ""
    model: str = "smollm2"
    precision: str = "float32"
    engine: Literal["torch", "numpy"] = "torch"
    layer: int = 0
    head: int = 0
    other: tuple[int, int] | None = None
    query: str = ""
    query_at: int | None = None
    key: str = ""
    key_at: int | None = None
    word: str = ""
    rival: str = ""
    last: int = 0
    switches: Switches = Switches()
    whole_pass: bool = True
    sizes_of: str = ""
    sizes: tuple[int, int, int, int] | None = None
    tokens: int = 0
    number_bytes: int = 2
    link: str = ""
    question: str = ""
    notes: str = ""
    minutes: float = 1.0


@dataclass(frozen=True)
class Deck:
    """A talk: its title and its scenes in order."""

    title: str
    scenes: tuple[Scene, ...] = field(default=())

    @property
    def minutes(self) -> float:
        """What all scenes take together."""
        return sum(scene.minutes for scene in self.scenes)


def read_deck(text: str) -> Deck:
    r"""Read a deck from TOML: a `title`, and a table `[[scene]]` for each scene with the attributes of `Scene`.

    Switches stand in the scene as `causal` ("on" or "off"), `scaled`, `temperature`, `off` (a list of [layer, head])
    and `forbid` (a list of [layer, head, query, key], "all" for every layer or head).

    Raises:
        ValueError: it isn't TOML, or a scene lacks something or holds what a scene hasn't; the scene is named.

    >>> read_deck('title = "A"\n[[scene]]\ntitle = "B"\ncaption = "C"\ntext = "it"').scenes[0].picture
    'map'
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"this isn't a deck: {error}") from error
    except RecursionError as error:
        raise ValueError("this isn't a deck: lists inside lists, too deep to read") from error
    entries = content.get("scene", [])
    if not isinstance(entries, list) or not 1 <= len(entries) <= MOST_SCENES:
        raise ValueError(f"a deck has 1 to {MOST_SCENES} scenes, each under [[scene]]")
    scenes = []
    for number, entry in enumerate(entries, 1):
        try:
            scenes.append(_scene(entry))
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"scene {number}: {error}") from error
    return Deck(str(content.get("title", "A talk")), tuple(scenes))


def deck_text(deck: Deck) -> str:
    """Return the TOML of a deck, which `read_deck` reads back to the same.

    >>> deck = Deck("A", (Scene("B", "C", text='say "it"', switches=Switches(causal=False)),))
    >>> read_deck(deck_text(deck)) == deck
    True
    """
    lines = [f"title = {_toml(deck.title)}"]
    plain = Scene("", "")
    for scene in deck.scenes:
        lines += ["", "[[scene]]", f"title = {_toml(scene.title)}"]
        for entry in fields(Scene)[1:]:
            value = getattr(scene, entry.name)
            if entry.name == "switches":
                lines += [f"{name} = {_toml(value)}" for name, value in _switches(value).items()]
            elif entry.name in _written_always(scene) or value != getattr(plain, entry.name):
                lines.append(f"{entry.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _written_always(scene: Scene) -> tuple[str, ...]:
    """Return what is written even where it is as usual, so that a speaker finds the line to change."""
    return ("caption", "picture", "layer", "head") if scene.text else ("caption",)


def fill_caption(caption: str, numbers: Mapping[str, Any]) -> str:
    """Return a caption with numbers in the place of `{names}`; a name stands alone, nothing inside it can be reached.

    Raises:
        ValueError: it names what isn't there, or in a way that can't be written.

    >>> fill_caption("{weight:.2f} of it", {"weight": 0.815})
    '0.81 of it'
    """
    return _Captions().vformat(caption, (), numbers)


class _Captions(Formatter):
    """Unlike `str.format`, without attributes, entries, conversions and widths: a deck may come from a stranger."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if field_name not in kwargs:
            raise ValueError(f"there is no {{{field_name}}} in this picture, only {', '.join(kwargs) or 'no number'}")
        return kwargs[field_name], field_name

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion is not None:
            raise ValueError(f"“!{conversion}” can't stand behind a name")
        return value

    def format_field(self, value: Any, format_spec: str) -> Any:
        if not SPEC.fullmatch(format_spec):
            raise ValueError(f"“:{format_spec}” is no way to write a number here; expected one like “:.2f”")
        return format(value, format_spec)


def _scene(entry: Any) -> Scene:
    if not isinstance(entry, Mapping):
        raise ValueError("expected a table of settings")
    values = dict(entry)
    switches = _read_switches(values)
    known = [entry.name for entry in fields(Scene) if entry.name != "switches"]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"a scene has no {', '.join(unknown)}; it has {', '.join(known)}")
    for name in ("title", "caption"):
        if name not in values:
            raise ValueError(f"a scene needs a {name}")
    for name in set(TEXTS) & set(values):
        if not isinstance(values[name], str):
            raise ValueError(f"{name} must be a text, got {values[name]!r}")
    for name, options in (("picture", tuple(PICTURES)), ("precision", PRECISIONS), ("engine", ENGINES)):
        _one_of(name, values.get(name, options[0]), options)
    for name in {"layer", "head", "last", "query_at", "key_at", "tokens"} & set(values):
        _whole(name, values[name], 0)
    for name, size in (("other", 2), ("sizes", 4)):
        if name in values:
            values[name] = _wholes(name, values[name], size, 0 if name == "other" else 1)
    _one_of("number_bytes", values.get("number_bytes", 2), (2, 4))
    _tick("whole_pass", values.get("whole_pass", True))
    _check_minutes(values.get("minutes", 1.0))
    _check_link(values)
    return Scene(**values, switches=switches)


def _read_switches(values: dict[str, Any]) -> Switches:
    """Take the switches out of a scene's settings."""
    causal = values.pop("causal", "own")
    _one_of("causal", causal, ("own", "on", "off"))
    return Switches(
        causal={"own": None, "on": True, "off": False}[causal],
        scaled=_tick("scaled", values.pop("scaled", True)),
        temperature=float(values.pop("temperature", 1.0)),
        ablate=frozenset((int(layer), int(head)) for layer, head in values.pop("off", [])),
        forbid=frozenset(
            (_all(layer), _all(head), int(query), int(key)) for layer, head, query, key in values.pop("forbid", [])
        ),
    )


def _one_of(name: str, value: Any, options: tuple[Any, ...]) -> None:
    if isinstance(value, bool) or value not in options:
        raise ValueError(f"{name} is one of {', '.join(map(str, options))}; got {value!r}")


def _whole(name: str, value: Any, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"{name} must be a whole number from {lowest}, got {value!r}")


def _wholes(name: str, value: Any, size: int, lowest: int) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) != size:
        raise ValueError(f"{name} must be a list of {size} numbers, got {value!r}")
    for number in value:
        _whole(f"each number of {name}", number, lowest)
    return tuple(value)


def _check_link(values: Mapping[str, Any]) -> None:
    link = values.get("link", "")
    if link and not re.fullmatch(r"https?://[^\s/]\S*", link):
        raise ValueError(f"link must be an address that begins with http:// or https://, got {link!r}")
    if len(link) > LONGEST_LINK:
        raise ValueError(f"link must have at most {LONGEST_LINK:,} characters, got {len(link):,}")
    if values.get("picture") == "link" and not link:
        raise ValueError("the picture “link” needs a link")


def _tick(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")
    return value


def _check_minutes(value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"minutes must be a number from 0, got {value!r}")


def _all(value: Any) -> int | None:
    return None if value == "all" else int(value)


def _switches(switches: Switches) -> dict[str, Any]:
    rest = Switches()
    found: dict[str, Any] = {}
    if switches.causal is not None:
        found["causal"] = "on" if switches.causal else "off"
    if not switches.scaled:
        found["scaled"] = False
    if switches.temperature != rest.temperature:
        found["temperature"] = switches.temperature
    if switches.ablate:
        found["off"] = [list(pair) for pair in sorted(switches.ablate)]
    if switches.forbid:
        looks = sorted(switches.forbid, key=str)
        found["forbid"] = [["all" if part is None else part for part in look] for look in looks]
    return found


def _toml(value: Any) -> str:
    """Return a value as TOML, whose strings, numbers and lists are written as JSON's are."""
    if isinstance(value, tuple):
        value = list(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it as it is, JSON doesn't
