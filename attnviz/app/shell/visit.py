"""What the current visitor looks at: model, text, head and switches, checked against each other."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.app.shell import address as state
from attnviz.app.shell import cache
from attnviz.app.shell.address import run_again
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.passing import passing
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import ModelInfo
from attnviz.core.trace.switches import Forbidden, Switches
from attnviz.core.trace.trace import Trace

WHOLE_PAGE = "whole page"  # asked for by a callback inside a fragment


@dataclass(frozen=True)
class Visit:
    """Everything a page needs to draw.

    Attributes:
        choice: which model; `info`: what it is.
        text: the text that was run last.
        part, layer, head: what is selected.
        switches: as the visitor set them, `in_pass`: they act inside the whole pass, not on the picture alone.
        rest: the trace with switches at rest; `after`: the trace of the pass under the switches, the same object as
            `rest` if they act on the picture alone.
        theme: "light" or "dark".
    """

    choice: ModelChoice
    info: ModelInfo
    text: str
    part: str
    layer: int
    head: int
    switches: Switches
    in_pass: bool
    rest: Trace
    after: Trace
    theme: str

    @property
    def name(self) -> str:
        """The selected head's name, such as "L13 H8"."""
        return f"L{self.layer} H{self.head}"

    def head_of(self, trace: Trace) -> Head:
        """Return the selected head of a trace, such as that of another text."""
        return trace.head(self.layer, self.head, part=self.part)

    @property
    def head_before(self) -> Head:
        """The selected head without the switches."""
        return self.head_of(self.rest)

    @property
    def head_after(self) -> Head:
        """The selected head under the switches."""
        return self.head_of(self.after).under(self.picture)

    def head_in(self, view: str) -> Head:
        """Return the selected head as a view shows it: without the switches in "before", else with them."""
        return self.head_before if view == "before" else self.head_after

    @property
    def n_tokens(self) -> int:
        """How many tokens the longer side of the selected head's map has."""
        return max(len(side) for side in self.after.tokens_of(self.part))

    @property
    def switched(self) -> bool:
        """True if any switch is on."""
        return not self.switches.at_rest

    @property
    def own_mask(self) -> bool:
        """Whether the model itself lets no token see a later one, in the selected layer."""
        return self.rest.causal(self.layer, part=self.part)

    @property
    def scale(self) -> float | None:
        """The model's own factor in the selected layer, None if only its finished maps are known."""
        return None if "scores" in self.info.cannot else self.head_before.scale

    @property
    def picture(self) -> Switches | None:
        """What `Trace.weights` takes so that `after` shows the switches: None if its pass ran under them."""
        return None if self.in_pass else self.switches


def chosen_switches() -> Switches:
    """Return the switches as the visitor set them.

    Raises:
        ValueError: they contradict each other.
    """
    chosen = st.session_state
    off = chosen.temperature == "off"
    return Switches(
        causal={"own": None, "on": True, "off": False}[chosen.causal],
        scaled=not off,
        temperature=1.0 if off else float(chosen.temperature),
        ablate=frozenset(tuple(pair) for pair in chosen.off),
        forbid=frozenset(tuple(look) for look in chosen.forbid),
    )


def open_visit(choice: ModelChoice, info: ModelInfo) -> Visit:
    """Run what has to be run for the session's choices and return it, with progress on the page.

    Raises:
        ValueError: the text or the switches can't be run; the text of the error is for the visitor.
    """
    chosen = st.session_state
    for gone in ("visit", WHOLE_PAGE):
        chosen.pop(gone, None)
    rest = _run(choice, info, chosen.text, Switches())
    part = chosen.part or info.parts[0]
    _drop_impossible_looks(choice, rest, part)
    switches = chosen_switches()
    in_pass = chosen.acts == "pass" or bool(switches.ablate)
    if rest.n_cut:
        n_all = len(rest.tokens) + rest.n_cut
        state.note(f"Showing the first {len(rest.tokens):,} of {n_all:,} tokens; the rest was not read.")
    after = _run(choice, info, chosen.text, switches) if in_pass and not switches.at_rest else rest
    chosen.visit = Visit(
        choice=choice,
        info=info,
        text=chosen.text,
        part=part,
        layer=chosen.layer,
        head=chosen.head,
        switches=switches,
        in_pass=in_pass,
        rest=rest,
        after=after,
        theme=theme(),
    )
    return chosen.visit


