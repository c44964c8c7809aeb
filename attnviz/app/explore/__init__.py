"""Explore: a sentence, every head of a model, one head in large, and switches that really switch."""

from attnviz.app.explore.fields import FIELDS
from attnviz.app.show.page_entry import Page
from attnviz.app.show.scenes import map_scene

PAGE = Page("explore", "Explore", FIELDS, name="", scene=map_scene, on_stage=True)
