"""The pages of the app, in the order of the menu: each takes a line in `ENTRIES`."""

from importlib import import_module
from itertools import chain

from attnviz.app.shell.fields import SHARED, Fields

ENTRIES = (
    import_module("attnviz.app.explore"),
    import_module("attnviz.app.scratch"),
    import_module("attnviz.app.pronouns"),
    import_module("attnviz.app.generate"),
    import_module("attnviz.app.cost"),
    import_module("attnviz.app.talk"),
)
PAGES = {module.PAGE.path: module.PAGE for module in ENTRIES}
FIELDS: Fields = dict(chain(SHARED.items(), *(page.fields.items() for page in PAGES.values())))
SCRIPTS = {path: page.script for path, page in PAGES.items()}
