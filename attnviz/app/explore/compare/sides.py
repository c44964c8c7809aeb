"""What Compare puts beside each other: A, the head on the page, and B, which differs from it in one thing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import attnviz
from attnviz.app.explore.sources import MOST_CELLS, PART, window
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, ask_whole_page
from attnviz.core.compare.side_by_side import same_tokens
from attnviz.core.export.head_files import about_trace
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures.theme import escape, shorten
from attnviz.models.load.catalogue import CATALOGUE

MOST_TEXT = 1500  # characters of B's text: a link carries it as it is
HEIGHT = 560  # px of a map
BOX = 160  # px of a box for a layer or a head
TITLE = 38  # characters of a title that stay on one line
TELLING = {("smollm2", 13, 8): (9, 3)}  # another head to begin with; elsewhere the next one of the layer
OWN_HEADS = {"smollm2": (13, 8), "minilm": (3, 1)}  # of another model; elsewhere the middle layer's first
FILLED_IN = "compare-filled-in"  # A's model and B's head as it was when the visitor hadn't chosen one
WITHOUT = "Heads off and forbidden looks belong to A's model, so B runs without them."


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two heads: `switches` act on the picture alone, None shows the pass as it ran."""

    letter: str
    name: str
    trace: Trace
    part: str
    layer: int
    head: int
    switches: Switches | None
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """What stands over the map."""
        return f"{self.letter}: {shorten(self.name, TITLE)}"

    @property
    def words(self) -> str:
        """What tells it apart from other sides, for names of files."""
        head, model = f"L{self.layer} H{self.head}", self.trace.model.title
        words = self.name if head in self.name else f"{head} {self.name}"
        return words if words.startswith(shorten(model, TITLE - len(head) - 1)) else f"{model} {words}"

    @property
    def of_text(self) -> bool:
        """True if the tokens that look are those of the visitor's text."""
        return self.part == self.trace.parts[0]

    @property
    def about(self) -> dict[str, Any]:
        """Where its numbers come from, for files."""
        said = about_trace(self.trace, version=attnviz.__version__, part=self.part, switches=self.switches)
        return said | {"layer": self.layer, "head": self.head}

    @property
    def at_rest(self) -> bool:
        """True if nothing is switched."""
        return (self.switches or self.trace.switches).at_rest

    @property
    def tokens(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens that look and those that are looked at."""
        return self.trace.tokens_of(self.part)

    def weights(self, queries: slice, keys: slice) -> NDArray[np.float32]:
        """Return (queries, keys) weights."""
        return self.trace.weights(
            self.layer, self.head, part=self.part, queries=queries, keys=keys, switches=self.switches
        )

    def allowed(self, queries: slice, keys: slice) -> NDArray[np.bool_]:
        """Return (queries, keys), True where the rule allows the look."""
        return self.trace.allowed(
            self.layer, self.head, part=self.part, queries=queries, keys=keys, switches=self.switches
        )


@dataclass(frozen=True, eq=False)
class Tile:
    """The part of a side's map that is drawn.

    Attributes:
        weights, allowed: (queries, keys).
        sink: (queries,) the share of each row's weight that goes to a learned sink.
    """

    side: Side
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    weights: NDArray[np.float32]
    allowed: NDArray[np.bool_]
    sink: NDArray[np.float64]

    @property
    def outside(self) -> float:
        """The share of these rows' weight that lies on tokens outside the tile."""
        return max(0.0, 1 - float(self.weights.sum(axis=1).mean() + self.sink.mean()))


def tiles(visit: Visit, a: Side, b: Side) -> tuple[Tile, Tile]:
    """Return the tokens of both that are drawn: all, or the same part of two long texts."""
    sides = [tokens for side in (a, b) for tokens in side.tokens]
    is_long = max(map(len, sides)) > MOST_CELLS
    start = window(visit).start
    return _tile(a, start, is_long), _tile(b, _same_place(a, b, start), is_long)


def _same_place(a: Side, b: Side, start: int) -> int:
    """Return where B's part begins: at A's token, or at its word if other tokens make up the same text."""
    tokens, there = a.tokens[0], b.tokens[0]
    one_text = a.of_text and b.of_text and a.trace.text == b.trace.text
    if not one_text or not 0 < start < len(tokens) or same_tokens(tokens, there):
        return start
    first = tokens[min(start, max(0, len(tokens) - PART))]
    return next((i for i, token in enumerate(there) if not token.special and token.end > first.start), len(there))


def _tile(side: Side, start: int, is_long: bool) -> Tile:
    rows, columns = (_part(tokens, start) if is_long else slice(0, len(tokens)) for tokens in side.tokens)
    queries, keys = side.tokens
    weights = side.weights(rows, slice(0, len(keys)))  # (rows, all keys)
    sink = np.maximum(0, 1 - weights.sum(axis=1, dtype=np.float64))
    return Tile(side, queries[rows], keys[columns], weights[:, columns], side.allowed(rows, columns), sink)


def _part(tokens: Sequence[Token], start: int) -> slice:
    start = min(start, max(0, len(tokens) - PART))
    return slice(start, min(start + PART, len(tokens)))


def side_a(visit: Visit, name: str) -> Side:
    """Return what is on the page."""
    return Side("A", name, visit.after, visit.part, visit.layer, visit.head, visit.picture)


def another_head(visit: Visit) -> tuple[Side, Side]:
    """Show boxes for layer and head of B, and return both sides."""
    heads = visit.after.heads(visit.layer, part=visit.part)
    own = (visit.choice.name, visit.layer, visit.head)
    _forget_default(visit)
    chosen = st.session_state
    is_free = chosen.b_layer is None and chosen.b_head is None
    _head_boxes(visit.after, visit.part, TELLING.get(own, (visit.layer, (visit.head + 1) % heads)))
    layer, head = chosen.b_layer, chosen.b_head
    if is_free:
        chosen[FILLED_IN] = (visit.choice.name, layer, head)
    b = Side("B", f"L{layer} H{head}", visit.after, visit.part, layer, head, visit.picture)
    return side_a(visit, visit.name), b


def another_text(visit: Visit) -> tuple[Side, Side] | None:
    """Show a box for B's text, and return both sides; None, with the reason on the page, without such a text.

    Raises:
        ValueError: it can't be run.
    """
    st.text_input(
        "B's text (Enter runs it)",
        key="b_text",
        persist_state="session",
        max_chars=MOST_TEXT,
        placeholder="The same sentence with another word in it",
    )
    text = str(st.session_state.b_text or "")
    if not text.strip() or text == visit.text:
        st.info(
            "Type a text to compare with the one above, or take a pair."
            if text != visit.text
            else "Both texts are the same: change a word of B's."
        )
        return None
    if len(text) > MOST_TEXT:
        raise ValueError(
            f"B's text may have {MOST_TEXT:,} characters, so that a link can carry it; it has {len(text):,}"
        )
    switches = replace(visit.switches, forbid=frozenset())
    trace = _read(visit.choice, text, switches if visit.in_pass else Switches())
    dropped = "Forbidden looks name tokens of A's text, so B runs without them."
    one, other = _excerpts(visit.text, text)
    b = Side("B", other, trace, visit.part, visit.layer, visit.head, None if visit.in_pass else switches)
    return side_a(visit, one), replace(b, notes=(*_cut_note(trace), *([dropped] if visit.switches.forbid else [])))


def another_model(visit: Visit) -> tuple[Side, Side]:
    """Show a picker for B's model and boxes for its head, and return both sides.

    Raises:
        ValueError: the model can't be loaded, or can't run the text or the switches.
    """
    chosen = st.session_state
    if not str(chosen.b_model or "").strip():
        chosen.b_model = "minilm" if visit.choice.name != "minilm" else "smollm2"
    titles = {name: entry.title for name, entry in CATALOGUE.items() if name != visit.choice.name}
    titles.setdefault(chosen.b_model, chosen.b_model)
    st.selectbox(
        "B's model",
        list(titles),
        key="b_model",
        persist_state="session",
        format_func=lambda name: titles.get(name, name),
        accept_new_options=True,
        on_change=forget_head,
        width=400,
        help="One of these, or type a Hugging Face id, a folder, or a .gguf file on this machine.",
    )
    switches = replace(visit.switches, ablate=frozenset(), forbid=frozenset())
    try:
        choice = replace(visit.choice, name=chosen.b_model, revision=None)
        trace = _read(choice, visit.text, switches if visit.in_pass else Switches())
    except ValueError as error:
        raise ValueError(f"{chosen.b_model}: {error}") from None
    part = trace.parts[0]
    layers = trace.layers_of(part)
    _head_boxes(trace, part, OWN_HEADS.get(chosen.b_model, (layers[len(layers) // 2], 0)))
    head = (chosen.b_layer, chosen.b_head)
    b = Side("B", _model_name(trace, head), trace, part, *head, None if visit.in_pass else switches)
    notes = (*_cut_note(trace), *([WITHOUT] if switches != visit.switches else []))
    return side_a(visit, _model_name(visit.rest, (visit.layer, visit.head))), replace(b, notes=notes)


def other_switches(visit: Visit) -> tuple[Side, Side]:
    """Return the head under the switches and at rest; with none on, B shows one of those that buttons offer.

    Raises:
        ValueError: none is on, and none can act on this model.
    """
    if visit.switched:
        scope = "whole pass" if visit.in_pass else "this picture"
        a = side_a(visit, f"{short_names(visit.switches)} ({scope})")
        return a, Side("B", "without switches", visit.rest, visit.part, visit.layer, visit.head, None)
    offers = _offers(visit)
    if not offers:
        raise ValueError(visit.info.cannot.get("scaled") or "no switch can act on this model")
    name, first, _ = offers[0]
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare-switches"):
        st.markdown("Set a switch in the sidebar, or here:", width="content")
        for number, (title, _, fields) in enumerate(offers):
            key = f"compare-switch-{number}"
            st.button(plain(title), key=key, type="tertiary", on_click=_set_switches, args=(fields,))
    note = f"No switch is on, so B shows one: {name}, on the same q and k."
    b = Side("B", name, visit.rest, visit.part, visit.layer, visit.head, first, (note,))
    return side_a(visit, "without switches"), b


def short_names(switches: Switches) -> str:
    """Return what is switched in a few words.

    >>> short_names(Switches(causal=False, temperature=2, ablate={(1, 2), (0, 3)}))
    'no mask, temperature 2, 2 heads off'
    """
    words = [] if switches.causal is None else ["mask on" if switches.causal else "no mask"]
    words += [] if switches.scaled else ["no 1/√d"]
    words += [] if switches.temperature == 1 else [f"temperature {switches.temperature:g}"]
    for entries, one, several in (
        (switches.ablate, "1 head off", "heads off"),
        (switches.forbid, "1 forbidden look", "forbidden looks"),
    ):
        words += [one if len(entries) == 1 else f"{len(entries)} {several}"] if entries else []
    return ", ".join(words)


def isolated(label: str) -> str:
    """Return a label that can't reorder the words around it: one from right to left is isolated, as in figures.

    >>> isolated("cat"), ascii(isolated("חתול")[0])
    ('cat', "'\\\\u2068'")
    """
    return f"\u2068{label}\u2069" if escape(label).startswith("\u2068") else label


def numbered(token: Token) -> str:
    """Return a token's label and number for a sentence."""
    return f"{isolated(token.label)} ({token.index})"


def forget_head() -> None:
    """Let B's head be the default again: another model or another kind of comparison has other heads."""
    st.session_state.b_layer = st.session_state.b_head = None


def _offers(visit: Visit) -> list[tuple[str, Switches, dict[str, object]]]:
    """Return (name, what the picture shows, what the sidebar is set to) of the switches that can act."""
    cannot = visit.info.cannot
    causal = visit.rest.causal(visit.layer, part=visit.part)
    mask = ("no mask", "off") if causal else ("mask on", "on")
    offers = [
        ("no 1/√d", Switches(scaled=False), {"temperature": "off"}, {"scaled", "temperature", "scores"}),
        (mask[0], Switches(causal=not causal), {"causal": mask[1]}, {"causal", "scores"}),
        ("temperature 2", Switches(temperature=2), {"temperature": "2"}, {"temperature", "scores"}),
        (f"{visit.name} off", Switches(), {"off": [(visit.layer, visit.head)]}, {"ablate"}),
    ]
    found = [(name, shown, fields) for name, shown, fields, needs in offers if not needs & cannot.keys()]
    return found if found and not found[0][1].at_rest else []


def _set_switches(fields: dict[str, object]) -> None:
    for name, value in fields.items():
        st.session_state[name] = value
    ask_whole_page()


def _forget_default(visit: Visit) -> None:
    """Let B's head be the default of A's new model, unless the visitor chose one."""
    model, *filled_in = st.session_state.get(FILLED_IN, (visit.choice.name, None, None))
    if model != visit.choice.name and filled_in == [st.session_state.b_layer, st.session_state.b_head]:
        forget_head()


def _cut_note(trace: Trace) -> tuple[str, ...]:
    n_read = len(trace.tokens)
    sentence = f"Showing the first {n_read:,} of {n_read + trace.n_cut:,} tokens of B; the rest was not read."
    return (sentence,) if trace.n_cut else ()


def _head_boxes(trace: Trace, part: str, default: tuple[int, int]) -> None:
    """Show boxes for B's layer and head, filled with the default, and kept inside what the model has."""
    chosen, layers = st.session_state, trace.layers_of(part)
    wanted = (
        default[0] if chosen.b_layer is None else chosen.b_layer,
        default[1] if chosen.b_head is None else chosen.b_head,
    )
    chosen.b_layer = min(layers, key=lambda layer: abs(layer - wanted[0]))
    last = trace.heads(chosen.b_layer, part=part) - 1
    chosen.b_head = min(wanted[1], last)
    with st.container(horizontal=True, key="compare-head"):
        if layers == tuple(range(layers[0], layers[-1] + 1)):
            ends = (layers[0], layers[-1])
            st.number_input("B's layer", *ends, step=1, key="b_layer", persist_state="session", width=BOX)
        else:
            st.selectbox("B's layer", layers, key="b_layer", persist_state="session", width=BOX)
        st.number_input("B's head", 0, last, step=1, key="b_head", persist_state="session", width=BOX)
    if (chosen.b_layer, chosen.b_head) != wanted:
        st.caption(
            plain(
                f"L{wanted[0]} H{wanted[1]} isn't there in {trace.model.title} (layers {layers[0]} to {layers[-1]}, "
                f"heads 0 to {last}), so L{chosen.b_layer} H{chosen.b_head} is shown."
            )
        )


def _read(choice: ModelChoice, text: str, switches: Switches) -> Trace:
    """Return B's trace, with what is done for it on the page while it lasts."""
    known = cache.traces().peek((choice, text, switches))
    if known is not None:
        return known
    place = st.empty()
    try:
        with place.status(plain(f"Loading {choice.name}")) as status:

            def say(sentence: str) -> None:
                status.update(label=plain(sentence))

            def show(done: int, of: int) -> None:
                say(f"Reading B's text with {info.title}: layer {done} of {of}")

            info = cache.get_engine(choice, say).info
            say(f"Reading B's text with {info.title}")
            return cache.get_trace(choice, text, switches, on_layer=show if len(text) > 2000 else None, say=say)
    finally:
        place.empty()


def _model_name(trace: Trace, head: tuple[int, int]) -> str:
    name = f" L{head[0]} H{head[1]}"
    return shorten(trace.model.title, TITLE - len(name)) + name


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Return both texts cut to where they begin to differ.

    >>> _excerpts("It was too tired.", "It was too wide.")
    ('“It was too tired.”', '“It was too wide.”')
    """
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    room = TITLE - 4  # for the marks and the dots
    start = 0 if first < room // 2 else one.rfind(" ", 0, first - room // 3) + 1
    return tuple(
        f"“{'…' * (start > 0)}{text[start : start + room].strip()}{'…' * (len(text) > start + room)}”"
        for text in (one, other)
    )
