"""A page with components of made-up numbers, for the browser tests: the address says which, and what they draw.

Each visit, by its number in the address, gets new components, so that one open page serves one test after another.
"""

import streamlit as st

from tests.browser.apps import one_of_each, one_overview, one_sentence, one_strip

SHOWS = {"overview": one_overview.show, "strip": one_strip.show, "arcs": one_sentence.show, "each": one_of_each.show}

st.set_page_config(layout="wide")
choice = st.query_params
visit = choice.get("visit", "0")
if "show" in choice:
    SHOWS[choice["show"]](choice, visit)
st.text(f"visit {visit} is drawn")
