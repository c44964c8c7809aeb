"""attnviz: type a sentence and see every head of a real model look at it. `streamlit run app.py`, or `make app`."""

import streamlit as st

from attnviz.app.pronouns import pronoun_examples as pronouns
from attnviz.app.shell import address as state
from attnviz.app.shell import controls
from attnviz.app.shell.palette import picker as palette_picker
from attnviz.app.shell.share import share
from attnviz.app.shell.tour import help_row, tour
from attnviz.app.shell.visit import open_visit
from attnviz.app.talk.own import PAGES_WITH_SCENES, PAGES_WITHOUT_VISIT, save_button

st.set_page_config(page_title="attnviz", page_icon="assets/icon.svg", layout="wide")
controls.style()
page = st.navigation(
    [
        st.Page("attnviz/app/explore/page.py", title="Explore", default=True),
        st.Page("attnviz/app/scratch/page.py", title="From scratch", url_path="scratch"),
        st.Page("attnviz/app/pronouns/page.py", title="Pronouns", url_path="pronouns"),
        st.Page("attnviz/app/generate/page.py", title="Generate", url_path="generate"),
        st.Page("attnviz/app/cost/page.py", title="Cost", url_path="cost"),
        st.Page("attnviz/app/talk/page.py", title="Talk", url_path="talk"),
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
