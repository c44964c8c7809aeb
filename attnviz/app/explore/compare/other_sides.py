"""A, the head on the page, and B, which differs from it in one thing: head, text, model or switches."""

from dataclasses import replace

import streamlit as st

from attnviz.app.explore.compare.sides import TITLE, Side, short_names
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import Visit, ask_whole_page
from attnviz.core.trace.head import Head
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.figures.theme import shorten
from attnviz.models.load.catalogue import CATALOGUE

MOST_TEXT = 1500  # characters of B's text: a link carries it as it is
BOX = 160  # px of a box for a layer or a head
TELLING = {("smollm2", 13, 8): (9, 3)}  # another head to begin with; elsewhere the next one of the layer
OWN_HEADS = {"smollm2": (13, 8), "minilm": (3, 1)}  # of another model; elsewhere the middle layer's first
FILLED_IN = "compare-filled-in"  # A's model and B's head as it was when the visitor hadn't chosen one
WITHOUT = "Heads off and forbidden looks belong to A's model, so B runs without them."
DROPPED = "Forbidden looks name tokens of A's text, so B runs without them."

Offer = tuple[str, Switches, dict[str, object]]
"""A switch's name, what the picture shows, and what the sidebar is set to."""


def another_head(visit: Visit) -> tuple[Side, Side]:
    """Show boxes for layer and head of B, and return both sides."""
    heads = visit.after.heads(visit.layer, part=visit.part)
    own = (visit.choice.name, visit.layer, visit.head)
    _forget_default(visit)
    chosen = st.session_state
    is_free = chosen.b_layer is None and chosen.b_head is None
    place = _head_boxes(visit.after, visit.part, TELLING.get(own, (visit.layer, (visit.head + 1) % heads)))
    head = visit.after.head(*place, part=visit.part, switches=visit.picture)
    if is_free:
        chosen[FILLED_IN] = (visit.choice.name, head.layer, head.head)
    return Side("A", visit.name, visit.head_after), Side("B", head.name, head)


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
    if text == visit.text:
        st.info("Both texts are the same: change a word of B's.")
    elif not text.strip():
        st.info("Type a text to compare with the one above, or take a pair.")
    elif len(text) > MOST_TEXT:
        raise ValueError(
            f"B's text may have {MOST_TEXT:,} characters, so that a link can carry it; it has {len(text):,}"
        )
    else:
        return _two_texts(visit, text)
    return None


def _two_texts(visit: Visit, text: str) -> tuple[Side, Side]:
    switches = replace(visit.switches, forbid=frozenset())
    trace = _read(visit.choice, text, switches if visit.in_pass else Switches())
    one, other = _excerpts(visit.text, text)
    head = visit.head_of(trace).under(None if visit.in_pass else switches)
    notes = (*_cut_note(trace), *([DROPPED] if visit.switches.forbid else []))
    return Side("A", one, visit.head_after), Side("B", other, head, notes)


