"""The pages of the app, in the order of the menu: the one place that names them."""

from itertools import chain

from attnviz.app import cost, explore, generate, pronouns, scratch, talk
from attnviz.app.shell.fields import SHARED, Fields

PAGES = {module.PAGE.path: module.PAGE for module in (explore, scratch, pronouns, generate, cost, talk)}
FIELDS: Fields = dict(chain(SHARED.items(), *(page.fields.items() for page in PAGES.values())))
SCRIPTS = {path: page.script for path, page in PAGES.items()}
