"""Cost: what attention costs, and how FlashAttention avoids the matrix."""

from attnviz.app.cost.fields import FIELDS
from attnviz.app.cost.scenes import scene
from attnviz.app.show.page_entry import Page

PAGE = Page("cost", "Cost", FIELDS, scene=scene, needs_text=False)
