"""attnviz: type a sentence and see every head of a real model look at it. `streamlit run app.py`, or `make app`.

A script, not an `st.App` with routes of its own: streamlit's AppTest, by which the tests use the app, runs scripts.
"""

import streamlit as st

from attnviz.app.guide.tour import help_row, tour
from attnviz.app.pages import FIELDS, PAGES, SCRIPTS
from attnviz.app.shell import address, controls
from attnviz.app.shell.frame import open_frame
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.model_picker import about_model, model
from attnviz.app.shell.palette import picker as palette_picker
from attnviz.app.shell.share import share
from attnviz.app.shell.switch_controls import switches
from attnviz.app.shell.visit import open_visit
from attnviz.app.show.own_deck import save_button

st.set_page_config(page_title="attnviz", page_icon="assets/icon.svg", layout="wide")
controls.style()
menu = [st.Page(page.script, title=page.title, url_path=path, default=not path) for path, page in PAGES.items()]
opened = st.navigation(menu, position="top")
page = PAGES[opened.url_path]
address.restore(page.path, FIELDS)
st.session_state.page_title = page.title
tour(page.path, SCRIPTS)
frame = open_frame(page.on_stage)
with frame.help:
    help_row()
with frame.model:
    loaded = model(frame.working)
try:
    with frame.working:
        visit = open_visit(*loaded) if loaded else None
except ValueError as error:
    visit = None
    if page.needs_text:
        frame.notes.error(as_sentence(str(error)))
for sentence in address.take_notes():
    frame.notes.info(plain(sentence))
# All that stands around the page comes before it, since the page may work for long.
if page.scene is not None:
    with frame.scene:
        save_button(page, visit)
with frame.link:
    share()
if loaded is not None:
    with frame.switches:
        switches(loaded[1], visit)
    with frame.look:
        palette_picker()
    with frame.about:
        about_model(loaded[1])
    with frame.examples:
        page.examples()
if visit is not None or not page.needs_text:
    opened.run()
address.remember()
