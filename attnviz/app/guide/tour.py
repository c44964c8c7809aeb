"""A tour for somebody who is new here: five stops, each a few sentences and the picture that they speak of.

It sets the visitor's choices as a link would, keeps what they were, and puts them back at the end. Needs streamlit.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import streamlit as st

from attnviz.app.components.tour_offer.tour_offer import in_browser
from attnviz.app.guide.glossary import glossary_button
from attnviz.app.shell import address as state
from attnviz.app.shell.fields import Fields

FILE = resources.files("attnviz.app.guide") / "tour.toml"
KEPT = ("palette",)  # choices of the visitor that no stop touches
OFFER, QUIET = "offer", "quiet"  # what the session holds besides the number of a stop


@dataclass(frozen=True)
class Stop:
    """One stop of the tour.

    Attributes:
        title, text: what it says; `sets`: which choices of the visitor it changes, in words.
        page: of the app; `choices`: of the visitor there, as text like in a link.
        target: key of the element that it speaks of; `edge`: of the window that this goes to, "start" or "end".
    """

    title: str
    text: str
    sets: str
    page: str
    choices: dict[str, str]
    target: str
    edge: str = "end"

    def values(self, fields: Fields) -> dict[str, Any]:
        """Return a value for every choice that the stop sets; what it doesn't name is at rest."""
        named = {name: fields[name].read(text) for name, text in self.choices.items()}
        at_rest = {name: field.default for name, field in fields.items() if name not in KEPT}
        return at_rest | named


@cache
def stops() -> tuple[Stop, ...]:
    """Return the stops in the order of the file."""
    return tuple(Stop(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["stop"])


def tour(page: str, scripts: Mapping[str, str]) -> None:
    """Offer the tour on a first visit, or show the stop that it is at, above everything else on the page.

    Args:
        page: which page of the app is open, by its name in the address.
        scripts: the file of every page, by that name.
    """
    chosen = st.session_state
    if "tour" not in chosen:
        chosen.tour = OFFER if page == "" and not chosen.address else QUIET
    there = chosen.pop("tour-to", page)
    if there != page:
        st.switch_page(scripts[there])
    with st.container(key="tour-place"):  # there even if empty, so that nothing below moves when the offer goes
        if isinstance(chosen.tour, int):
            _panel(chosen.tour, page)
        elif chosen.tour == OFFER and page == "" and _untouched():
            _offer()


def help_row() -> None:
    """Show the buttons of the glossary and of the tour, and tell the browser where the tour is."""
    with st.container(horizontal=True, gap="small", key="help"):
        glossary_button()
        st.button("Tour", key="tour-start", icon=":material/explore:", on_click=_begin, help="Five stops, one minute.")
        _tell_browser()


def _offer() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="tour-offer"):
        st.markdown("New here? One minute, five stops.", width="content")
        st.button("Show me around", key="tour-yes", type="primary", on_click=_begin)
        st.button("No, thanks", key="tour-no", type="tertiary", on_click=_decline)


def _panel(place: int, page: str) -> None:
    stop, last = stops()[place], len(stops()) - 1
    here = page == stop.page
    with st.container(border=True, gap="xsmall", key="tour"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{stop.title}** ({place + 1} of {last + 1})", width="stretch")
            st.button("Back", key="tour-back", on_click=_go, args=(place - 1,), disabled=place == 0)
            if not here:
                st.button("Go on with the tour", key="tour-on", type="primary", on_click=_go, args=(place,))
            elif place < last:
                st.button("Next", key="tour-next", type="primary", on_click=_go, args=(place + 1,))
            st.button("End", key="tour-end", type="secondary", on_click=_end)
        if here:
            st.markdown(stop.text)
            st.caption(f"Set here: {stop.sets}. At the end your own choices come back.")


def _tell_browser() -> None:
    chosen = st.session_state
    place = chosen.tour if isinstance(chosen.tour, int) else None
    stop = stops()[place or 0]
    asked = chosen.get("tour-answered", False)
    in_browser(asked=asked, stop=place, target=stop.target, edge=stop.edge, key="tour-in-browser")


def _untouched() -> bool:
    chosen = st.session_state
    return all(chosen.get(name, field.default) in (field.default, None) for name, field in state.fields().items())


def _begin() -> None:
    chosen = st.session_state
    chosen["tour-answered"] = True
    if not isinstance(chosen.tour, int):
        chosen["tour-before"] = {name: chosen.get(name, field.default) for name, field in state.fields().items()}
        chosen["tour-from"] = chosen.page
    _go(0)


def _go(place: int) -> None:
    stop = stops()[place]
    st.session_state.tour, st.session_state["tour-to"] = place, stop.page
    _set(stop.values(state.fields()))


def _end() -> None:
    """Put back what the visitor had, unless they have typed a text of their own meanwhile."""
    chosen = st.session_state
    stop, before = stops()[chosen.tour], chosen.pop("tour-before")
    chosen.tour, back = QUIET, chosen.pop("tour-from")
    if chosen.text == stop.values(state.fields())["text"]:
        chosen["tour-to"] = back
        _set(before)


def _decline() -> None:
    st.session_state.tour, st.session_state["tour-answered"] = QUIET, True


def _set(values: dict[str, Any]) -> None:
    st.session_state.update(values)
    st.session_state.draft = st.session_state.text
