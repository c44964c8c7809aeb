"""What the app has to know of a page; each page's folder describes its own."""

from collections.abc import Callable
from dataclasses import dataclass

from attnviz.app.shell.controls import examples_row
from attnviz.app.shell.fields import Fields
from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene


@dataclass(frozen=True)
class Page:
    """A page of the app.

    Attributes:
        folder: of the package `attnviz.app`, with the page's script in `page.py`.
        title: in the menu, and in files.
        fields: what a visitor can choose on it, beside what all pages share.
        name: in the address; None: as the folder.
        scene: makes a scene of a talk of what the page shows, or raises ValueError with a sentence for the visitor;
            None: it has no pictures for talks.
        needs_text: whether there is nothing to draw without a text that ran; else `scene` may be called with None.
        examples: draws the row of examples.
        on_stage: whether the page fills the window: what stands around it is a row of boxes above, no sidebar.
    """

    folder: str
    title: str
    fields: Fields
    name: str | None = None
    scene: Callable[[Visit], Scene] | None = None
    needs_text: bool = True
    examples: Callable[[], None] = examples_row
    on_stage: bool = False

    @property
    def path(self) -> str:
        """The part of the address that is the page's."""
        return self.folder if self.name is None else self.name

    @property
    def script(self) -> str:
        """The file that draws it."""
        return f"attnviz/app/{self.folder}/page.py"
