"""What the browser components share: their files, packed arrays, side channels, whose choice holds. Needs streamlit."""

import base64
import json
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.figures.palettes import PALETTES, palette_of
from attnviz.figures.theme import THEMES, Theme, candidate_colours

ASSETS = resources.files("attnviz.app.components")


@dataclass(frozen=True)
class Settled:
    """A choice that both the visitor (in the browser) and the page (in Python) can make.

    Attributes:
        value: the choice that holds now.
        given: what the page passed in this run.
        seen: the stamp of the visitor's newest choice that has reached Python, 0 before the first.
        about: what the choice is about; a choice doesn't outlive it.
    """

    value: Any
    given: Any
    seen: int
    about: Hashable


def read_asset(name: str) -> str:
    """Return a component's file, such as `bridge/note.js`; of several lines, since a single one is taken for a path."""
    return (ASSETS / name).read_text(encoding="utf-8")


def read_script(*names: str) -> str:
    """Return JavaScript files as one module, behind the charts' colours and what all components share."""
    palette = json.dumps({name: _palette(theme) for name, theme in THEMES.items()})
    return "\n".join([f"const PALETTE = {palette};", *map(read_asset, ("bridge/common.js", *names))])


def unseen(name: str, script: str) -> Any:
    """Return a component that shows nothing: its script acts on the page around it."""
    html = f'<div class="attnviz-{name}-place" hidden>\n</div>'
    return st.components.v2.component(f"attnviz_{name}", html=html, js=read_asset(script), isolate_styles=False)


def _palette(theme: Theme) -> dict[str, Any]:
    bar = theme.measure[len(theme.measure) * 2 // 3]
    looks = {name: palette_of(name, theme.name) for name in PALETTES}
    weight, mark = ({name: getattr(look, part) for name, look in looks.items()} for part in ("weight", "mark"))
    colours = {"weight": weight, "mark": mark, "masked": theme.masked, "rule": theme.rule, "bar": bar}
    return colours | {"candidates": candidate_colours(theme.name)}


def pack(values: NDArray[Any]) -> str:
    """Return an array's bytes, deflated (zlib), as base64 text; numbers wider than a byte travel little-endian.

    >>> zlib.decompress(base64.b64decode(pack(np.array([1, 513], dtype=np.uint16))))
    b'\\x01\\x00\\x01\\x02'
    """
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(zlib.compress(np.ascontiguousarray(little).tobytes(), 7)).decode("ascii")


def settle(last: Settled | None, given: Any, sent: dict[str, Any] | None, *, about: Hashable = None) -> Settled:
    """Decide whose choice holds: the visitor's if it is new, else the page's if that changed, else what held before.

    Args:
        last: the outcome of the run before, None in the first.
        given: what the page passes in this run.
        sent: the visitor's last choice as the browser reports it, {"value": ..., "at": stamp}, or None.
        about: what the choice is about (a text, say). When that changes, the page's value holds.

    Returns:
        The outcome, to be kept for the next run.

    >>> first = settle(None, 3, None)
    >>> clicked = settle(first, 3, {"value": 5, "at": 1})  # the page still says 3
    >>> clicked.value, settle(clicked, 3, {"value": 5, "at": 1}).value, settle(clicked, 4, {"value": 5, "at": 1}).value
    (5, 5, 4)
    """
    seen = max(int(sent["at"]) if sent else 0, last.seen if last else 0)
    if last is None or last.about != about:
        value = given
    elif sent and sent["at"] > last.seen:
        value = sent["value"]
    elif given != last.given:
        value = given
    else:
        value = last.value
    return Settled(value, given, seen, about)


def settle_in_session(key: str, given: Any, sent: dict[str, Any] | None, *, about: Hashable = None) -> Settled:
    """Do `settle` with the last outcome kept in the visitor's session, under a name made from the component's key."""
    name = f"{key}:settled"
    st.session_state[name] = settle(st.session_state.get(name), given, sent, about=about)
    return st.session_state[name]


def send_note(key: str, slot: str, says: dict[str, Any]) -> None:
    """Send small data that changes often to the component with this key, without resending the component's own data."""
    _note(key=f"{key}-{slot}", data={"of": key, "slot": slot, "says": says})


_note = unseen("note", "bridge/note.js")
