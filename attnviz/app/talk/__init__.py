"""Talk: scenes worked out beforehand, and the player that steps through them."""

from attnviz.app.show.page_entry import Page
from attnviz.app.talk.fields import FIELDS

PAGE = Page("talk", "Talk", FIELDS, needs_text=False)
