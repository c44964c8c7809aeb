"""What a visitor chose, kept in the session and in the page's address, so that a copied link shows the same picture.

`restore` reads the address into the session before any widget is made, `remember` writes the session back after the
page has run. Streamlit's own binding to the address knows only boxes on the page, and drops what it can't read.
"""

import base64
import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import streamlit as st

from attnviz.app.shell.fields import Fields

PLAIN_TEXT = 1500  # characters of address that a text may take as it is; longer ones are compressed
PACKED_TEXT = 6000  # beyond that proxies and mail programs cut addresses: the text is left out, and the page says so
LATE = 3.0  # seconds in which a browser hears of a new address, even on a slow line
MOST_TEXT = 1_000_000  # bytes that a packed text may unfold to
UNDER_OTHER_NAMES = {"z": "text"}  # a packed text


def fields() -> Fields:
    """Return all fields that there are, of all pages, as `restore` was given them."""
    return st.session_state.fields


def put_at_rest(of: str) -> None:
    """Give every choice that belongs to something, such as the text, its value at rest."""
    for name, field in fields().items():
        if of in field.of:
            st.session_state[name] = field.default


def mend() -> None:
    """Give a choice that came back without a value the one that it had.

    A row of buttons of which one is always on has been seen to send none, on a machine that was busy.
    """
    remembered = st.session_state.get("remembered", {})
    for name, field in fields().items():
        if name in st.session_state and st.session_state[name] is None and field.default is not None:
            before = remembered.get(name)
            st.session_state[name] = field.default if before is None else before


def hold(level: str, place: str, names: Iterable[str]) -> None:
    """Tell the browser the values of choices anew where their boxes come anew: on another page, or in another step.

    A box that comes back shows its lowest value, and tells that, if the run that brought it was overtaken by a click.

    Args:
        level: "page" or "step"; `place`: which one is drawn now.
        names: of `FIELDS`, of boxes that this run has not drawn yet.
    """
    if st.session_state.get("places", {}).get(level) != place:
        for name in names:
            if name in st.session_state:
                st.session_state[name] = st.session_state[name]
    st.session_state.places_now = {**st.session_state.get("places_now", {}), level: place}


def restore(page: str, known_fields: Fields) -> None:
    """Read the address into the session, once a visit and whenever somebody else than `remember` changed it.

    What can't be read falls back to its default, and a note says so. On the way to another page of the app streamlit
    empties the address: then the session stays as it is, and `remember` writes it into the new page's address.

    Args:
        page: which page of the app is open, by its name in the address.
        known_fields: all that can be chosen, on any page.
    """
    chosen = st.session_state
    chosen.fields = known_fields
    mend()
    hold("page", page, known_fields)
    address = st.query_params.to_dict()
    known = chosen.get("address")
    from_page = chosen.get("page", page)
    chosen.page = page
    told = _values()
    if known is not None and from_page != page and not address:
        chosen.address = address
    elif known is not None and known != address and _is_behind(address):
        chosen.address = address  # so that `remember` writes ours once more
    elif known != address:
        _take(address)
    chosen.told = told
    chosen.pop("own run", None)


def _take(address: dict[str, str]) -> None:
    """Put what an address says into the session, and say what can't be read."""
    values = {name: field.default for name, field in fields().items()}
    unreadable = []
    for name, text in address.items():
        try:
            if name == "z":
                values["text"] = unpack_text(text)
            elif name in values:
                values[name] = fields()[name].read(text)
        except ValueError:
            unreadable.append(f"“{UNDER_OTHER_NAMES.get(name, name)}”")
    if unreadable:
        note(f"The link's {', '.join(unreadable)} can't be read, so the page's own is shown.")
    for name, value in values.items():
        st.session_state[name] = value
    st.session_state.draft = st.session_state.text
    st.session_state.address = address
    st.session_state.remembered = values


def chosen_address() -> dict[str, str]:
    """Return what differs from its default, as the address says it: what `remember` writes if nothing else changes."""
    address: dict[str, str] = {}
    for name, value in _values().items():
        field = fields()[name]
        if value != field.default and value is not None:
            address |= pack_text(value) if name == "text" else {name: field.write(value)}
    return address


def remember() -> None:
    """Write what differs from its default into the address."""
    address = chosen_address()
    known = st.session_state.get("address")
    if known != address:
        st.query_params.from_dict(address)
        st.session_state.address = address
        st.session_state.address_before = (known, time.monotonic())
    st.session_state.places = st.session_state.get("places_now", {})
    st.session_state.remembered = _values()
    st.session_state.pressed = _pressed()


def run_again() -> NoReturn:
    """Run the whole page again for what was clicked; the browser may not have heard of the newest address yet."""
    st.session_state["own run"] = True
    rerun: Callable[[], NoReturn] = st.rerun
    rerun()


def _values() -> dict[str, Any]:
    return {name: st.session_state.get(name, field.default) for name, field in fields().items()}


def _pressed() -> set[str]:
    """Return the keys of all that is on in the session: a button is for the one run that it was pressed for."""
    return {str(key) for key, value in st.session_state.items() if value is True}


def _is_behind(address: dict[str, str]) -> bool:
    """Return True if the browser sent a click before it had heard of the address that `remember` wrote last.

    Such a click changes a choice, or it presses a button or has the page run again, and comes with the address before,
    and soon. Nobody else wrote that address, and reading it would undo the visitor's last choice. The way back in the
    browser's history does neither; boxes that have not heard of their new values yet tell those that they told before.
    """
    remembered, told = (st.session_state.get(name, {}) for name in ("remembered", "told"))
    moved = any(value not in (remembered.get(name, value), told.get(name, value)) for name, value in _values().items())
    before, when = st.session_state.get("address_before", (None, 0.0))
    clicked = st.session_state.get("own run", False) or _pressed() - st.session_state.get("pressed", set())
    return moved or (bool(clicked) and address == before and time.monotonic() - when < LATE)


def note(sentence: str) -> None:
    """Say something at the top of the page, in this run or the next, once."""
    notes = st.session_state.setdefault("notes", [])
    if sentence not in notes:
        notes.append(sentence)


def take_notes() -> list[str]:
    """Return the notes that wait and forget them."""
    return st.session_state.pop("notes", [])


def pack_text(text: str) -> dict[str, str]:
    """Return a text as part of an address: plain if short, packed if long, left out if too long for an address."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= PLAIN_TEXT:
        return {"text": text}
    if len(raw) > MOST_TEXT:
        return {}
    packed = base64.urlsafe_b64encode(zlib.compress(raw, 9)).decode("ascii").rstrip("=")
    return {"z": packed} if len(packed) <= PACKED_TEXT else {}


def unpack_text(packed: str) -> str:
    """Return the text that `pack_text` packed.

    Raises:
        ValueError: it isn't such a text, or it unfolds to an unreasonable size.
    """
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unfolding = zlib.decompressobj()
        unfolded = unfolding.decompress(raw, MOST_TEXT)
        if not unfolding.eof:
            raise ValueError("a packed text that was cut, or that unfolds too far")
        return unfolded.decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError("not a packed text") from error


def fits_address(text: str) -> bool:
    """Return True if a link can carry the text."""
    return bool(pack_text(text))