def another_model(visit: Visit) -> tuple[Side, Side]:
    """Show a picker for B's model and boxes for its head, and return both sides.

    Raises:
        ValueError: the model can't be loaded, or can't run the text or the switches.
    """
    name = _model_box(visit.choice.name)
    switches = replace(visit.switches, ablate=frozenset(), forbid=frozenset())
    try:
        choice = replace(visit.choice, name=name, revision=None)
        trace = _read(choice, visit.text, switches if visit.in_pass else Switches())
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    part = trace.parts[0]
    layers = trace.layers_of(part)
    place = _head_boxes(trace, part, OWN_HEADS.get(name, (layers[len(layers) // 2], 0)))
    head = trace.head(*place, part=part, switches=None if visit.in_pass else switches)
    notes = (*_cut_note(trace), *([WITHOUT] if switches != visit.switches else []))
    return _by_model(visit.head_after, "A"), replace(_by_model(head, "B"), notes=notes)


def _model_box(own: str) -> str:
    """Show a picker for B's model, and return its name."""
    chosen = st.session_state
    if not str(chosen.b_model or "").strip():
        chosen.b_model = "minilm" if own != "minilm" else "smollm2"
    titles = {name: entry.title for name, entry in CATALOGUE.items() if name != own}
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
    return str(chosen.b_model)


def other_switches(visit: Visit) -> tuple[Side, Side]:
    """Return the head under the switches and at rest; with none on, B shows one of those that buttons offer.

    Raises:
        ValueError: none is on, and none can act on this model.
    """
    if visit.switched:
        scope = "whole pass" if visit.in_pass else "this picture"
        a = Side("A", f"{short_names(visit.switches)} ({scope})", visit.head_after)
        return a, Side("B", "without switches", visit.head_before)
    offers = _offers(visit)
    if not offers:
        raise ValueError(visit.info.cannot.get("scaled") or "no switch can act on this model")
    _offer(offers)
    name, first, _ = offers[0]
    note = f"No switch is on, so B shows one: {name}, on the same q and k."
    b = Side("B", name, visit.head_before.under(first), (note,))
    return Side("A", "without switches", visit.head_after), b


def _offer(offers: list[Offer]) -> None:
    """Show a button for each of the switches that can act."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare-switches"):
        st.markdown("Set a switch in the sidebar, or here:", width="content")
        for number, (title, _, fields) in enumerate(offers):
            key = f"compare-switch-{number}"
            st.button(plain(title), key=key, type="tertiary", on_click=_set_switches, args=(fields,))


def forget_head() -> None:
    """Let B's head be the default again: another model or another kind of comparison has other heads."""
    st.session_state.b_layer = st.session_state.b_head = None


def _offers(visit: Visit) -> list[Offer]:
    """Return (name, what the picture shows, what the sidebar is set to) of the switches that can act."""
    cannot = visit.info.cannot
    causal = visit.head_before.causal
    mask = ("no mask", "off") if causal else ("mask on", "on")
    offers: list[tuple[str, Switches, dict[str, object], set[str]]] = [
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


def _head_boxes(trace: Trace, part: str, default: tuple[int, int]) -> tuple[int, int]:
    """Show boxes for B's layer and head, filled with the default and kept inside what the model has; return both."""
    chosen, layers = st.session_state, trace.layers_of(part)
    wanted = (
        default[0] if chosen.b_layer is None else chosen.b_layer,
        default[1] if chosen.b_head is None else chosen.b_head,
    )
    layer = min(layers, key=lambda layer: abs(layer - wanted[0]))
    last = trace.heads(layer, part=part) - 1
    found = chosen.b_layer, chosen.b_head = layer, min(wanted[1], last)
    with st.container(horizontal=True, key="compare-head"):
        _layer_box(layers)
        st.number_input("B's head", 0, last, step=1, key="b_head", persist_state="session", width=BOX)
    if found != wanted:
        st.caption(
            plain(
                f"L{wanted[0]} H{wanted[1]} isn't there in {trace.model.title} (layers {layers[0]} to {layers[-1]}, "
                f"heads 0 to {last}), so L{found[0]} H{found[1]} is shown."
            )
        )
    return found


def _layer_box(layers: tuple[int, ...]) -> None:
    first, last = layers[0], layers[-1]
    if layers == tuple(range(first, last + 1)):
        st.number_input("B's layer", first, last, step=1, key="b_layer", persist_state="session", width=BOX)
    else:
        st.selectbox("B's layer", layers, key="b_layer", persist_state="session", width=BOX)


def _read(choice: ModelChoice, text: str, switches: Switches) -> Trace:
    """Return B's trace, with what is done for it on the page while it lasts."""
    known = cache.traces().peek((choice, text, switches))
    if known is not None:
        return known
    with passing() as place, place.status(plain(f"Loading {choice.name}")) as status:

        def say(sentence: str) -> None:
            status.update(label=plain(sentence))

        def show(done: int, of: int) -> None:
            say(f"Reading B's text with {info.title}: layer {done} of {of}")

        info = cache.get_engine(choice, say).info
        say(f"Reading B's text with {info.title}")
        return cache.get_trace(choice, text, switches, on_layer=show if len(text) > 2000 else None, say=say)


def _by_model(head: Head, letter: str) -> Side:
    """Return a side that is called by its model."""
    name = f" {head.name}"
    return Side(letter, shorten(head.trace.model.title, TITLE - len(name)) + name, head)


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Return both texts cut to where they begin to differ.

    >>> _excerpts("It was too tired.", "It was too wide.")
    ('“It was too tired.”', '“It was too wide.”')
    """
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    room = TITLE - 4  # for the marks and the dots
    start = 0 if first < room // 2 else one.rfind(" ", 0, first - room // 3) + 1
    one, other = (
        f"“{'…' * (start > 0)}{text[start : start + room].strip()}{'…' * (len(text) > start + room)}”"
        for text in (one, other)
    )
    return one, other
