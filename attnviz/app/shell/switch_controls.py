"""The switches beside a page: mask, scaling and temperature, heads off, forbidden looks, and what they act on."""

import streamlit as st

from attnviz.app.shell.controls import rest
from attnviz.app.shell.fields import SHARED
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, switch_reason
from attnviz.core.trace.records import ModelInfo

TEMPERATURES = ("0.25", "0.5", "1", "2", "4", "8")


def switches(info: ModelInfo, visit: Visit | None) -> None:
    """Show the switches; one that can't act on this model is disabled and says why."""
    reasons = {name: switch_reason(info, name) for name in ("causal", "temperature", "off", "forbid")}
    scale = None if visit is None else visit.scale
    _mask(bool(info.causal) if visit is None else visit.own_mask, reasons["causal"])
    _divided(info, scale, reasons["temperature"])
    _temperature(info, scale, reasons["temperature"])
    _heads_off(info, reasons["off"])
    if st.session_state.forbid:
        st.pills(
            "Forbidden looks (click to allow again)",
            [SHARED["forbid"].write([look]) for look in st.session_state.forbid],
            format_func=_name_look,
            key="allow-again",
            on_change=_allow_again,
        )
    st.segmented_control(
        "Switches act on",
        ["picture", "pass"],
        key="acts",
        required=True,
        format_func={"picture": "this picture", "pass": "the whole pass"}.get,
        help="This picture: the same q and k, weights worked out anew. The whole pass: every layer computes under the "
        "switches, so later q and k and the predictions change too. A head off acts on the whole pass only.",
    )
    at_rest = all(st.session_state[name] == SHARED[name].default for name in ("causal", "temperature", "off", "forbid"))
    st.button("All switches at rest", on_click=rest, disabled=at_rest, width="stretch")


def _mask(own: bool, reason: str | None) -> None:
    """One switch for the causal mask, which says what the model's own rule is."""
    st.session_state.mask = {"own": own, "on": True, "off": False}[st.session_state.causal]
    st.toggle(
        f"Causal mask (own: {'on' if own else 'off'})",
        key="mask",
        on_change=_set_mask,
        args=(own,),
        disabled=bool(reason),
        help=reason or "On: no token sees a later one. Off: it may; the past side of a sliding window stays as it is.",
    )


def _set_mask(own: bool) -> None:
    on = st.session_state.mask
    st.session_state.causal = "own" if on == own else "on" if on else "off"


def _divided(info: ModelInfo, scale: float | None, reason: str | None) -> None:
    """A switch for the factor 1/√d: off, the temperature stands at its mark."""
    never = info.cannot.get("scaled")
    st.session_state.divided = not never and st.session_state.temperature != "off"
    st.toggle(
        "÷ √d" if never or not scale else f"÷ √d (scores × {_ratio(scale)})",
        key="divided",
        on_change=_set_divided,
        disabled=bool(reason or never or not scale),
        help=reason or never or "Off: the scores go into the softmax as they are, larger by √d.",
    )


def _set_divided() -> None:
    st.session_state.temperature = "1" if st.session_state.divided else "off"


def _temperature(info: ModelInfo, scale: float | None, reason: str | None) -> None:
    """The same control for scaling and temperature: no factor is the same as a temperature as large as the factor."""
    without = info.cannot.get("scaled")
    values = {text: float(text) for text in TEMPERATURES}
    if scale is not None and not without:
        values["off"] = scale
    chosen = st.session_state.temperature
    if chosen == "off" and "off" not in values:
        st.session_state.temperature = chosen = "1"
    values.setdefault(chosen, 1.0 if chosen == "off" else float(chosen))
    names = {"off": f"no 1/√d (= {_ratio(scale)})", "1": "1 (model's own)"}
    st.select_slider(
        "Softmax temperature",
        sorted(values, key=values.__getitem__),
        key="temperature",
        format_func=lambda text: names.get(text, text),
        disabled=bool(reason),
        help=reason
        or (
            "Everything inside the softmax is divided by it. Leaving out the factor 1/√d makes the scores larger, "
            f"which is the same as a small temperature. {without or ''}"
        ),
    )


def _heads_off(info: ModelInfo, reason: str | None) -> None:
    st.multiselect(
        "Heads off",
        [(layer, head) for layer in info.layers for head in range(info.n_heads)],
        key="off",
        format_func=lambda pair: f"L{pair[0]} H{pair[1]}",
        disabled=bool(reason),
        placeholder="none",
        help=reason or "What these heads write is set to zero in the whole pass. Their own maps stay as they are.",
    )


def _allow_again() -> None:
    word = st.session_state["allow-again"]
    if word:
        gone = SHARED["forbid"].read(word)[0]
        st.session_state.forbid = [look for look in st.session_state.forbid if look != gone]


def _name_look(word: str) -> str:
    layer, head, query, key = SHARED["forbid"].read(word)[0]
    where = "everywhere" if layer is None else f"L{layer}" if head is None else f"L{layer} H{head}"
    tokens = st.session_state.visit.rest.tokens if st.session_state.get("visit") else ()
    names = [f"{tokens[i].label} ({i})" if i < len(tokens) else str(i) for i in (query, key)]
    return plain(f"{names[0]} → {names[1]}, {where} ✕")


def _ratio(scale: float | None) -> str:
    """Return a factor as a fraction where that is exact enough, such as 1/8.

    >>> _ratio(0.125), _ratio(0.3535533905932738)
    ('1/8', '0.354')
    """
    if not scale:
        return "1"
    return f"1/{round(1 / scale)}" if abs(1 / scale - round(1 / scale)) < 1e-6 else f"{scale:.3f}"
