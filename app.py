"""attnviz: type a sentence and see every head of a real model look at it. `streamlit run app.py`, or `make app`."""

import streamlit as st

from attnviz.ui import controls, state
from attnviz.ui.palette import picker as palette_picker
from attnviz.ui.pronouns import examples as pronouns
from attnviz.ui.share import share
from attnviz.ui.talk.own import PAGES_WITH_SCENES, PAGES_WITHOUT_VISIT, save_button
from attnviz.ui.tour import help_row, tour
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
tour(page.url_path)
controls.sentence()
examples = st.container()
notes, working = st.container(), st.container()  # a place for progress, so that nothing below moves when it goes
with st.sidebar:
    help_row()
    loaded = controls.model()
    switches, saving, sharing, about = (st.container() for _ in range(4))
try:
    with working:
        visit = open_visit(*loaded) if loaded else None
except ValueError as error:
    visit = None
    if page.url_path not in PAGES_WITHOUT_VISIT:
        st.error(controls.as_sentence(str(error)))
for sentence in state.take_notes():
    notes.info(controls.plain(sentence))
# All that stands around the page comes before it, since the page may work for long.
if page.url_path in PAGES_WITH_SCENES:
    with saving:
        save_button(visit)
with sharing:
    share()
if loaded is not None:
    with switches:
        controls.switches(loaded[1], visit and visit.scale)
    with about:
        palette_picker()
        controls.about_model(loaded[1])
    with examples:
        (pronouns.examples_row if page.url_path == "pronouns" else controls.examples_row)()
if visit is not None or page.url_path in PAGES_WITHOUT_VISIT:
    page.run()
state.remember()
