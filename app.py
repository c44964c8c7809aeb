"""attnviz: type a sentence and see every head of a real model look at it. `streamlit run app.py`, or `make app`."""

import streamlit as st

from attnviz.ui import controls, state
from attnviz.ui.pronouns import examples as pronouns
from attnviz.ui.talk.own import PAGES_WITH_SCENES, save_button
from attnviz.ui.visit import open_visit

st.set_page_config(page_title="attnviz", page_icon="assets/icon.svg", layout="wide")
controls.style()
page = st.navigation(
    [
        st.Page("attnviz/pages/explore.py", title="Explore", default=True),
        st.Page("attnviz/pages/scratch.py", title="From scratch", url_path="scratch"),
        st.Page("attnviz/pages/pronouns.py", title="Pronouns", url_path="pronouns"),
        st.Page("attnviz/pages/generate.py", title="Generate", url_path="generate"),
        st.Page("attnviz/pages/cost.py", title="Cost", url_path="cost"),
        st.Page("attnviz/pages/talk.py", title="Talk", url_path="talk"),
    ],
    position="top",
)
state.restore(page.url_path)

controls.sentence()
examples = st.container()
notes = st.container()
with st.sidebar:
    loaded = controls.model()
if loaded is None:
    st.stop()
choice, info = loaded
with st.sidebar:
    switches, about = st.container(), st.container()
try:
    visit = open_visit(choice, info)
except ValueError as error:
    st.error(controls.as_sentence(str(error)))
    visit = None
for sentence in state.take_notes():
    notes.info(controls.plain(sentence))
if visit is not None:
    page.run()
with switches:
    controls.switches(info, visit and visit.scale)
    if visit is not None and page.url_path in PAGES_WITH_SCENES:
        save_button(visit)
with about:
    controls.about_model(info)
with examples:
    (pronouns.examples_row if page.url_path == "pronouns" else controls.examples_row)()
state.remember()
