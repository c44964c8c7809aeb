"""Generate: the growing text, one step, the cache, both ways side by side, and memory."""

from attnviz.app.generate.fields import FIELDS
from attnviz.app.generate.scenes import scene
from attnviz.app.show.page_entry import Page

PAGE = Page("generate", "Generate", FIELDS, scene=scene)
