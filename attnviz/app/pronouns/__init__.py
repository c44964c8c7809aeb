"""Pronouns: question, picture, pairs of sentences, scoreboard, and whether a head matters."""

from attnviz.app.pronouns.fields import FIELDS
from attnviz.app.pronouns.pronoun_examples import examples_row
from attnviz.app.pronouns.scenes import scene
from attnviz.app.show.page_entry import Page

PAGE = Page("pronouns", "Pronouns", FIELDS, scene=scene, examples=examples_row)
