"""The page's link: copied, or as a QR code for an audience."""

from base64 import b64encode
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from attnviz.app.components.copy_link.copy_link import copy_link
from attnviz.app.shell import address as state

LARGEST = 117  # squares a side of a QR code: larger ones can't be read from a projector
QUIET = 4  # white squares around the code, as the standard asks
OWN_NAMES = ("localhost", "127.0.0.1", "::1")
LEAST = 260  # px a side of the picture


@st.fragment  # opening the code doesn't run the page again
def share() -> None:
    """Show the button that copies the link, and the one that shows its QR code."""
    with st.container(horizontal=True, gap="small", key="share"):
        copy_link(key="copy-link")
        if st.button("QR code", key="show-qr", width="stretch", help="The page's link, for phones in the room."):
            _dialog()


def page_link() -> str:
    """Return the page's full address for what is chosen now, as the browser will have it when this run has ended."""
    address = state.chosen_address()
    here = urlsplit(st.context.url or "")
    return here._replace(path=here.path or "/", query=urlencode(address)).geturl()


def qr_svg(link: str) -> str | None:
    """Return the link's QR code as SVG, black on white with its quiet zone; None if it would be too fine to read.

    >>> qr_svg("http://127.0.0.1:8501/?head=3")[:4], qr_svg("x" * 2000)
    ('<svg', None)
    """
    try:
        code = segno.make(link, micro=False, error="l")
    except segno.DataOverflowError:
        return None
    if code.symbol_size(border=0)[0] > LARGEST:
        return None
    drawn = code.svg_inline(border=QUIET, light="white", dark="black", omitsize=True)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" shape-rendering="crispEdges" ', 1)


@st.dialog("Link to this page", width="medium")
def _dialog() -> None:
    link = page_link()
    drawn = qr_svg(link)
    if not state.fits_address(st.session_state.text):
        st.info("This text is too long for a QR code: the link leaves it out.")
    elif drawn is None:
        st.info(f"This link of {len(link):,} characters is too long for a QR code that a phone could read: copy it.")
    else:
        source = f"data:image/svg+xml;base64,{b64encode(drawn.encode()).decode()}"
        style = f"display: block; width: min(100%, 70vh); min-width: {LEAST}px; margin: auto"
        st.html(f'<img src="{source}" alt="QR code of this page\'s link" style="{style}">')
    st.code(link, language=None, wrap_lines=True)
    if urlsplit(link).hostname in OWN_NAMES:
        st.caption("Only this machine knows that address: open attnviz by its name in the network for phones.")