def _drop_impossible_looks(choice: ModelChoice, rest: Trace, part: str) -> None:
    """Take out of the session the forbidden looks that this text can't have, and say why."""
    chosen = st.session_state
    looks, causal = tuple(tuple(look) for look in chosen.forbid), chosen_switches().causal
    if not looks:
        return
    key = ("looks", choice, rest.text, part, looks, causal)
    kept, reasons = cache.results().get(key, lambda: _possible_looks(rest, part, looks, causal))
    for reason in reasons:
        state.note(f"A look can't be forbidden: {reason}.")
    if reasons:
        chosen.forbid = kept


def _possible_looks(
    rest: Trace, part: str, looks: tuple[Forbidden, ...], causal: bool | None
) -> tuple[list[Forbidden], list[str]]:
    kept: list[Forbidden] = []
    reasons = []
    for look in looks:
        switches = Switches(causal, forbid=frozenset([*kept, look]))
        layer, head, query, _ = look
        row = slice(query, query + 1)
        try:
            for number in rest.layers_of(part) if layer is None else (layer,):
                for each in range(rest.heads(number, part=part)) if head is None else (head,):
                    rest.allowed(number, each, part=part, queries=row, switches=switches)
        except ValueError as error:
            reasons.append(str(error))
        else:
            kept.append(look)
    return kept, reasons


def current_visit() -> Visit:
    """Return the visit as it is after a click inside a fragment, which `app.py` didn't see.

    What was clicked may concern the rest of the page too (see `ask_whole_page`): then all of it runs again.
    """
    if st.session_state.pop(WHOLE_PAGE, False):
        run_again()
    state.mend()
    known: Visit = st.session_state.visit
    chosen = st.session_state
    same = (known.part, known.layer, known.head) == (chosen.part or known.info.parts[0], chosen.layer, chosen.head)
    return known if same else open_visit(known.choice, known.info)


def ask_whole_page() -> None:
    """Let a callback inside a fragment have the whole page run, because widgets outside it show what changed."""
    st.session_state[WHOLE_PAGE] = True


def choose_head(layer: int, head: int) -> None:
    """Select a head: for the buttons that name one."""
    st.session_state.layer, st.session_state.head = layer, head


def theme() -> str:
    """Return "light" or "dark" as the visitor's page looks now."""
    return st.session_state.get("theme") or st.context.theme.type or "light"


def _run(choice: ModelChoice, info: ModelInfo, text: str, switches: Switches) -> Trace:
    known = cache.traces().peek((choice, text, switches))
    if known is not None:
        return known
    with passing() as place:  # only now: it moves everything below it, which takes the keyboard's focus away

        def show(done: int, layers: int) -> None:
            place.progress(done / layers, f"Reading the text with {info.title}: layer {done} of {layers}")

        long_text = len(text) > 2000
        return cache.get_trace(choice, text, switches, on_layer=show if long_text else None, say=place.info)


def fit_selection(info: ModelInfo) -> None:
    """Keep part, layer, head and switches of the session inside what the model has, and say what had to change."""
    chosen = st.session_state
    if len(info.parts) == 1:
        chosen.part = ""
    elif chosen.part not in info.parts:
        chosen.part = info.parts[0]
    wanted = (chosen.layer, chosen.head)
    chosen.layer = min(info.layers, key=lambda layer: abs(layer - chosen.layer))
    chosen.head = min(max(chosen.head, 0), info.n_heads - 1)
    if (chosen.layer, chosen.head) != wanted:
        last = info.layers[-1]
        state.note(
            f"L{wanted[0]} H{wanted[1]} isn't there in {info.title} (layers {info.layers[0]} to {last}, "
            f"heads 0 to {info.n_heads - 1}), so L{chosen.layer} H{chosen.head} is shown."
        )
    heads_off = [(layer, head) for layer, head in chosen.off if layer in info.layers and head < info.n_heads]
    looks = [look for look in chosen.forbid if _fits(look, info)]
    if len(heads_off) < len(chosen.off) or len(looks) < len(chosen.forbid):
        state.note(f"Switches that name heads which {info.title} doesn't have were dropped.")
    chosen.off, chosen.forbid = heads_off, looks
    for name, at_rest in (("causal", "own"), ("temperature", "1"), ("off", []), ("forbid", [])):
        reason = switch_reason(info, name)
        if reason and getattr(chosen, name) != at_rest:
            chosen[name] = at_rest
            state.note(reason)
    if chosen.temperature == "off" and "scaled" in info.cannot:
        chosen.temperature = "1"
        state.note(info.cannot["scaled"])


def switch_reason(info: ModelInfo, name: str) -> str | None:
    """Return why a switch can't act on this model, or None if it can."""
    return info.cannot.get({"off": "ablate"}.get(name, name))


def _fits(look: tuple[Any, ...], info: ModelInfo) -> bool:
    layer, head, *_ = look
    return (layer is None or layer in info.layers) and (head is None or head < info.n_heads)
