"""From scratch: the mathematics of attention in nine steps."""

from attnviz.app.scratch.fields import FIELDS
from attnviz.app.scratch.scenes import scene
from attnviz.app.show.page_entry import Page

PAGE = Page("scratch", "From scratch", FIELDS, scene=scene)
